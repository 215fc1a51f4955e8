"""Tables and figures of several runs."""

import numpy as np
import pytest

import wideflow as wf
from exact_cases import linear_neuron


@pytest.fixture(scope="module")
def runs():
    case, ts = linear_neuron(), np.linspace(0, 1, 5)
    flow = wf.evolve(wf.GradientFlow(case.functional), case.start, ts)
    return {"flow": flow, "descent": wf.evolve(wf.GradientDescent(case.functional, 0.05), case.start, ts)}


def test_gap_and_table(runs):
    comparison = wf.compare(**runs)
    gap = comparison.gap("descent")
    assert np.allclose(gap, np.abs(runs["descent"]["risk"] - runs["flow"]["risk"]), rtol=0, atol=1e-12)
    table = comparison.table()
    assert all(word in table for word in ("flow", "descent", "GradientDescent", f"{gap.max():.2e}"))
    assert repr(comparison) == table


def test_plot_is_written(runs, tmp_path):
    figure = wf.compare(**runs).plot(tmp_path / "new" / "figure.png")
    assert (tmp_path / "new" / "figure.png").read_bytes()[:4] == b"\x89PNG"
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["time t", "time t"] and all(axes.get_ylabel() for axes in figure.axes)


def test_bad_input(runs):
    with pytest.raises(ValueError, match="at least one run"):
        wf.compare()
    with pytest.raises(ValueError, match=r"compare\(net=…\) needs a wf.Run"):
        wf.compare(net=3)
