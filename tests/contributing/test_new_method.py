"""A new method of specs: a constructor of a dynamics, and a row."""

import pytest

import wideflow as wf
from wideflow.dynamics.descent import Descent
from wideflow.vocabulary.methods import METHODS, Method, Moves
from wideflow.vocabulary.word import Kind, Option


# --- the new file, `dynamics/impatient.py` -----------------------------------------------------
def Impatient(functional, step: float, *, haste: float = 2.0) -> Descent:  # noqa: N802
    """θ_j ← θ_j − (cη/α)∇Ψ(θ_j; ρ), c = `haste`: descent of cF."""
    return wf.GradientDescent(haste * functional, step)


# --- the row in `vocabulary/methods.py` --------------------------------------------------------
ROW = Method(
    "impatient",
    Impatient,
    "θ_j ← θ_j − (cη/α)∇Ψ(θ_j; ρ), c = `haste`",
    r"\theta_j \leftarrow \theta_j - \tfrac{$haste \eta}{\alpha} \nabla \Psi(\theta_j; \rho)",
    (
        Option("step", Kind.POSITIVE, "step size η; time is t = kη", symbol="η"),
        Option("haste", Kind.POSITIVE, "factor c of the velocity", 2.0, "c"),
    ),
    sources=("chizat2018",),
    moves=Moves.NETWORK,
    called="impatient descent",
)


@pytest.fixture(autouse=True)
def row(with_row):
    with_row(METHODS, ROW)


def test_a_spec_knows_it(text, run_spec):
    """Descent with steps twice as long, as one would do it by hand."""
    done, page = run_spec(text(dynamics='method = "impatient"\nhaste = 3.0'))
    (case,), (run,) = done.study.cases, done.runs.values()
    assert run.status == "ok" and "impatient descent" in page and "c = 3" in page
    by_hand = wf.evolve(wf.GradientDescent(done.study.risk, 0.3), done.study.state(case), [0.0, 0.6])
    assert float(done.study.risk.value(run.final)) == pytest.approx(float(by_hand["risk"][-1]), rel=1e-12)


def test_what_it_does_not_take_is_told_with_field_and_line(text, run_spec):
    with pytest.raises(ValueError, match=r"spec.toml:16: dynamics.impatient.batch: unknown key") as caught:
        run_spec(text(dynamics='method = "impatient"\nbatch = 3'))
    assert "haste" in str(caught.value)


def test_it_is_in_the_reference():
    from wideflow.spec.reference import text as reference

    assert "method = `impatient`" in reference() and "Impatient descent. θ_j ←" in reference()
