"""The lean explicit steps against diffrax's own."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.dynamics.runge_kutta import Explicit

PROBLEM = wf.Problem(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
RISK = wf.Risk(PROBLEM, wf.Quadrature(6))
START = wf.init(PROBLEM).sample(jax.random.key(3), 5)
RTOL = 1e-7


def by_diffrax(solver, t1, dt0):
    """The same flow by diffrax's solve, with the same tolerances and first step (its own is 0.01 for terms
    that are wrapped, as those of its solve are)."""
    velocity = lambda t, parts, _: RISK.drift(START.with_parts(parts))
    return diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        solver,
        0.0,
        t1,
        dt0,
        START.parts,
        stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=RTOL / 100),
        saveat=diffrax.SaveAt(ts=jnp.array([0.3, t1])),
    )


@pytest.mark.parametrize("solver", [diffrax.Tsit5(), diffrax.Heun()], ids=["reuses slopes", "does not"])
def test_steps_and_states_are_those_of_diffrax(solver):
    t1 = 2.0 if isinstance(solver, diffrax.Tsit5) else 0.5
    flow = wf.GradientFlow(RISK, rtol=RTOL, solver=solver)
    run = wf.evolve(flow, START, [0.3, t1])
    first, _ = flow.advance(flow.init(START, jax.random.key(0)), t1, 1)
    theirs = by_diffrax(solver, t1, first.t)
    # diffrax cuts its last step at t1, ours passes it and reads between: the errors of two steps, each of
    # which is held below 1e-7 |θ|
    for i, row in enumerate(run.rows):
        for ours, other in zip(jax.tree.leaves(row.state.parts), jax.tree.leaves(theirs.ys), strict=True):
            np.testing.assert_allclose(ours, other[i], atol=20 * RTOL)
    # one step more where ours ends just before t1 and diffrax's was cut to end there
    assert 0 <= run.info["steps"] - int(theirs.stats["num_accepted_steps"]) <= 1
    assert run.info["rejected"] == int(theirs.stats["num_rejected_steps"])


@pytest.mark.parametrize(
    "solver",
    [diffrax.Tsit5(), diffrax.Dopri8(), diffrax.Bosh3(), diffrax.Heun()],
    ids=lambda s: type(s).__name__,
)
def test_one_step_is_that_of_diffrax(solver):
    """y' = −y³ componentwise: end, error estimate and dense output to rounding."""
    velocity, y, h = (
        lambda y: jax.tree.map(lambda v: -(v**3), y),
        {"a": jnp.array([1.0, -0.5]), "b": 2.0},
        0.1,
    )
    y = jax.tree.map(jnp.asarray, y)
    term = diffrax.ODETerm(lambda t, y, _: velocity(y))
    state = solver.init(term, 0.0, h, y, None)
    end, error, dense, _, _ = solver.step(term, 0.0, h, y, None, state, False)
    step = Explicit(solver)(velocity, y, velocity(y), h, jnp.float64)
    for ours, theirs in ((step.end, end), (step.error, error), (step.k, dense["k"])):
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            # coefficients of order 10 and values of order 8 cancel: a hundred roundings
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def test_implicit_methods_are_refused():
    with pytest.raises(ValueError, match="explicit"):
        wf.GradientFlow(RISK, solver=diffrax.Kvaerno3())
