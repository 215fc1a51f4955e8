"""The rate of F − F* in a double well, by one β on the line."""

import numpy as np
import pytest

from wideflow.experiments import log_sobolev_rate as experiment


@pytest.fixture(scope="module")
def found():
    return experiment.measured(1, 16.0)


@pytest.mark.slow
def test_the_rate_is_twice_the_smallest_eigenvalue(found):
    """Fitted in time, and by linear algebra; the fit has 5 lives and a tolerance of 1e-5 a step."""
    assert found.rate.straight
    assert found.rate.value == pytest.approx(2 * experiment.smallest_eigenvalue(found.star), rel=0.02)


@pytest.mark.slow
def test_the_rate_is_above_the_guarantee_and_near_that_of_cold_noise(found):
    assert 0 < found.bound < found.rate.value
    assert 0.75 < found.rate.value / found.kramers < 1.25  # the law's next term is O(1/βΔ), here 1/4


@pytest.mark.slow
def test_the_barrier_is_that_of_the_potential(found):
    """By values on the grid, without derivatives: the least of Ψ_λ, and Ψ_λ beside 0."""
    rho = found.star.state
    theta = np.asarray(rho.theta)
    psi = np.asarray(experiment.risk(1).potential(rho.theta, rho)) + 0.5 * experiment.DECAY * theta[:, 0] ** 2
    h = theta[1, 0] - theta[0, 0]
    # both extrema are missed by half a cell at most: curvature (about 2) times h²/8
    assert found.barrier == pytest.approx(psi[np.abs(theta[:, 0]).argmin()] - psi.min(), abs=2 * h**2)


def test_a_line_has_its_slope_and_error():
    rng, x = np.random.default_rng(0), np.arange(50.0)
    noisy = lambda: 1 - 0.3 * x + 0.1 * rng.standard_normal(50)
    fits = [experiment.line(x, noisy(), np.full(50, 0.1)) for _ in range(40)]
    z = np.array([(fit.value + 0.3) / fit.error for fit in fits])
    assert abs(z.mean()) < 4 / np.sqrt(40) and 0.5 < z.std() < 1.5  # the error is neither far off nor idle


@pytest.mark.slow
def test_checks_can_fail(found):
    flat = [found._replace(beta=beta, bound=1.0) for beta in (8.0, 12.0, 16.0)]
    growing = [found._replace(D=D, kramers=np.exp(-float(D))) for D in (1, 2, 3)]
    checks = experiment.checks(flat, [found.rate.value] * 3, growing)  # 2κ would be twice the rate
    assert not any(check.passed for check in checks)
