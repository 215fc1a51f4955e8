"""A new activation with its dual: a function that makes it, and a row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.problems.activations import Activation
from wideflow.problems.duals import closed_dual, closed_mean
from wideflow.vocabulary.activations import ACTIVATIONS
from wideflow.vocabulary.word import Kind, Option, Word


# --- the new file, `problems/wave.py` ----------------------------------------------------------
def wave(pitch: float = 1.0) -> Activation:
    """sin(pitch·h), with E φ(u)φ(v) = e^{−p²(q1+q2)/2} sinh(p²q12) and E φ(μ + √v z) = e^{−p²v/2} sin(pμ)."""
    return _made(float(pitch))


def _memory(make):
    made = {}
    return lambda pitch: made.setdefault(pitch, make(pitch))


@_memory
def _made(p: float) -> Activation:
    fn = lambda h: jnp.sin(p * h)
    dual = lambda q1, q2, q12: jnp.exp(-(p**2) * (q1 + q2) / 2) * jnp.sinh(p**2 * q12)
    mean = lambda mu, v: jnp.exp(-(p**2) * v / 2) * jnp.sin(p * mu)
    return Activation("wave", fn, (("pitch", p),), dual=dual, mean=mean)


# --- the row in `vocabulary/activations.py` ----------------------------------------------------
ROW = Word("wave", wave, "sin(pitch·h)", r"\sin($pitch h)", (Option("pitch", Kind.NUMBER, "its pitch", 1.0),))


@pytest.fixture
def phi(with_row):
    with_row(ACTIVATIONS, ROW)
    return wf.activation("wave", pitch=1.5)


def test_it_goes_by_its_name(phi):
    assert phi == wf.activation("wave", pitch=1.5) and phi(jnp.ones(())) == jnp.sin(1.5)
    with pytest.raises(ValueError, match=r"'wave' has no option \['tone'\]; it takes pitch"):
        wf.activation("wave", tone=3)


def test_its_dual_is_taken_and_right(phi):
    """Against 4·10⁶ draws, whose standard error is below 5e-4 (|φφ| ≤ 1)."""
    dual, mean = closed_dual(phi, phi), closed_mean(phi)
    assert dual is not None and mean is not None
    z = jax.random.normal(jax.random.key(0), (2, 4_000_000))
    u, v = z[0], 0.6 * z[0] + 0.8 * z[1]
    assert float(dual(1.0, 1.0, 0.6)) == pytest.approx(float(jnp.mean(phi(u) * phi(v))), abs=2e-3)
    assert float(mean(0.3, 1.0)) == pytest.approx(float(jnp.mean(phi(0.3 + u))), abs=2e-3)


def test_infinite_width_and_closed_risks_use_it(phi):
    """The kernel at n = ∞ is that of sin with weights 1.5 times as large: φ_p(w·x) = sin(p w·x)."""
    x = np.random.default_rng(0).normal(size=(3, 2))
    ours = wf.infinite_kernels(wf.MLP(2, 1, phi), x).nngp
    scaled = wf.infinite_kernels(wf.MLP(2, 1, "sin"), 1.5 * x).nngp
    np.testing.assert_allclose(ours, scaled, rtol=1e-12)  # the same formula in another order
    problem = wf.Problem(x=wf.Gaussian(2), target=wf.single_index(phi), neuron=wf.Neuron(phi))
    closed, sampled = wf.Risk(problem, wf.ClosedForm()), wf.Risk(problem, wf.Quadrature(60))
    rho = wf.init(problem).sample(jax.random.key(0), 5)
    assert float(closed.value(rho)) == pytest.approx(float(sampled.value(rho)), rel=1e-9)  # entire functions


def test_a_spec_knows_it(phi, text, run_spec):
    done, page = run_spec(text(neuron='{ activation = { name = "wave", pitch = 1.5 } }'))
    assert done.results["status"] == "ok" and done.study.whole.neuron.activation == phi
    assert "sin" in page
    from wideflow.spec.reference import text as reference
    from wideflow.spec.schema import text as schema

    assert "| `wave` | sin(pitch·h) | `pitch`: its pitch |" in reference() and '"wave"' in schema()


def test_its_runs_load_again(phi, text, run_spec):
    done, _ = run_spec(text(neuron='{ activation = "wave" }'))
    (case,) = done.study.cases
    again = wf.load(done.folder.run(case))
    assert again.final.neuron.activation == wf.activation("wave")
