"""Every method of a spec from end to end: built, estimated, run into a folder, read back, reported."""

import math

import numpy as np
import pytest

from spec.examples import DENSITIES, MASSES
from study.specs import study
from wellformed import well_formed
from wideflow.report.page_of_study import write_report
from wideflow.study.cost import estimates
from wideflow.study.folder import StudyFolder
from wideflow.study.perform import in_precision
from wideflow.study.study import reopened, run_study
from wideflow.vocabulary.methods import METHODS, Moves

SMALL = ["observe={kernel=4,test=8,particles=10}"]
SPECS = {
    "densities": (DENSITIES, []),
    "masses": (MASSES, []),
    "line": (
        DENSITIES,
        [
            "problem={x={law='two_gaussians',d=6,delta=0.5},neuron={activation='relu',output='unit'},reduced=true}",
            "dynamics=[{method='grid_flow',grid={low=0,high=5,cells=40}}]",
        ],
    ),
}


# Densities and masses take half a minute, which most of their programs need to compile.
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name in ("densities", "masses") else name for name in SPECS
]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Each study, run and reported once."""
    made = {}

    def of(name):
        if name not in made:
            text, changes = SPECS[name]
            place = StudyFolder(tmp_path_factory.mktemp(name) / "study")
            made[name] = run_study(study(*changes, *SMALL, text=text), place, progress=False)
            write_report(made[name])
        return made[name]

    return of


pytestmark = pytest.mark.filterwarnings(
    "ignore:JKO blurs", "ignore:.*outermost cells", "ignore:.*of the mass lies"
)


def test_the_examples_hold_every_method_that_is_not_a_plain_network():
    """The others are run in the tests of studies and of presets."""
    used = {m.method for text, _ in SPECS.values() for m in study(text=text).spec.dynamics}
    assert used >= {name for name, word in METHODS.items() if word.moves in (Moves.PARTICLES, Moves.MEASURE)}
    assert used >= {"grid_flow", "langevin", "optax"}


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_run_reported_and_read_back(done, name):
    found = done(name)
    assert [run.status for run in found.runs.values()] == ["ok"] * len(found.study.cases)
    for case in found.study.cases:
        run = found.runs[case.slug]
        density = case.method.box is not None
        assert np.isfinite(run["risk"]).all()
        assert ("density" in run) == density and ("cloud" in run) != density
        assert ("weight_movement" in run) == (not density and not case.method.word.relabels)
        assert ("kernel_movement" in run) == (not found.study.spec.problem.reduced)
    again = reopened(found.folder)
    assert again.results == found.results
    page = found.folder.report.read_text(encoding="utf-8")
    well_formed(page)
    for method in found.study.spec.dynamics:
        assert method.word.called[:12] in page and method.called in page


@pytest.mark.parametrize("name", SPECS)
def test_what_they_take_is_estimated(name):
    text, changes = SPECS[name]
    made = study(*changes, *SMALL, text=text)
    with in_precision(made.spec):
        for cost in estimates(made):
            assert 0 < cost.seconds < math.inf and cost.bytes > 0 and cost.operations > 0


def test_the_density_that_is_drawn_is_the_marginal_of_the_state(done):
    """In the order of the axes that were asked for; and it has all the mass."""
    found = done("densities")
    case = next(c for c in found.study.cases if c.method.called == "density")
    run, (first, second) = found.runs[case.slug], found.study.cloud
    last = run["density"][-1]
    np.testing.assert_allclose(run["density"].sum((1, 2)), 1.0, rtol=1e-12)  # sums of some hundred masses
    np.testing.assert_allclose(
        last.sum(1),
        np.asarray(run.final.marginal(first) * run.final.widths[run.final.index(first)]),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        last.sum(0),
        np.asarray(run.final.marginal(second) * run.final.widths[run.final.index(second)]),
        rtol=1e-12,
    )


def test_points_stand_for_the_measure_where_masses_move():
    """Where one of two places has nearly all mass, nearly all points are drawn there."""
    from wideflow.study.observers import _representatives

    np.testing.assert_array_equal(_representatives(np.full(5, 0.2), 3), [0, 1, 2])
    mass = np.array([0.05, 0.9, 0.05])
    picked = _representatives(mass, 2)
    np.testing.assert_array_equal(picked, [1, 1])
    many = _representatives(np.repeat(mass / 100, 100), 100)
    np.testing.assert_allclose(np.histogram(many, [0, 100, 200, 300])[0], [5, 90, 5], atol=1)
