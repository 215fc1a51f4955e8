"""Feature and lazy training: the parts of the experiment, and its claims where few networks show them."""

import jax
import numpy as np
import pytest

from wideflow.experiments import feature_and_lazy as experiment


@pytest.fixture(scope="module")
def task():
    return experiment.task()


def quiet(text):
    pass


@pytest.mark.slow
def test_the_two_conventions_are_one_model(task):
    assert experiment.conventions_apart(task) < experiment.SAME
    # another α is another model: the check can fail
    other = experiment.starts(50, 1.0, [0]), experiment.starts(50, 0.5, [0])
    after = [experiment.trained(task.risk, network)(task.test.x) for network in other]
    assert np.max(np.abs(after[0] - after[1])) > 100 * experiment.SAME


@pytest.mark.slow
def test_training_ends_at_the_same_risk_on_both_sides(task):
    for scale in experiment.SIDES.values():
        ends = experiment.trained(task.risk, experiment.starts(50, scale / np.sqrt(50), [0]))
        risk = float(task.risk.value(ends.replica(0)))
        # looked at every 2^⅛ in time: where R falls like t^−2 or slower, within 2^−¼ of END, and one more
        assert 0.7 * experiment.END < risk <= experiment.END


@pytest.mark.slow
def test_the_boundary_lies_between_the_sides(task):
    """On the feature side the kernel moves by more than LEVEL of itself, on the lazy side by less; and the
    feature side has the lower test error on this task."""
    found = {
        side: experiment.learn(task, 50, scale / np.sqrt(50), range(3))
        for side, scale in experiment.SIDES.items()
    }
    assert np.all(found["feature"].movement > 2 * experiment.LEVEL)
    assert np.all(found["lazy"].movement < experiment.LEVEL / 2)
    wrong = {side: np.mean(experiment.wrong_part(task, one.outputs)) for side, one in found.items()}
    assert wrong["feature"] < wrong["lazy"] < 0.5


def test_boundary_of_a_known_law():
    """Movements (c/α)² cross LEVEL at α = c/√LEVEL, whatever the grid of a power law."""
    constants = np.array([0.5, 0.7, 0.9])
    found = (constants[:, None] / np.array(experiment.ALPHAS)) ** 2
    exact = np.log(constants / np.sqrt(experiment.LEVEL))
    alpha, error = experiment.boundary(found)
    assert alpha == pytest.approx(np.exp(exact.mean()), rel=1e-12)  # rounding
    assert error == pytest.approx(alpha * exact.std(ddof=1) / np.sqrt(3), rel=1e-12)
    with pytest.raises(RuntimeError, match="enclose"):
        experiment.boundary(found / 1000)


def test_variance_and_its_error():
    """Outputs with one random number a start, F_s = g_s v(x): variance mean v², relative error √(2/(n − 1))
    from n starts."""
    n, repeats = 16, 400
    v = np.linspace(0.5, 1.5, 7)
    g = np.asarray(jax.random.normal(jax.random.key(0), (repeats, n)))
    found = np.array([experiment.variance(row[:, None] * v) for row in g])
    mean, spread = np.mean(v**2), np.sqrt(2 / (n - 1)) * np.mean(v**2)
    assert abs(found[:, 0].mean() - mean) < 4 * spread / np.sqrt(repeats)
    # the jackknife's square is biased upwards by about 1/n, and known to a few per cent from the repeats
    assert np.sqrt(np.mean(found[:, 1] ** 2)) == pytest.approx(spread, rel=0.2)
