"""The one loop over saved times."""

import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from ._checks import fits, times
from ._checks import key as check_key
from ._tracing import traced
from .checkpoint import Checkpoint, Ledger
from .dynamics.base import AbstractDynamics, Info
from .progress import bar
from .provenance import provenance
from .run import Row, Run, Status, to_host
from .store.records import fingerprint, functions_in

Observer = Callable[[float, Any], Any]

# Seconds that one piece of an interval should take: short enough for Ctrl-C and a live bar.
_PIECE = (0.1, 0.5)
_FIRST = 16  # steps in the first piece, before it is known how long a step takes
# A run's own stream: the same key may have drawn the start, particle j by fold_in(key, j), j < 2³¹.
_STREAM = 2**32 - 1
# Settings of JAX that the bits of a run depend on.
_SETTINGS = ("jax_enable_x64", "jax_threefry_partitionable", "jax_default_matmul_precision")


def evolve(
    dynamics: AbstractDynamics,
    state: Any,
    ts: Any,
    *,
    key: Array | None = None,
    observe: Mapping[str, Observer] | Iterable[Observer] = (),
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
        given = type(dynamics).__name__
        raise ValueError(f"evolve needs dynamics such as wf.SGD(R, step=1e-3), got a {given}.")
    asked = times(ts)
    dynamics.check(asked)
    ts = dynamics.snap(asked)
    key = jax.random.key(0) if key is None else check_key("key", key)
    if key.dtype == np.uint32:  # a key of the older kind, jax.random.PRNGKey
        key = jax.random.wrap_key_data(key)
    observers = _named(observe)
    if not callable(state):
        hint = " Draw one first: .sample(key, n)." if hasattr(state, "sample") else ""
        hint = " Use run.final." if hasattr(state, "final") else hint
        raise ValueError(f"evolve needs a state such as wf.Particles, got a {type(state).__name__}.{hint}")
    _check_memory(state, len(ts) if snapshots else 0)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)

    origin = provenance(dynamics, state, key, observers)
    loop = _Loop(dynamics, ts, observers, snapshots, key, state, origin)
    if checkpoint is None:
        return loop.run(progress)
    prints = {
        "problem or dynamics": fingerprint(dynamics),
        "start": fingerprint(state),
        "times": fingerprint(ts, snapshots),
        "key": fingerprint(key),
        "observers": fingerprint(observers),
        "settings of jax": fingerprint([getattr(jax.config, name) for name in _SETTINGS]),
    }
    ledger = Ledger(checkpoint, prints)
    with ledger.held():
        found = ledger.restore(loop.carry, functions_in(state))
        if found is not None and found[0].status != "interrupted":
            return _warned(found[0])  # to do it again would end in the same way
        return loop.kept_in(ledger, found).run(progress)


class _Loop:
    """The state of one call of `evolve`: what has been seen, and the carry."""

    def __init__(self, dynamics, ts, observers, snapshots, key, start, origin):
        self.dynamics, self.ts, self.observers, self.snapshots = dynamics, ts, observers, snapshots
        self.key, self.start, self.origin = jax.random.fold_in(key, _STREAM), start, origin
        self.carry, self.current = dynamics.init(start, self.key), start
        self.rows: list[Row] = []
        self.info: dict[str, Any] = {}
        self.trouble: dict[str, str] = {}
        self.ledger: Ledger | None = None
        self.budget = _FIRST
        self.begun, self.before = time.monotonic(), 0.0

    def kept_in(self, ledger: Ledger, found: tuple[Run, Any] | None) -> "_Loop":
        """Write to this ledger, and go on from the run found there."""
        self.ledger = ledger
        if found is not None:
            run, self.carry = found
            self.rows, self.current, self.origin = list(run.rows), run.final, run.provenance
            self.info, self.before = run.info, run.info.get("seconds", 0.0)
        return self

    def run(self, progress: bool | None) -> Run:
        status: Status = "ok"
        message = ""
        try:
            now = self.dynamics.time(self.carry)
            with bar(self.dynamics.name, now, float(self.ts[-1]), progress) as update:
                while len(self.rows) < len(self.ts) and status == "ok":
                    status, message = self.reach(float(self.ts[len(self.rows)]), update)
            self.info |= self.dynamics.functional.info(self.current)
        except KeyboardInterrupt:
            if status == "ok" and len(self.rows) < len(self.ts):
                status, message = "interrupted", self.stopped()
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
            update(self.dynamics.time(carry), self.rows[-1].observed["risk"] if self.rows else None)
            if info.reached:
                break
            self.save_if_due()
        state = self.dynamics.read(self.carry, t)
        observed = self.look(t, state)
        if not np.isfinite(observed["risk"]).all():
            return "diverged", self.explain("The risk is no longer finite", t)
        self.current = state
        self.rows.append(Row(t, observed, state if self.snapshots else None))
        update(t, observed["risk"])
        self.save_if_due()
        return "ok", ""

    def look(self, t: float, state: Any) -> dict[str, np.ndarray]:
        seen = _observed(traced(self.dynamics.functional), state)
        seen |= {name: fn(t, state) for name, fn in self.observers.items()}
        observed = {name: to_host(value) for name, value in seen.items()}
        for name, value in observed.items() if self.rows else ():
            first = self.rows[0].observed[name]
            if value.shape != first.shape:
                raise ValueError(
                    f"The observer {name!r} returned an array of shape {value.shape} at t = {t:.6g}, but "
                    f"{first.shape} before; one shape is needed at all times."
                )
        return observed

    def pace(self, seconds: float) -> None:
        """Pieces of a fraction of a second; the cut never changes the bits."""
        if seconds < _PIECE[0]:
            self.budget = min(self.budget * 2, 2**30)
        elif seconds > _PIECE[1]:
            self.budget = max(self.budget // 2, 1)

    def note(self, info: Info) -> None:
        self.info |= {"steps": int(info.steps), "rejected": int(info.rejected)} | dict(info.noted)

    def explain(self, what: str, t: float) -> str:
        last = self.rows[-1].t if self.rows else 0.0
        advice = self.dynamics.advice(self.start, self.key)
        return f"{what} between t = {last:.6g} and t = {t:.6g}. {advice}"

    def stopped(self) -> str:
        return f"Stopped by hand at t = {self.dynamics.time(self.carry):.6g} of {self.ts[-1]:.6g}."

    def so_far(self, status: Status, message: str) -> Run:
        info = self.info | {"seconds": self.before + time.monotonic() - self.begun}
        return Run(tuple(self.rows), self.current, status, message, info, self.origin)

    def save_if_due(self) -> None:
        if self.ledger is not None and self.ledger.due():
            self.save(self.ledger, self.so_far("running", ""))

    def save(self, ledger: Ledger, run: Run) -> None:
        """A checkpoint that cannot be written (a full disk) must not end the run."""
        try:
            ledger.write(run, self.carry)
            self.trouble = {}
        except (OSError, MemoryError) as error:
            self.trouble = {"checkpoint_error": str(error)}
            warnings.warn(
                f"The checkpoint in {ledger.path} could not be written ({error}); the previous one is "
                "still whole and the run goes on.",
                stacklevel=2,
            )

    def finish(self, status: Status, message: str) -> Run:
        run = self.so_far(status, message)
        if self.ledger is not None:
            try:
                self.save(self.ledger, run)
            except KeyboardInterrupt:  # what was computed is not lost to a second Ctrl-C
                message = f"{message} Stopped by hand in the last save; the checkpoint before it stands."
                run = replace(run, status="interrupted", message=message.strip())
        return _warned(replace(run, info=run.info | self.trouble))


def _warned(run: Run) -> Run:
    if run.status in ("diverged", "stalled"):
        warnings.warn(f"The run {run.status}. {run.message}", stacklevel=5)
    elif run.status == "interrupted":  # not a warning: it is what was asked for
        print(run.message, file=sys.stderr)
    return run


_observed = eqx.filter_jit(lambda functional, state: functional.observed(state))


def _named(observe: Any) -> dict[str, Observer]:
    observe = [observe] if callable(observe) else observe
    if isinstance(observe, str) or not isinstance(observe, Iterable):
        raise ValueError(f"observe must be functions of (t, state) by name, {{'name': fn}}, got {observe!r}.")
    if not isinstance(observe, Mapping):
        listed = [(getattr(fn, "__name__", None), fn) for fn in observe]
        twice = [name for i, (name, _) in enumerate(listed) if name in [n for n, _ in listed[:i]]]
        if twice:
            raise ValueError(f"Two observers are called {twice[0]!r}; name them: observe={{'name': fn}}.")
        observe = dict(listed)
    for name, fn in observe.items():
        if not callable(fn):
            raise ValueError(f"observe[{name!r}] must be a function of (t, state), got {fn!r}.")
        if not isinstance(name, str):
            raise ValueError(f"Observers have names: observe={{'name': fn}}; {name!r} is none, for {fn!r}.")
        try:
            inspect.signature(fn).bind(0.0, None)
        except TypeError:
            raise ValueError(f"observe[{name!r}] must take two arguments, (t, state).") from None
        except ValueError:  # a function without a signature, such as one of NumPy's
            pass
        if name in ("risk", "energy", "free_energy"):
            raise ValueError(f"The name {name!r} is taken; give this observer another one.")
    return dict(observe)


def _check_memory(state: Any, snapshots: int) -> None:
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state) if hasattr(leaf, "nbytes"))
    hint = "Save fewer times, use fewer neurons or float32, or snapshots=False."
    fits(f"A run that keeps {snapshots} snapshots of {size / 2**20:.3g} MiB", size * (snapshots + 6), hint)
