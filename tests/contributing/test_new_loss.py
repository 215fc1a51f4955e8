"""A new loss: a class, and a row."""

import jax.numpy as jnp
import pytest

import wideflow as wf
from wideflow.problems.losses import AbstractLoss
from wideflow.vocabulary.losses import LOSSES
from wideflow.vocabulary.word import Kind, Option, Word


# --- the new file, `problems/log_cosh.py` ------------------------------------------------------
class LogCosh(AbstractLoss):
    """ℓ = s² log cosh((y − f)/s), s = `scale`."""

    scale: float = 1.0

    def __call__(self, f, y):
        e = jnp.abs(y - f) / self.scale  # without overflow
        return self.scale**2 * (e + jnp.log1p(jnp.exp(-2 * e)) - jnp.log(2.0))


# --- the row in `vocabulary/losses.py` ---------------------------------------------------------
ROW = Word(
    "log_cosh",
    LogCosh,
    "s² log cosh((y − f)/s), s = `scale`",
    r"\mathrm{E} \, $scale^2 \log \cosh((y - f(x))/$scale)",
    (Option("scale", Kind.POSITIVE, "s, where the parabola ends", 1.0),),
)


@pytest.fixture(autouse=True)
def row(with_row):
    with_row(LOSSES, ROW)


def test_a_problem_knows_it_by_name():
    problem = wf.Problem(
        x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=wf.Neuron("erf"), loss="log_cosh"
    )
    assert isinstance(problem.loss, LogCosh)
    assert float(problem.loss.signal(jnp.array([0.0]), jnp.array([2.0]))[0]) == pytest.approx(
        float(jnp.tanh(2.0))
    )


def test_a_spec_knows_it(text, run_spec):
    done, page = run_spec(text(loss='{ name = "log_cosh", scale = 0.5 }'))
    assert done.results["status"] == "ok" and done.study.whole.loss == LogCosh(0.5)
    assert "cosh" in page
    (run,) = done.runs.values()
    assert run["risk"][-1] < run["risk"][0]


def test_options_of_another_loss_are_told(text, run_spec):
    with pytest.raises(ValueError, match="scale belongs to the log_cosh loss"):
        run_spec(text(loss='{ name = "squared", scale = 0.5 }'))
