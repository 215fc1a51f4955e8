"""One problem in several ways, by smaller cases, and that the verdict can fail."""

import numpy as np
import pytest

from wideflow.experiments import several_ways as experiment

LINE = experiment.TWO._replace(cells=(60,), orders=(12, 12))


@pytest.mark.slow
def test_grid_and_movements_agree_with_noise():
    """Both carry −(d−1)/β log r, the one in the potential of cells, the other in the force on quantiles."""
    ways = {
        "grid": experiment.on_grids(LINE, LINE.beta, experiment.DECAY),
        "JKO": experiment.movements(LINE, LINE.beta, experiment.DECAY),
    }
    checks = experiment.checks(LINE, ways, "noise")
    assert len(checks) == 2 and all(check.passed for check in checks)
    theta, weights = np.asarray(ways["JKO"].end.theta)[:, 0], np.asarray(ways["JKO"].end.weights)
    radius = float(ways["grid"].end.mean()[0])
    # the movement's end is of first order in its last step, MOVE/8, of a flow with rates of order 1
    assert abs(float(weights @ theta) - radius) < experiment.MOVE / 4


def test_checks_can_fail():
    here = experiment.Way(np.linspace(1, 0.1, 9), np.full(9, 1e-4), None)
    there = here._replace(risks=here.risks + 0.02)
    assert not any(check.passed for check in experiment.checks(LINE, {"a": here, "b": there}, "noise"))
    assert all(check.passed for check in experiment.checks(LINE, {"a": here, "b": here}, "no noise"))
