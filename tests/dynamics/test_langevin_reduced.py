"""Noise in reduced coordinates against noise in R^d: the drift of the radii, at rest and annealed."""

import math

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.dynamics.schedules import Annealing

N, STEP, T, ORDER = 800, 0.04, 1.0, 8
ONE = wf.Problem(x=wf.Gaussian(8), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
TWO = wf.Problem(x=wf.two_gaussians(8, 0.5), neuron=wf.Neuron("tanh"))
BLOCKS = wf.Problem(x=wf.two_gaussians(7, 0.5, subspace=3), neuron=wf.Neuron("tanh"))
COOLING = Annealing(6.0, 60.0, 0.8, "geometric")
CASES = {
    "single index, annealed": (ONE, COOLING, None, None),
    "two Gaussians, fixed": (TWO, 12.0, None, None),
    "two blocks, noise on the first": (BLOCKS, COOLING, ("w1", "w2", "w3"), "r1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_moments_agree_with_unreduced_noise(case):
    """First and second moments of (a, s, r) at t = 1, each from N particles, within 4 standard errors."""
    problem, beta, in_full, in_few = case
    start, reduced = wf.init(problem), problem.reduced(ORDER)
    many = wf.Risk(problem, wf.Sample(100))  # for the record alone: each step has fresh rows
    few = wf.Risk(reduced, wf.Quadrature(ORDER))
    full = wf.evolve(
        wf.Langevin(many, STEP, beta=beta, noise_on=in_full, batch=400),
        start.sample(jax.random.key(6), N), [T], key=jax.random.key(7), snapshots=False,
    ).final  # fmt: skip
    law = start.reduced().on(reduced)
    short = wf.evolve(
        wf.Langevin(few, STEP, beta=beta, noise_on=in_few),
        law.sample(jax.random.key(8), N), [T], key=jax.random.key(9), snapshots=False,
    ).final  # fmt: skip
    z, found = np.asarray(wf.reduce(problem, full).theta), np.abs(np.asarray(short.theta))
    for i in range(z.shape[1]):
        for power in (1, 2):
            one, other = np.abs(z[:, i]) ** power, found[:, i] ** power
            bar = math.hypot(one.std(), other.std()) / math.sqrt(N)
            # Batches of 400 shake the common velocity, of size 1, by 1/20 a step: √(ηT)/20 = 0.01 to t = 1.
            assert abs(one.mean() - other.mean()) < 4 * bar + 0.01 * abs(other.mean())


def test_without_the_drift_radii_would_be_wrong():
    """What the test above can see: the drift moves E r² by 2(d − 2)∫dt/β, many standard errors."""
    reduced = ONE.reduced(ORDER)
    law, few = wf.init(ONE).reduced().on(reduced), wf.Risk(reduced, wf.Quadrature(ORDER))
    with_noise, without = (
        np.asarray(wf.evolve(wf.Langevin(few, STEP, beta=COOLING, noise_on=on),
                             law.sample(jax.random.key(8), N), [T], key=jax.random.key(9)).final.theta)[:, 2]
        for on in (("s", "r"), "s")
    )  # fmt: skip
    ts = np.linspace(0, T, 2001)
    gain = 2 * (8 - 2 + 1) * np.trapezoid([1 / float(COOLING(t)) for t in ts], ts)  # noise of r itself: + 1
    bar = math.hypot((with_noise**2).std(), (without**2).std()) / math.sqrt(N)
    # the force of the risk acts on r too: a fifth of the gain is left to it
    assert abs((with_noise**2).mean() - (without**2).mean() - gain) < 4 * bar + 0.2 * gain
    assert gain > 20 * bar


def test_infinite_dimension_takes_noise_where_there_are_no_radii():
    endless = wf.Problem(x=wf.Gaussian(math.inf), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    risk = wf.Risk(endless.reduced(ORDER), wf.Quadrature(ORDER))
    for beta, on in ((COOLING, None), (COOLING, "r"), (5.0, ("s", "r"))):
        with pytest.raises(ValueError, match="in proportion to d"):
            wf.Langevin(risk, STEP, beta=beta, noise_on=on)
    start = wf.init(endless).reduced().on(endless.reduced(ORDER)).sample(jax.random.key(0), 10)
    assert wf.evolve(wf.Langevin(risk, STEP, beta=COOLING, noise_on="a"), start, [0.1]).status == "ok"


@pytest.mark.parametrize(("d", "eta"), [(2, 0.02), (3, 0.02), (2, 0.1)])
def test_few_directions_and_no_force(d, eta):
    """Where the risk exerts no force a radius is that of an Ornstein–Uhlenbeck process in R^d, also where it
    comes near 0 in every other step: E r² of Euler's chain in closed form, within 4 standard errors."""
    reduced = wf.Problem(x=wf.two_gaussians(d, 0.5), neuron=wf.Neuron("tanh", output="unit")).reduced(8)
    start = 0.5 * np.linalg.norm(np.random.default_rng(d).normal(size=(4000, d)), axis=1)
    rho = wf.Particles(start[:, None], neuron=reduced.neuron)
    beta, decay = 4.0, 0.5
    noisy = wf.Langevin(wf.Risk(reduced, wf.Quadrature(8)), eta, beta=beta, decay=decay)
    square = np.asarray(wf.evolve(noisy, rho, [1.0], key=jax.random.key(5)).final.theta[:, 0]) ** 2
    keeps, steps = (1 - eta * decay) ** 2, round(1 / eta)
    left = keeps**steps
    exact = left * np.mean(start**2) + d * 2 * eta / beta * (1 - left) / (1 - keeps)
    assert abs(square.mean() - exact) < 4 * square.std() / np.sqrt(len(square))
