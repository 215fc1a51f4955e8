"""The cost of noise, by its linear case and by the certificate of its infimum."""

import numpy as np
import pytest

from wideflow.experiments import cost_of_noise as experiment


def test_the_linear_neuron_costs_one_half_over_beta():
    case = experiment.linear(1)
    bottom = experiment.least(case)
    w, decay = experiment.W_STAR[0], case.decay
    # min ½(w* − m)² + λm²/2; Newton's method is exact for squares
    assert bottom.value == pytest.approx(decay * w**2 / (2 * (1 + decay)), rel=1e-12)
    assert bottom.theta[0] == pytest.approx(w / (1 + decay), rel=1e-12)
    value, error = experiment.cost(case, bottom, 10.0)
    assert abs(value - 1 / 20) < error < 1e-5  # the trapezoidal rule on a Gaussian is exact to rounding


@pytest.mark.slow
def test_the_infimum_for_erf_is_certified_and_cheaper_noise_is_near_it():
    case = experiment.erf(1)
    bottom = experiment.least(case)
    assert bottom.gap < 1e-6  # no θ of the grid is below the atom's own: nothing does better
    costs = [experiment.cost(case, bottom, beta)[0] for beta in (200.0, 800.0)]
    assert np.log(costs[0] / costs[1]) / np.log(4) == pytest.approx(1, abs=0.03)  # 1/β, and next 1/β²
    assert 2 * 800 * costs[1] == pytest.approx(1, abs=0.02)


def test_checks_can_fail():
    case = experiment.linear(1)._replace(betas=(8.0, 16.0))
    wrong = experiment.Costs(case, np.array([0.1, 0.1]), np.array([1e-6, 1e-6]))
    assert not any(check.passed for check in experiment.checks(wrong))
