"""The one loop over saved times."""

import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from ._checks import fits, times
from .checkpoint import Checkpoint, Ledger
from .dynamics.base import AbstractDynamics, Info
from .progress import bar
from .provenance import provenance
from .run import Row, Run, Status, load, to_host
from .store.records import fingerprint

Observer = Callable[[float, Any], Any]

# Seconds that one piece of an interval should take: short enough for Ctrl-C and a live bar.
_PIECE = (0.1, 0.5)


def evolve(
    dynamics: AbstractDynamics,
    state: Any,
    ts: Any,
    *,
    key: Array | None = None,
    observe: dict[str, Observer] | Iterable[Observer] = (),
    checkpoint: Checkpoint | str | Path | None = None,
    progress: bool | None = None,
    snapshots: bool = True,
) -> Run:
    """Move `state` by `dynamics` and keep what is seen at the times `ts`.

    - `ts`: increasing times >= 0; dynamics in steps snap them to t = kη (`run.t` tells).
    - `key`: seed of all randomness, `jax.random.key(0)` by default.
    - `observe`: functions fn(t, state) → number or array, by name; the risk is always observed.
    - `checkpoint`: a folder, or `wf.Checkpoint(folder, every=seconds)`. The same call goes on from
      what the folder holds, to the same bits as if it had never been stopped.
    - `progress`: a bar on standard error; by default only on a terminal.
    - `snapshots`: whether to keep the state at every saved time (the final one is always kept).

    A run that diverges, stalls or is interrupted (Ctrl-C) comes back with that status and all that
    it had reached."""
    if not isinstance(dynamics, AbstractDynamics):
        raise ValueError(f"evolve needs dynamics such as wf.SGD(R, step=1e-3), got {dynamics!r}.")
    asked = times(ts)
    dynamics.check(asked)
    ts = dynamics.snap(asked)
    key = jax.random.key(0) if key is None else _typed(key)
    observers = _named(observe)
    _check_memory(state, len(ts) if snapshots else 0)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)

    carry = dynamics.init(state, key)
    print_ = fingerprint(dynamics, state, ts, key, list(observers.items()), snapshots) if checkpoint else ""
    ledger = Ledger(checkpoint, print_) if checkpoint else None
    rows: list[Row] = []
    origin = provenance(dynamics, state, key, observers)
    restored = ledger.restore(carry) if ledger else None
    if restored is not None:
        rows, carry, record = restored
        if record["status"] == "ok":
            return load(ledger.path)
        origin = record["provenance"]
    loop = _Loop(dynamics, ts, observers, snapshots, key, rows, carry, state, origin, ledger)
    return loop.run(progress)


class _Loop:
    """The state of one call of `evolve`: what has been seen, and the carry."""

    def __init__(self, dynamics, ts, observers, snapshots, key, rows, carry, start, origin, ledger):
        self.dynamics, self.ts, self.observers, self.snapshots = dynamics, ts, observers, snapshots
        self.key, self.rows, self.carry, self.start = key, rows, carry, start
        self.origin, self.ledger = origin, ledger
        self.current = rows[-1].state if rows and snapshots else start
        self.info: dict[str, Any] = {}
        self.budget = 16
        self.begun = time.monotonic()

    def run(self, progress: bool | None) -> Run:
        status: Status = "ok"
        message = ""
        try:
            with bar(self.dynamics.name, 0.0, float(self.ts[-1]), progress) as update:
                while len(self.rows) < len(self.ts) and status == "ok":
                    status, message = self.reach(float(self.ts[len(self.rows)]), update)
        except KeyboardInterrupt:
            status = "interrupted"
            message = f"Stopped by hand at t = {self.dynamics.time(self.carry):.6g} of {self.ts[-1]:.6g}."
        return self.finish(status, message)

    def reach(self, t: float, update: Callable) -> tuple[Status, str]:
        """Advance to the saved time t and look."""
        while True:
            begun = time.monotonic()
            previous = self.rows[-1].t if self.rows else 0.0
            carry, info = self.dynamics.advance(self.carry, previous, t, self.budget)
            if not info.finite:
                return "diverged", self.explain("The state is no longer finite", t)
            self.carry = carry
            self.note(info)
            if info.stalled:
                return "stalled", self.explain("No further progress was made", t)
            self.pace(time.monotonic() - begun)
            update(self.dynamics.time(carry), float(self.rows[-1].observed["risk"]) if self.rows else None)
            if info.reached:
                break
            self.save_if_due()
        state = self.dynamics.read(self.carry, t)
        observed = self.look(t, state)
        if not np.isfinite(observed["risk"]).all():
            return "diverged", self.explain("The risk is no longer finite", t)
        self.rows.append(Row(t, observed, state if self.snapshots else None))
        self.current = state
        update(t, float(np.mean(observed["risk"])))
        self.save_if_due()
        return "ok", ""

    def look(self, t: float, state: Any) -> dict[str, np.ndarray]:
        seen = _observed(self.dynamics.functional, state)
        seen |= {name: fn(t, state) for name, fn in self.observers.items()}
        return {name: to_host(value) for name, value in seen.items()}

    def pace(self, seconds: float) -> None:
        """Pieces of a fraction of a second; the cut never changes the bits."""
        if seconds < _PIECE[0]:
            self.budget = min(self.budget * 2, 2**30)
        elif seconds > _PIECE[1]:
            self.budget = max(self.budget // 2, 1)

    def note(self, info: Info) -> None:
        self.info |= {"steps": int(info.steps), "rejected": int(info.rejected)}

    def explain(self, what: str, t: float) -> str:
        last = self.rows[-1].t if self.rows else 0.0
        advice = self.dynamics.advice(self.start, self.key)
        return f"{what} between t = {last:.6g} and t = {t:.6g}. {advice}"

    def so_far(self, status: Status, message: str) -> Run:
        return Run(tuple(self.rows), self.current, status, message, dict(self.info), self.origin)

    def save_if_due(self) -> None:
        if self.ledger is not None and self.ledger.due():
            self.save("running", "")

    def save(self, status: Status, message: str) -> None:
        """A checkpoint that cannot be written (a full disk) must not end the run."""
        try:
            self.ledger.write(self.so_far(status, message), self.carry)
            self.info.pop("checkpoint_error", None)
        except OSError as error:
            self.info["checkpoint_error"] = str(error)
            warnings.warn(
                f"The checkpoint in {self.ledger.path} could not be written ({error}); the previous "
                "one is still whole and the run goes on.",
                stacklevel=2,
            )

    def finish(self, status: Status, message: str) -> Run:
        self.info |= self.dynamics.functional.info(self.current)
        self.info["seconds"] = self.info.get("seconds", 0.0) + time.monotonic() - self.begun
        if self.ledger is not None:
            self.save(status, message)
        if status in ("diverged", "stalled"):
            warnings.warn(f"The run {status}. {message}", stacklevel=4)
        return self.so_far(status, message)


_observed = eqx.filter_jit(lambda functional, state: functional.observed(state))


def _typed(key: Array) -> Array:
    if not hasattr(key, "dtype") or not jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise ValueError(f"key must be such as jax.random.key(0), got {key!r}.")
    return key


def _named(observe: Any) -> dict[str, Observer]:
    if callable(observe):
        observe = [observe]
    named = dict(observe) if isinstance(observe, dict) else {fn.__name__: fn for fn in observe}
    for name, fn in named.items():
        if not callable(fn):
            raise ValueError(f"observe[{name!r}] must be a function of (t, state), got {fn!r}.")
        if name in ("risk", "energy"):
            raise ValueError(f"The name {name!r} is taken; give this observer another one.")
    return named


def _check_memory(state: Any, snapshots: int) -> None:
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state) if hasattr(leaf, "nbytes"))
    hint = "Save fewer times, use fewer neurons or float32, or snapshots=False."
    fits(f"A run that keeps {snapshots} snapshots of {size / 2**20:.3g} MiB", size * (snapshots + 6), hint)
