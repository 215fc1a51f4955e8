"""The risk by modes in NumPy against the compiled one, which takes other ways to the waves."""

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.functionals.host_modes import host_risk, host_risks
from wideflow.functionals.modes import ModesOf


@pytest.mark.parametrize("link, d", [("erf", 6), ("tanh", 50), ("gelu", float("inf"))])
def test_it_is_the_compiled_one(link, d):
    problem = wf.Problem(x=wf.Gaussian(d), target=wf.single_index(link), neuron=wf.Neuron(link), noise=0.3)
    small, law = problem.reduced(), wf.init(problem).reduced()
    (way,) = ModesOf(24, 40, 6.0).bind(small)
    theta = law.points(40).theta + np.array([0.3, 0.2, 0.0])  # off the symmetry, by which f would be 0
    weights = np.random.default_rng(0).dirichlet(np.ones(40))
    state = wf.Particles(theta, weights, 1.5, small.neuron)
    nothing = 0.5 * float(way.rest * 2 + sum(np.sum(np.square(p.y)) for p in way.parities)) + 0.5 * 0.3**2
    assert abs(host_risk(way, state) - nothing) > 0.01  # f counts
    # waves by doubling and by arccos differ by roundings, of which the sums have some hundred
    assert host_risk(way, state) == pytest.approx(float(way.risk(state)), rel=1e-12)


def test_two_thirds_of_the_modes_are_worse():
    problem = wf.Problem(x=wf.Gaussian(10), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    small, state = problem.reduced(), wf.init(problem, w=2.0).reduced().sample(jax.random.key(0), 64)
    (fine,), (way,) = (ModesOf(degree, 64, 8.0).bind(small) for degree in (60, 24))
    here, coarse, size = host_risks(way, state)
    truth = host_risk(fine, state)
    assert size > 0
    assert abs(here - truth) < abs(coarse - truth)
    (short,) = ModesOf(16, 64, 8.0).bind(small)  # two thirds of the degrees, all of the series
    assert coarse == pytest.approx(host_risk(short, state), abs=1e-6)  # 42 of 64 terms bring six digits
    assert way.error(state) >= abs(here - truth)
