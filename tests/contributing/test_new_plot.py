"""A new plot of reports: one function, and a row."""

import numpy as np
import pytest

from wideflow.figures import panels
from wideflow.report.drawing import Drawing


# --- the new file, `report/falling.py` ---------------------------------------------------------
def falling(shown):
    """How fast each risk falls, −d log R/dt."""
    groups = [group for group in shown.ready if len(group.times()) > 1]
    if not groups:
        return []
    with panels(1, width=8.4, height=4.0) as (figure, (axes,)):
        for group in groups:
            rate = -np.gradient(np.log(group.values("risk").mean(axis=0)), group.times())
            axes.plot(group.times(), rate, label=group.name)
        axes.set(xlabel="time t", ylabel="−d log R/dt")
    return [
        Drawing("Rates", "falling", figure, "Rate of fall of the risk against time.", "How fast it falls.")
    ]


@pytest.fixture
def report_with_row(monkeypatch, text, run_spec):
    """The report of a small study, with the row in `report/drawings.py`."""
    from wideflow.report import drawings

    monkeypatch.setitem(drawings.FIGURES, "falling", falling)
    return run_spec(text())


def test_it_is_in_the_report_and_in_its_folder(report_with_row):
    done, page = report_with_row
    assert ">Rates</h2>" in page and "How fast it falls." in page and "Rate of fall of the risk" in page
    for suffix in ("png", "svg"):
        assert (done.folder.figures / f"falling.{suffix}").stat().st_size > 1000
    assert page.index(">Risk</h2>") < page.index(">Rates</h2>") < page.index(">Results</h2>")
