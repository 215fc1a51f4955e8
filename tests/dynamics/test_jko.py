"""What the minimising movement must do as a dynamics, whatever its scheme."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from dynamics.jko_cases import JKO, erf_risk
from loop_cases import ctrl_c
from store.cases import assert_same_bits

LINE, PLANE = erf_risk(1), erf_risk(2)


def cloud(risk, n=8):
    return wf.init(risk.problem, theta=wf.laws.Normal(0.2, 0.8)).sample(jax.random.key(1), n)


def density():
    return wf.on_grid(wf.init(LINE.problem, theta=wf.laws.Normal(0.2, 0.5)), -4.0, 4.0, 40)


CASES = {
    "Quantiles": (lambda step: JKO(LINE, step, beta=5.0, decay=0.1), lambda: cloud(LINE)),
    "Proximal": (lambda step: JKO(PLANE, step, decay=0.1), lambda: cloud(PLANE)),
    "Splitting": (lambda step: JKO(PLANE, step, beta=5.0, decay=0.1), lambda: cloud(PLANE)),
    "Entropic": (lambda step: JKO(LINE, step, beta=5.0, decay=0.1), density),
}
every_scheme = pytest.mark.parametrize("scheme", CASES)


@every_scheme
def test_contract(scheme, tmp_path):
    """Times snap to kτ; a run that is stopped goes on to the same bits; no number compiles anew."""
    make, start = CASES[scheme][0], CASES[scheme][1]()
    dynamics = make(0.125)
    assert type(dynamics.scheme(start)).__name__ == scheme
    call = {"dynamics": dynamics, "state": start, "ts": [0.0, 0.3, 1.0], "key": jax.random.key(2)}
    whole = wf.evolve(**call)
    assert whole.status == "ok" and np.array_equal(whole.t, [0.0, 0.25, 1.0]) and whole.info["steps"] == 8
    assert all(
        np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (whole.states[0], start)), strict=True)
    )
    assert whole["energy"][-1] != whole["energy"][0]
    with ctrl_c(at=2):
        assert wf.evolve(**call, checkpoint=tmp_path / "run").status == "interrupted"
    assert_same_bits(wf.evolve(**call, checkpoint=tmp_path / "run"), whole)
    compiled = []
    listener = lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        wf.evolve(make(0.2), start, [0.2, 0.6], key=jax.random.key(3))
        assert compiled == []
    finally:
        jax.monitoring.clear_event_listeners()


@every_scheme
def test_pieces_and_keys(scheme):
    """Cut after every step, the bits are the same; another key changes the split scheme alone."""
    make, start = CASES[scheme][0], CASES[scheme][1]()
    dynamics, ends = make(0.125), []
    for seed, budget in ((0, 100), (0, 1), (1, 100)):
        carry, reached = dynamics.init(start, jax.random.key(seed)), False
        while not reached:
            carry, info = dynamics.advance(carry, 0.5, budget)
            reached = info.reached
        assert int(carry.k) == 4 and dynamics.time(carry) == 0.5
        ends.append([np.asarray(v) for v in jax.tree.leaves(carry.state)])
    same = lambda a, b: all(np.array_equal(v, w) for v, w in zip(a, b, strict=True))
    assert same(ends[0], ends[1])
    assert same(ends[0], ends[2]) == (scheme != "Splitting")


@pytest.mark.parametrize("scheme", ["Quantiles", "Splitting", "Entropic"])
def test_float32_stays_float32(scheme):
    start = jax.tree.map(lambda v: v.astype(jnp.float32), CASES[scheme][1]())
    run = wf.evolve(CASES[scheme][0](0.125), start, [0.25])
    assert run.status == "ok" and run.final.theta.dtype == run.final.weights.dtype == np.float32


def test_an_unsolved_step_is_told():
    """A tolerance that rounding does not allow."""
    with pytest.warns(UserWarning, match="did not reach its tolerance.*or a larger tol"):
        run = wf.evolve(JKO(PLANE, 0.5, tol=1e-30), cloud(PLANE), [1.0])
    assert run.status == "stalled"


def test_bad_input():
    with pytest.raises(ValueError, match=r"JKO needs a functional such as wf.Risk\(problem\), got a Problem"):
        JKO(LINE.problem, 0.1)
    with pytest.raises(ValueError, match=r"JKO\(step\) must be a number > 0, got 0"):
        JKO(LINE, 0)
    with pytest.raises(ValueError, match=r"beta must be a number > 0 or inf, got -1"):
        JKO(LINE, 0.1, beta=-1)
    with pytest.raises(ValueError, match=r"JKO\(tol\) must be a number > 0"):
        JKO(LINE, 0.1, tol=0.0)
    with pytest.raises(ValueError, match=r"blurs by less than a cell of size 0.2.*allowed is 0.02 or more"):
        wf.evolve(JKO(LINE, 0.1, epsilon=1e-3), density(), [0.1])
    with pytest.raises(ValueError, match=r"JKO\(epsilon\) is the blur of a wf.GridDensity"):
        wf.evolve(JKO(LINE, 0.1, epsilon=0.1), cloud(LINE), [0.1])
    with pytest.raises(ValueError, match=r"Only a wf.GridDensity is blurred"):
        JKO(LINE, 0.1).blur(cloud(LINE))
    with pytest.raises(ValueError, match="both are step 1"):
        wf.evolve(JKO(LINE, 0.1), cloud(LINE), [0.1, 0.11])


def test_bad_states():
    twice = wf.Particles(np.array([[0.0], [1.0], [1.0], [2.0]]), neuron=LINE.problem.neuron)
    with pytest.raises(ValueError, match="1 of 4 are at the place of another"):
        wf.evolve(JKO(LINE, 0.1, beta=1.0), twice, [0.1])
    weightless = wf.Particles(np.eye(2), [1.0, 0.0], neuron=PLANE.problem.neuron)
    with pytest.raises(ValueError, match="weight > 0, but 1 of 2 have none"):
        wf.evolve(JKO(PLANE, 0.1), weightless, [0.1])
    with pytest.raises(ValueError, match="needs 4 particles or more, got 3"):
        wf.evolve(JKO(LINE, 0.1, beta=1.0), cloud(LINE, 3), [0.1])
    with pytest.raises(ValueError, match=r"JKO moves wf.Particles or a wf.GridDensity"):
        wf.evolve(JKO(LINE, 0.1), lambda x: x[:, 0], [0.1])
