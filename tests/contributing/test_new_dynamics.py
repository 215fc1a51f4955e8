"""A new dynamics: one class, which says how a velocity becomes a step, and everything else is there."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.dynamics.batches import FullBatch
from wideflow.dynamics.descent import Descent
from wideflow.dynamics.rules import AbstractRule


# --- the new file, `dynamics/heun.py` ----------------------------------------------------------
class HeunRule(AbstractRule):
    """θ ← θ + η(v(θ) + v(θ + ηv(θ)))/2."""

    def update(self, force, state, memory, at):
        moved = lambda steps: state.with_parts(
            jax.tree.map(lambda part, *by: part + sum(by), state.parts, *steps)
        )
        half = lambda where: force.drift(where, at.step / 2)
        first = half(state)
        return moved([first, half(moved([first, first]))]), memory


def Heun(functional, step: float) -> Descent:  # noqa: N802
    """θ ← θ + η(v(θ) + v(θ + ηv(θ)))/2, v = −(1/α)∇Ψ: Heun's method for the flow, of order 2 in η."""
    return Descent(functional, step, FullBatch(), HeunRule(), "Heun")


# -----------------------------------------------------------------------------------------------
PROBLEM = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
RISK, RHO0, KEY = wf.Risk(PROBLEM), wf.init(PROBLEM), jax.random.key(0)
STEP, TS = 2.0**-4, [0.0, 0.5, 1.0]


@pytest.fixture(scope="module")
def start():
    return RHO0.sample(KEY, 4)


def test_it_is_of_second_order(start):
    """Against the adaptive flow at 1e-11. Halving η divides the error by 4, and by 4 ± 15 % at these η."""
    exact = wf.evolve(wf.GradientFlow(RISK, rtol=1e-11), start, [1.0]).final.theta
    ends = [wf.evolve(Heun(RISK, step), start, [1.0]).final.theta for step in (2 * STEP, STEP, STEP / 2)]
    errors = [float(jnp.max(jnp.abs(end - exact))) for end in ends]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.15)


def test_replicas_move_as_they_would_alone(start):
    many = RHO0.sample(KEY, 4, replicas=2)
    run = wf.evolve(Heun(RISK, STEP), many, TS, key=KEY)
    assert run["risk"].shape == (3, 2)
    for r in range(2):
        alone = wf.evolve(Heun(RISK, STEP), many.replica(r), TS)
        # the same operations, which a program for two may do in another order
        np.testing.assert_allclose(run.replica(r).final.theta, alone.final.theta, rtol=1e-12, atol=1e-12)


def test_advance_is_pure(start):
    """Two pieces, jitted, are what one is, to the rounding of another program."""
    dynamics = Heun(RISK, STEP)
    advance = eqx.filter_jit(lambda carry, t: dynamics.advance(carry, t))
    whole, info = dynamics.advance(dynamics.init(start, KEY), 1.0)
    half, _ = advance(dynamics.init(start, KEY), jnp.asarray(0.5))
    again, _ = advance(half, jnp.asarray(1.0))
    assert bool(info.reached) and int(info.steps) == 16
    np.testing.assert_allclose(again.state.theta, whole.state.theta, rtol=1e-14)


def test_a_killed_run_goes_on(start, tmp_path):
    calls = []

    def stop(t, state):
        calls.append(t)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return jnp.zeros(())

    observer = wf.named("count", stop)
    call = lambda: wf.evolve(
        Heun(RISK, STEP), start, TS, observe={"count": observer}, checkpoint=tmp_path / "run"
    )
    first = call()
    assert first.status == "interrupted" and len(first.t) == 1
    second = call()
    assert second.status == "ok"
    assert np.array_equal(second.final.theta, wf.evolve(Heun(RISK, STEP), start, TS).final.theta)


def test_linearised_takes_it(start):
    run = wf.evolve(wf.Linearised(Heun(RISK, STEP)), start, TS)
    assert run.status == "ok" and run["risk"][-1] < run["risk"][0]
