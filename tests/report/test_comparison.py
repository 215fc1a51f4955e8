"""Tables and figures of several runs."""

import errno
import resource

import jax
import numpy as np
import pytest

import wideflow as wf
from exact_cases import linear_neuron
from wideflow.figures import band
from wideflow.run import Row, Run


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


def run_of(risk, t=(0.0, 1.0, 2.0)):
    """A run made by hand, whose risk is a number or one a replica."""
    rows = tuple(Row(float(s), {"risk": np.asarray(v, float)}, None) for s, v in zip(t, risk, strict=True))
    return Run(rows, None, provenance={"dynamics": {"name": "SGD"}})


def test_runs_of_replicas_are_compared(runs):
    """As `evolve` makes them: the table has their mean, the legend their number."""
    case, ts = linear_neuron(), np.linspace(0, 1, 5)
    many = wf.init(case.functional.problem).sample(jax.random.key(0), 3, replicas=2)
    both = wf.compare(flow=runs["flow"], many=wf.evolve(wf.GradientDescent(case.functional, 0.05), many, ts))
    assert f"{both.runs['many']['risk'][-1].mean():.4e}" in both.table()
    assert both.plot().axes[1].lines[0].get_label() == "many, 2 replicas"


REPLICAS = np.array([np.arange(1.0, 12.0), np.arange(2.0, 13.0), np.full(11, 5.0)])  # (times, 11 replicas)


def test_replicas_are_a_median_and_a_band():
    """Of 1, …, 11 the median is 6 and the 10 % and 90 % quantiles 2 and 10; of three the ends are drawn."""
    single, many, few = run_of([8.0, 4.0, 2.0]), run_of(REPLICAS), run_of(REPLICAS[:, :3])
    figure = wf.compare(single=single, many=many, few=few).plot()
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    assert list(lines) == ["single", "many, 11 replicas", "few, 3 replicas"]
    np.testing.assert_allclose(lines["many, 11 replicas"], [6, 7, 5])
    edges = [band.get_paths()[0].vertices[:, 1] for band in figure.axes[0].collections]
    assert [(edge.min(), edge.max()) for edge in edges] == [(2, 11), (1, 5)]


def test_gaps_of_replicas():
    single, many = run_of([8.0, 4.0, 2.0]), run_of(REPLICAS)
    gap = wf.compare(single=single, many=many).gap("many")
    np.testing.assert_allclose(gap, np.abs(REPLICAS - np.array([[8.0], [4.0], [2.0]])))
    back = wf.compare(many=many, single=single)
    np.testing.assert_allclose(back.gap("single"), np.abs(np.array([8.0, 4.0, 2.0]) - REPLICAS.mean(axis=1)))
    assert "5.0000e+00" in back.table()


def test_a_replica_that_diverged_does_not_hide_the_others():
    broken = REPLICAS.copy()
    broken[1:, 0] = np.inf
    low, middle, high = band(broken)
    assert np.isfinite([low, middle, high]).all() and middle[1] == np.median(broken[1, 1:])
    assert np.isnan(band(np.full((2, 3), np.nan))[1]).all()


def test_a_notebook_shows_replicas():
    for shown in (run_of(REPLICAS)._repr_html_(), wf.compare(a=run_of(REPLICAS))._repr_html_()):
        assert "over replicas" in shown
    with pytest.raises(ValueError, match=r"\(3,\) or \(3, replicas\), got \(3, 2, 2\)"):
        wf.compare(a=run_of(np.ones((3, 2, 2)))).plot()


def test_a_full_disk_leaves_the_old_figure(runs, tmp_path):
    """The system refuses a file of more than 1000 bytes; the error has the file's name."""
    comparison, path = wf.compare(**runs), tmp_path / "figure.png"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*figure\.png") as caught:
            comparison.plot(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["figure.png"]
