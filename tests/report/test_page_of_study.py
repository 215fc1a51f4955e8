"""The report of one small study: what it holds, whose numbers these are, and how it behaves in a browser."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from spec.examples import EXAMPLES
from wellformed import text_of, well_formed
from wideflow.page.numbers import plus_minus, short
from wideflow.page.parts import equation
from wideflow.references import REFERENCES
from wideflow.report import words
from wideflow.report.curves import gaps, risks
from wideflow.report.drawing import Shown
from wideflow.report.page_of_studies import page as page_of_studies
from wideflow.report.page_of_studies import side_by_side
from wideflow.report.page_of_study import write_report
from wideflow.spec.kinds import Activation
from wideflow.spec.reading import read
from wideflow.study.build import build
from wideflow.study.cases import Case
from wideflow.study.folder import StudyFolder
from wideflow.study.groups import grouped
from wideflow.study.perform import in_precision
from wideflow.study.study import reopened, run_study
from wideflow.vocabulary.activations import ACTIVATIONS
from wideflow.vocabulary.methods import METHODS

SPEC = """
title = "A <small> study & its page"
about = "What it *teaches*."
[problem]
x = { law = "gaussian", d = 4 }
target = { kind = "single_index", link = "erf" }
neuron = "erf"
[times]
end = 2.0
count = 5
[[dynamics]]
name = "limit"
method = "limit"
tol = 1e-2
probes = 32
[[dynamics]]
name = "net"
method = "sgd"
step = 0.02
width = [8, 16, 32]
seeds = 2
[[dynamics]]
name = "lazy"
method = "sgd"
step = 0.02
width = 32
alpha = "sqrt(n)"
linearised = true
seeds = 2
[observe]
kernel = 8
test = 16
particles = 50
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The study, run and reported once."""
    spec = read(SPEC)
    place = StudyFolder(tmp_path_factory.mktemp("study") / "small")
    with in_precision(spec):
        found = run_study(build(spec, Path()), place, progress=False)
    write_report(found)
    return found


@pytest.fixture(scope="module")
def text(done):
    return done.folder.report.read_text(encoding="utf-8")


def test_the_page_is_whole_and_small_and_asks_for_nothing(text):
    assert well_formed(text)
    assert len(text) < 6e6
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
    assert "A &lt;small&gt; study &amp; its page" in text and "<small>" not in text


def test_it_says_what_was_run_and_what_came_out(done, text):
    for title in ("Verdict", "What was run", "Risk", "Neurons", "How far it moved", "Results", "Provenance"):
        assert f">{title}<" in text
    assert 'class="wf-player"' in text and "<math" in text and "data:image/svg+xml" in text
    assert all(REFERENCES[key][:20] in text for key in done.results["sources"])
    assert "jax" in text and "probes = 32" in text  # versions, and the resolved spec


def test_the_numbers_on_the_page_are_those_of_the_results(done, text):
    plain = text_of(text)
    for group in done.results["groups"]:
        for key in ("risk", "kernel movement", "weight movement", "risk gap to limit"):
            entry = group[key]
            if entry is not None:
                value, error = entry["value"], entry["error"]
                assert (plus_minus(value, error) if error else short(value)) in plain
    assert json.loads((done.folder.path / "results.json").read_text()) == done.results


def test_the_figures_are_files_too(done):
    names = {path.name for path in done.folder.figures.iterdir()}
    for name in ("risk", "gap-to-limit", "movement", "features", "widths"):
        assert {f"{name}.png", f"{name}.svg"} <= names


def test_what_is_drawn_is_what_was_seen(done):
    """Lines are means over seeds and bands one standard deviation; gaps are to the limit's own risk."""
    groups = grouped(done.study.cases, done.runs)
    axes = risks(Shown(groups))[0].figure.axes[0]
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    far = {line.get_label(): line.get_ydata() for line in gaps(Shown(groups))[0].figure.axes[0].lines}
    limit = np.asarray(done.runs["limit"]["risk"])
    bands = iter(axes.collections)
    for group in groups:
        seen = np.array([run["risk"] for run in group.runs], float)
        np.testing.assert_allclose(lines[group.name], seen.mean(axis=0))
        if len(seen) > 1:
            top = next(bands).get_paths()[0].vertices[:, 1].max()
            assert np.isclose(top, (seen.mean(axis=0) + seen.std(axis=0, ddof=1)).max())
            np.testing.assert_allclose(far[group.name], np.abs(seen - limit).mean(axis=0))


def test_a_report_can_be_written_again(done, text):
    write_report(reopened(done.folder))
    assert done.folder.report.read_text(encoding="utf-8") == text


def test_studies_side_by_side(done):
    rows = side_by_side([done, done])
    assert len(rows) == 2 * len(done.results["groups"])
    made = page_of_studies([done, done])
    assert well_formed(made) and "The specs are the same." in made


def methods_of_examples():
    """Every entry of the dynamics of all examples, by its method."""
    return [(spec, method) for spec in map(read, EXAMPLES.values()) for method in spec.dynamics]


def test_every_method_activation_and_loss_has_its_words():
    """One that had none would be found out when the runs are done, and their report is to be written."""
    found = methods_of_examples()
    assert {method.method for _, method in found} == set(METHODS)
    for _, method in found:
        case = Case(method, "0", method.called, method.widths[0], 1.0, None, 0)
        for deep in (False, True):
            formula, said = words.method(case, method.widths, ["α = 1"], method.repeats, deep)
            assert equation(formula) and said
    for name in ACTIVATIONS:
        assert equation(words.phi(Activation(name=name, degree=2, knots=[[0.0, 0.0], [1.0, 1.0]])))
    for spec in map(read, EXAMPLES.values()):
        assert equation(words.loss(spec)) and equation(words.target(spec) or "x") and words.start(spec)


def words_of(**fields):
    """(equation, words) of one entry of the dynamics."""
    shown = "\n".join(f"{key} = {value}" for key, value in fields.items())
    method = read(SPEC + "\n[[dynamics]]\n" + shown).dynamics[-1]
    case = Case(method, "0", method.called, method.widths[0], 1.0, None, 0)
    return words.method(case, method.widths, ["α = 1"], method.repeats)


def test_what_is_said_of_noise():
    langevin = dict(method='"langevin"', step=0.1, width=7)
    formula, said = words_of(beta=20.0, decay=0.3, **langevin)
    assert r"\sqrt{2\eta/\beta}" in formula
    assert said == "noisy gradient descent (Langevin); n = 7, α = 1, η = 0.1, β = 20, λ = 0.3"
    formula, said = words_of(beta="inf", **langevin)
    assert r"\sqrt" not in formula and "without noise" in said and "β = ∞" in said
    _, said = words_of(beta="{ start = 1, end = 100, over = 0.5 }", noise_on='["w1", "a"]', **langevin)
    assert "β from 1 to 100 by t = 0.5 (geometric)" in said and "noise on = w1, a" in said


def test_what_is_said_of_densities_and_optimisers():
    formula, said = words_of(method='"grid_flow"', grid="{ low = -1, high = [1, 2], cells = 10 }")
    assert r"\Delta" not in formula and "without noise; 100 cells, α = 1" in said
    formula, said = words_of(method='"optax"', optimiser='"lion"', step=0.1, width=7)
    assert r"\mathrm{sign}" in formula and "n = 7" in said


def test_play_slider_and_quiet_in_a_browser(done, browser_page, tmp_path):
    tab = browser_page.open(done.folder.report)
    button, slider, time = (tab.page.locator(f".wf-{name}") for name in ("play", "slider", "time"))
    before = tab.ink()
    button.click()
    tab.until("document.querySelector('.wf-slider').value >= 2")
    button.click()
    assert tab.drawn().ink()[0] != before[0] and time.inner_text() != "t = 0"
    slider.focus()
    tab.page.keyboard.press("Home")
    assert time.inner_text() == "t = 0" and tab.drawn().ink() == before
    tab.page.keyboard.press("End")
    assert math.isclose(float(time.inner_text().removeprefix("t = ")), 2.0)
    assert tab.overflow() == 0
    tab.page.screenshot(path=tmp_path / "report.png", full_page=True)
    assert len(tab.page.pdf()) > 10_000
    assert tab.open(done.folder.report, width=400).overflow() == 0
    fits = "Array.from(document.images, i => i.getBoundingClientRect().right <= window.innerWidth)"
    assert all(tab.page.evaluate(fits))  # no figure is cut, and none needs to be scrolled
    boxes = "Array.from(document.querySelectorAll('.wf-table .wf-box'), b => getComputedStyle(b).overflowX)"
    assert set(tab.page.evaluate(boxes)) == {"auto"}
    assert not tab.trouble and not tab.outside(), tab.trouble
