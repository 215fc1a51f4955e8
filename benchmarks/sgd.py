"""One-pass SGD with batch 1 against loops in numba and PyTorch."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import torch

import wideflow as wf

from . import numba_loops, torch_loops
from .rows import Row, interleaved, microseconds, ratios, seconds

N, D, ETA = 800, 40, 1e-4
STEPS, TORCH_STEPS = 50_000, 2_000
TUNED = "numba tuned by hand"


def _start(activation: str) -> tuple[wf.Problem, wf.Particles]:
    target = wf.single_index("tanh")
    problem = wf.Problem(x=wf.Gaussian(D), target=target, neuron=wf.Neuron(activation))
    return problem, wf.init(problem).sample(jax.random.key(0), N, dtype=jnp.float32)


def _parts(state: wf.Particles) -> tuple[np.ndarray, np.ndarray]:
    return np.array(state.parts.a), np.array(state.parts.w, order="C")


def _ours(problem: wf.Problem, state: wf.Particles) -> Callable[[], None]:
    dynamics = wf.SGD(wf.Risk(problem, wf.Sample(64)), ETA, batch=1)
    carry = dynamics.init(state, jax.random.key(1))

    def run() -> None:
        nonlocal carry
        carry, info = dynamics.advance(carry, (int(carry.k) + STEPS) * ETA)
        jax.block_until_ready(carry.state.parts)
        assert info.finite and info.reached

    return run


def _numba(run: Callable, state: wf.Particles) -> Callable[[], None]:
    a, w = _parts(state)
    return lambda: run(a, w, STEPS, np.float32(ETA))


def _torch(make: Callable, threads: int, activation: str, state: wf.Particles) -> Callable[[], None]:
    a, w = (torch.tensor(p) for p in _parts(state))
    run, w = make(activation), w.T.contiguous()

    def call() -> None:
        torch.set_num_threads(threads)
        torch_loops.loop(run, a, w, TORCH_STEPS, ETA)

    return call


def measure(quick: bool) -> list[Row]:
    """Seconds a step of the same SGD: n = 800, d = 40, batch 1, fresh x each step, float32.

    Peers: (a) a good numba loop, fastmath, neurons along the last axis, loops that LLVM vectorises;
    (b) the same unrolled by hand, with a vectorisable tanh and a faster generator, which nobody writes
    at first: no ratio is asked for, it shows what is left; (c) a PyTorch loop with autograd; (d) a PyTorch
    loop with the gradient written by hand, for which no ratio is asked either; PyTorch on one thread or
    two, whichever is faster. Every peer's step is checked against
    wideflow's velocity. numba draws with NumPy's generators and wideflow with JAX's counter-based one,
    inside the timed part both; PyTorch draws all steps at once, in its favour. wideflow is called as a
    user does, with its check for finite numbers at the end. Steps this short run on one thread, in
    numba and in JAX alike (its CPU time was seen to be its wall time)."""
    rows, trials = [], 3 if quick else 15
    for activation in ("relu", "tanh", "erf"):
        problem, state = _start(activation)
        ours = _ours(problem, state)
        rows += _against_numba(activation, state, ours, trials)
        rows += _against_torch(activation, state, ours, trials)
    return rows


def _against_numba(activation: str, state: wf.Particles, ours: Callable, trials: int) -> list[Row]:
    plain = numba_loops.plain_step(numba_loops.PLAIN[activation])
    steps, loops = {"numba": plain}, {"numba": numba_loops.plain_loop(plain)}
    if activation in numba_loops.TUNED:
        tuned = numba_loops.tuned_step(numba_loops.TUNED[activation])
        steps[TUNED], loops[TUNED] = tuned, numba_loops.tuned_loop(tuned)
    _check_steps(activation, state, steps)
    turns = interleaved({name: _numba(run, state) for name, run in loops.items()} | {"ours": ours}, trials)
    rows = []
    for peer in loops:
        asked = 1.0 if peer == "numba" and activation != "erf" else None
        note = _times(turns, peer, STEPS)
        rows.append(Row(f"SGD {activation}, times faster than {peer}", ratios(turns, peer), asked, note=note))
    return rows


def _against_torch(activation: str, state: wf.Particles, ours: Callable, trials: int) -> list[Row]:
    """A heat finds whether one thread or two serve PyTorch better; the better then runs interleaved."""
    rows = []
    for make, asked in ((torch_loops.by_autograd, 10.0), (torch_loops.by_hand, None)):
        heat = {threads: _torch(make, threads, activation, state) for threads in (1, 2)}
        best = min(heat, key=lambda threads: min(seconds(heat[threads]) for _ in range(3)))
        turns = interleaved({"torch": heat[best], "ours": ours}, trials)
        note = f"{_times(turns, 'torch', TORCH_STEPS)}; torch on {best} thread(s)"
        name = f"SGD {activation}, times faster than torch {make.__name__.replace('_', ' ')}"
        found = ratios(turns, "torch", scale=STEPS / TORCH_STEPS)
        rows.append(Row(name, found, asked, note=note))
    return rows


def _times(turns: list[dict[str, float]], peer: str, steps: int) -> str:
    return (
        f"{microseconds(turns, peer, steps):.3g} against {microseconds(turns, 'ours', STEPS):.3g} µs a step"
    )


def _check_steps(activation: str, state: wf.Particles, numba_steps: dict[str, Callable]) -> None:
    """One step of every peer from the same start on the same (x, y), with a large η."""
    x, eta = np.random.default_rng(0).standard_normal(D).astype(np.float32), np.float32(0.5)
    y = np.tanh(x[0])
    one_row = wf.Problem(x=wf.Dataset(x[None], y[None]), neuron=wf.Neuron(activation))
    moved = wf.evolve(wf.GradientDescent(wf.Risk(one_row), float(eta)), state, [float(eta)]).final
    wanted = np.concatenate([v.ravel() for v in _parts(moved)])

    def check(name: str, a: np.ndarray, w: np.ndarray) -> None:
        error = np.max(np.abs(np.concatenate([a, w.ravel()]) - wanted))
        assert error < 1e-5, f"a step of {name} differs from wideflow's by {error:.1e}"

    for name, step in numba_steps.items():
        a, w = _parts(state)
        step(a, w, x, y, eta, np.empty(N, np.float32), np.empty(N, np.float32))
        check(name, a, w)
    for make in (torch_loops.by_hand, torch_loops.by_autograd):
        a, w = (torch.tensor(p) for p in _parts(state))
        w = w.T.contiguous()
        make(activation)(a, w, torch.tensor(x[None]), torch.tensor(y[None]), float(eta))
        check(make.__name__, a.detach().numpy(), w.detach().numpy().T)
