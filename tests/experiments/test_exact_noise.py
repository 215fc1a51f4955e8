"""The linear neuron with noise: its closed forms by other means, and each way by a smaller case."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from wideflow.experiments import exact_noise as experiment
from wideflow.experiments import noisy_linear as case


@pytest.mark.parametrize("dim", [1, 2])
def test_the_solution_obeys_its_equations(dim):
    """ṁ = w* − (1+λ)m, Ċ = 2/β − 2λC, by an integrator."""
    w = np.array(case.W_STAR[:dim])
    field = lambda _, v: [*(w - (1 + case.DECAY) * v[:dim]), 2 / case.BETA - 2 * case.DECAY * v[dim]]
    end = solve_ivp(field, (0, 1.7), [case.M0] * dim + [case.S0**2], rtol=1e-11, atol=1e-13).y[:, -1]
    law = case.exact(1.7, dim)
    np.testing.assert_allclose(law.mean, end[:dim], rtol=1e-9)  # the integrator's tolerance, with room
    np.testing.assert_allclose(law.covariance, end[dim] * np.eye(dim), rtol=1e-9)


def test_the_gaussian_step_is_a_minimum():
    """F + W2²/(2τ) over Gaussians by search, F from its formula."""
    tau = 0.3

    def objective(v):
        far = (v[0] - case.M0) ** 2 + (math.exp(v[1]) - case.S0) ** 2
        return float(case.gaussian([v[0]], math.exp(2 * v[1])).energy) + far / (2 * tau)

    found = minimize(objective, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-16}).x
    step = case.gaussian_step(tau)
    # 1e-6: the value is flat to rounding within 1e-8 of the minimum
    np.testing.assert_allclose(found, [step.mean[0], 0.5 * math.log(step.covariance[0, 0])], atol=1e-6)


def test_many_steps_are_the_flow():
    """Steps of 1e-4 in closed form: of first order, so 1e-4 times a few from the solution."""
    assert case.distances(case.gaussian_step(1e-4, 10_000), case.exact(1.0, 1)).max() < 1e-4


@pytest.mark.slow
def test_grids_have_order_two():
    errors = experiment.grid_errors(1, (40, 80))
    assert 1.8 < math.log2(errors[0] / errors[1]) < 2.3


@pytest.mark.slow
def test_movements_and_the_fixed_point():
    steps = (0.2, 0.1)
    truth = case.exact([1.0], 1)
    errors = [case.distances(experiment.moved(step, [1.0]), truth)[:, 0] for step in steps]
    assert (np.abs(np.log2(errors[0] / errors[1]) - 1) < 0.1).all()  # 1 + O(τ)
    checks = experiment.rest()[1]
    assert len(checks) == 3 and all(check.passed for check in checks)


@pytest.mark.slow
def test_clouds_are_within_their_errors_and_can_leave_them():
    found = experiment.clouds(1, range(4), n=200)
    z = experiment.in_standard_errors(found, 1, n=200)
    # four clouds give no errors to judge F by; those of mean and covariance are known exactly
    assert np.abs(z.mean).max() < 4 and np.abs(z.covariance).max() < 4
    shifted = found._replace(mean=found.mean + 0.2, covariance=1.5 * found.covariance)
    checks = experiment.cloud_checks(experiment.in_standard_errors(shifted, 1, n=200), 1)
    assert not checks[0].passed and not checks[1].passed
