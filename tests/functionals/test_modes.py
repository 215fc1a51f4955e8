"""Hermite modes against quadrature over x, the closed form of erf, and themselves."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.functionals.modes import ModesOf, why_not
from wideflow.problems.hermite_modes import UnresolvedError, coefficients, modes_of


def problem(link="erf", d=6, law=None, **neuron):
    law = wf.Gaussian(d) if law is None else law
    return wf.Problem(x=law, target=wf.single_index(link), neuron=wf.Neuron(link, **neuron))


def cloud(reduced, alpha=2.0, n=7):
    """Neurons of length up to 1.5, where an order of 48 knows the quadrature to 1e-9 or better."""
    theta = np.random.default_rng(0).uniform(0.1, 1.0, (n, reduced.D))
    return wf.Particles(theta, alpha=alpha, neuron=reduced.neuron)


CASES = {
    "erf, d = 3": (problem("erf", 3), [1]),
    "tanh, d = 50": (problem("tanh", 50), [1]),
    "erf, d = inf": (problem("erf", math.inf), [1]),
    "gelu, both parities": (problem("gelu", 6), [0, 1]),
    "a = 1": (problem("sin", 10, output="unit"), [1]),
    "a frozen": (problem("erf", 10, output="frozen"), [1]),
    "other variances": (problem("erf", law=wf.Gaussian(4, [0.5, 1.2, 1.2, 1.2])), [1]),
}


@pytest.mark.parametrize("name", CASES)
def test_risk_velocity_and_potential_are_those_of_quadrature(name):
    given, parities = CASES[name]
    reduced = given.reduced(48)
    state = cloud(reduced)
    modes, nodes = wf.Risk(reduced, ModesOf(72, 72, 3.0)), wf.Risk(reduced, wf.Quadrature(48))
    assert [p.first for p in modes.ways[0].parities] == parities
    # tanh: 48 nodes know its means to 1e-8, derivatives to 1e-6; the others are at rounding or near it
    close = lambda one, other, atol: np.testing.assert_allclose(one, other, rtol=0, atol=atol)
    close(modes.value(state), nodes.value(state), 1e-7)
    close(modes.psi(state.theta, state), nodes.psi(state.theta, state), 1e-7)
    close(modes.V(state.theta), nodes.V(state.theta), 1e-7)
    close(modes.U(state.theta, state.theta[:3]), nodes.U(state.theta, state.theta[:3]), 1e-7)
    close(modes.velocity(state), nodes.velocity(state), 2e-6)
    assert float(jnp.max(jnp.abs(nodes.velocity(state)))) > 0.01


def test_the_velocity_is_minus_the_gradient_of_the_potential():
    """By differences of step 1e-5, whose error is the step squared and rounding over the step."""
    reduced = problem("tanh", 5).reduced()
    state, risk = cloud(reduced), wf.Risk(reduced, ModesOf(40, 40, 3.0))
    velocity = np.asarray(risk.velocity(state))
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-5
        up, down = (risk.psi(state.theta + sign * step, state) for sign in (1, -1))
        np.testing.assert_allclose(velocity[:, i], -(up - down) / 2e-5 / 2.0, rtol=0, atol=1e-8)


def test_the_error_covers_degree_and_series():
    """Too low a degree, and too short a series: the estimate is not below the true error."""
    reduced = problem("gelu", 6).reduced()
    state = cloud(reduced)
    exact = float(wf.Risk(reduced, ModesOf(96, 96, 3.0)).value(state))
    for degree, order in [(6, 48), (48, 12), (96, 96)]:
        risk = wf.Risk(reduced, ModesOf(degree, order, 3.0))
        assert abs(float(risk.value(state)) - exact) <= float(risk.error(state))


def test_hermite_coefficients_of_erf():
    """From 2/π asin(x) = Σ c_n² at ρ → τ² = 2ρ²/(1 + 2ρ²): the sum of squares is E erf(ρz)²."""
    rho = np.array([0.3, 1.0, 2.0])
    found = coefficients(wf.activation("erf"), rho, 400)
    exact = 2 / math.pi * np.arcsin(2 * rho**2 / (1 + 2 * rho**2))
    # at ρ = 2 the terms fall like (8/9)^n, 1e-20 at n = 400
    np.testing.assert_allclose(np.sum(found**2, axis=1), exact, rtol=1e-12)


def test_a_rough_activation_is_refused():
    wave = wf.activation(_fast)
    with pytest.raises(UnresolvedError, match="not resolved"):
        modes_of(wave, 5.0, 16, 16, 4.0)


def _fast(h: jax.Array) -> jax.Array:
    return jnp.sin(300 * h)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (problem("relu"), "kinks"),
        (problem("erf", bias=True), "bias"),
        (problem("erf", law=wf.Sphere(6)), "not a Gaussian"),
        (wf.Problem(x=wf.two_gaussians(9, 0.5), neuron=wf.Neuron("erf")), "one direction"),
    ],
    ids=["relu", "bias", "sphere", "classes"],
)
def test_where_there_are_no_modes(given, says):
    assert says in why_not(given.reduced())
    assert why_not(problem().reduced()) is None
