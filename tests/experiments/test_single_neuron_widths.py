"""Widths and scalings on a single neuron: parts of the experiment, and its claims on a smaller case."""

import numpy as np
import pytest

from wideflow.experiments import single_neuron_widths as experiment
from wideflow.experiments.single_neuron import NOT_LINEAR, lazy_kernel, problem_in

D, M = 16, 160


@pytest.fixture(scope="module")
def risk():
    return experiment.samples(0, D, M)


@pytest.mark.slow
def test_wide_networks_are_lazy_under_ntk_scaling_alone(risk):
    """At d = 16 the limit itself fits some of the cubic part: levels differ from the experiment's."""
    lazy = experiment.lazy_error(risk, 0, test=4000)
    training, test = experiment.trained(risk, 1024, experiment.scale("NTK", 1024), 0)
    # K of 1024 neurons, half of them independent, differs from its mean by 1/√512 = 4 %, the test error by a
    # few times that; 4000 points add √2/√4000 = 2 %
    assert test == pytest.approx(lazy, rel=0.2)
    assert test > 0.5 * NOT_LINEAR and training < 0.1 * NOT_LINEAR
    fitted, learned = experiment.trained(risk, 1024, experiment.scale("mean-field", 1024), 0)
    assert learned < 0.1 * test and fitted < 0.1 * NOT_LINEAR
    narrow = experiment.trained(risk, 2, experiment.scale("NTK", 2), 0)[1]
    assert narrow < 0.1 * test


def test_the_level_is_the_part_that_is_not_linear():
    """½ min over c of E(erf(z) − cz)², by Gauss nodes of z ~ N(0, 1)."""
    from scipy.special import erf

    z, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    rest = erf(z) - np.sum(weights * z * erf(z)) * z
    # erf is entire: 80 nodes are exact to rounding
    assert pytest.approx(0.5 * np.sum(weights * rest**2), rel=1e-10) == NOT_LINEAR


def test_the_lazy_kernel_is_that_of_a_wide_network():
    """Mean of φφ' + a²φ'φ'⟨x, x'⟩ over draws of (a, w), in standard errors."""
    from scipy.special import erf

    rng = np.random.default_rng(0)
    x, draws = rng.normal(size=(2, D)), 100_000
    a, h = rng.normal(size=draws), rng.normal(size=(draws, D)) / np.sqrt(D) @ x.T
    slope = 2 / np.sqrt(np.pi) * np.exp(-(h**2))
    each = erf(h[:, 0]) * erf(h[:, 1]) + a**2 * slope[:, 0] * slope[:, 1] * (x[0] @ x[1])
    assert abs(each.mean() - lazy_kernel(x[:1], x[1:])[0, 0]) < 4 * each.std() / np.sqrt(draws)


def test_checks_of_made_up_figures():
    """They hold for what is claimed, and each fails where its own claim is broken."""
    rng = np.random.default_rng(0)
    shape = 2, len(experiment.FULL.widths), experiment.FULL.seeds
    spread = 1 + 0.01 * rng.normal(size=shape)
    ntk, flat = np.geomspace(0.001, 1, shape[1]), np.full(shape[1], 0.02)
    test = NOT_LINEAR * np.array([ntk, flat])[:, :, None] * spread
    test[1, -1] *= 0.99  # so that the slope is below 0
    found = experiment.Measured(0.01 * test, test, test[0, -1], 0.0)
    assert [c.passed for c in experiment.checks_of(found)] == [True] * 8
    broken = {
        0: found._replace(training=test),
        2: found._replace(lazy=1.2 * test[0, -1]),
        4: found._replace(test=test * np.array([1, 20])[:, None, None]),
        7: found._replace(test=test * np.array([0.1, 1])[:, None, None]),
    }
    for number, other in broken.items():
        assert not experiment.checks_of(other)[number].passed
    assert problem_in(experiment.DIMENSION).d * 10 == experiment.SAMPLES
