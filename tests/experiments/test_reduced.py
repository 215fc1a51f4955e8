"""Every experiment at its reduced size: all of its checks hold, within what that size allows.

`REDUCED` of each experiment has its sizes and tolerances, with the reason beside them. The published sizes
are run by `wideflow reproduce --all`."""

import pytest

from wideflow.experiments.catalogue import EXPERIMENTS
from wideflow.experiments.reproduction import reproduce

# About ten seconds each. The others are minutes together.
QUICK = {"abc-table", "cost-of-noise", "noise-annealing"}
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in EXPERIMENTS]


@pytest.mark.parametrize("name", NAMES)
def test_reduced_run_passes(name, tmp_path):
    (result,) = reproduce([name], tmp_path, reduced=True)
    record = result.record
    assert record.verdict == "PASS", record.error or "\n".join(map(str, record.checks))
    assert record.reduced and (tmp_path / f"{name}.png").stat().st_size > 10_000
    for check in record.checks:
        # a check whose error bar is as wide as what it allows would pass by luck
        # (an exact figure may have an error of 0)
        assert 0 <= check.error < (check.high - check.low) / 4, str(check)
