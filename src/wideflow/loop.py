"""The one loop over saved times."""

import contextlib
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Array, PyTree
from numpy.typing import ArrayLike

from . import signals
from ._checks import fits, times
from ._checks import key as check_key
from ._data import Data
from ._shown import shown
from ._tracing import jit_once
from .checkpoint import Checkpoint, Ledger
from .diagnosis import NOT_FINITE, check_start, observer_message, why, why_not_finite
from .dynamics.base import AbstractDynamics, Info
from .dynamics.replicated import Replicated
from .endings import EndedWarning, Ending, Endings, Status
from .observers import resolve
from .progress import Part, bar
from .provenance import provenance
from .run import Row, Run
from .states.replicas import replica_keys
from .states.state import AbstractState
from .store.records import fingerprint, functions_in
from .store.settings import settings
from .watch import Observer, Watcher, observers_by_name

# Seconds that one piece of an interval should take: short enough for Ctrl-C and a live bar.
_PIECE = (0.1, 0.5)
_FIRST = 16  # steps in the first piece, before it is known how long a step takes
# A run's own stream: the same key may have drawn the start, particle j by fold_in(key, j), j < 2³¹.
_STREAM = 2**32 - 1


def evolve(
    dynamics: AbstractDynamics,
    state: AbstractState,
    ts: ArrayLike,
    *,
    key: Array | None = None,
    observe: Mapping[str, Observer] | Iterable[Observer | str] = (),
    checkpoint: Checkpoint | str | Path | None = None,
    progress: bool | Part | None = None,
    snapshots: bool = True,
) -> Run:
    """Move `state` by `dynamics` and keep what is seen at the times `ts`.

    - `ts`: increasing times >= 0; dynamics in steps snap them to t = kη (`run.t` tells).
    - `state`: one state, or many along a replica axis (`law.sample(key, n, replicas=64)`), which then move
      in one compiled program: `run["risk"]` is (times, replicas), `run.replica(r)` one of them. A replica
      that diverges has NaN from then on, and the others go on.
    - `key`: seed of all randomness, `jax.random.key(0)` by default. Replica r has `fold_in(key, r)`, or key r
      of a vector of keys.
    - `observe`: functions fn(t, state) → number or array, by name, or names of ready-made ones such as
      "kernel_movement" and "second_moment"; the risk is always observed.
    - `checkpoint`: a folder, or `wf.Checkpoint(folder, every=seconds)`. The same call goes on from
      what the folder holds, to the same bits as if it had never been stopped.
    - `progress`: a bar on standard error; by default only on a terminal.
    - `snapshots`: whether to keep the state at every saved time (the final one is always kept).

    A run that diverges, stalls or is interrupted (Ctrl-C) comes back with that status and all that
    it had reached.

    >>> many = rho0.sample(key, 4, replicas=2)
    >>> run = wf.evolve(wf.SGD(R, step=0.01), many, ts, key=key, observe=["second_moment"])
    >>> run["risk"].shape, run.replica(1)["second_moment"].shape
    ((3, 2), (3,))"""
    if not isinstance(dynamics, AbstractDynamics):
        given = type(dynamics).__name__
        raise ValueError(f"evolve needs dynamics such as wf.SGD(R, step=1e-3), got a {given}.")
    asked = times(ts)
    dynamics.check_times(asked)
    ts = dynamics.snap(asked)
    key = jax.random.key(0) if key is None else check_key("key", key)
    if key.dtype == np.uint32:  # a key of the older kind, jax.random.PRNGKey
        key = jax.random.wrap_key_data(key)
    observers = observers_by_name(resolve(observe, dynamics.functional, state))
    if not callable(state):
        hint = " Draw one first: .sample(key, n)." if hasattr(state, "sample") else ""
        hint = " Use run.final." if hasattr(state, "final") else hint
        raise ValueError(f"evolve needs a state such as wf.Particles, got a {type(state).__name__}.{hint}")
    dynamics.check_state(state)
    replicas = getattr(state, "replicas", None)
    if replicas is not None:
        dynamics = Replicated(dynamics)
    elif key.ndim:
        raise ValueError(f"{key.shape[0]} keys are for so many replicas; this state is a single one.")
    check_start(state)
    _check_memory(state, len(ts) if snapshots else 0)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)

    origin = provenance(dynamics, state, key, observers)
    loop = _Loop(dynamics, ts, observers, snapshots, key, state, origin)
    if checkpoint is None:
        with signals.heeding(signals.BY_HAND) as request:
            return _told(loop.run(progress), request)
    prints = {
        "problem or dynamics": fingerprint(dynamics, called="dynamics"),
        "start": fingerprint(state, called="state"),
        "times": fingerprint(ts, snapshots),
        "key": fingerprint(key),
        "observers": fingerprint(observers, called="observe"),
        **settings(),
    }
    ledger = Ledger(checkpoint, prints)
    with signals.heeding(signals.ENDING) as request, ledger.lock():
        saved = ledger.restore(loop.carry, functions_in(state))
        if saved is not None and saved[0].status != "interrupted":
            return _told(saved[0], request)  # to do it again would end in the same way
        return _told(loop.kept_in(ledger, saved).run(progress), request)


class _Loop:
    """The state of one call of `evolve`: what has been seen, and the carry."""

    def __init__(self, dynamics, ts, observers, snapshots, key, start, origin):
        self.dynamics, self.ts, self.observers, self.snapshots = dynamics, ts, observers, snapshots
        self.replicas: int | None = getattr(start, "replicas", None)
        self.key, self.start, self.origin = _run_key(key, self.replicas), start, origin
        self.carry, self.current = dynamics.init(start, self.key, ts), start
        self.endings = Endings.of(self.replicas)
        self.watcher = Watcher(dynamics.functional, observers, self.replicas)
        self.told: set[str] = set()
        self.rows: list[Row] = []
        self.info: Data = {}
        self.ledger: Ledger | None = None
        self.budget = _FIRST
        self.begun, self.before = time.monotonic(), 0.0

    def kept_in(self, ledger: Ledger, saved: tuple[Run, PyTree] | None) -> "_Loop":
        """Write to this ledger, and go on from the run saved there."""
        self.ledger = ledger
        if saved is not None:
            run, self.carry = saved
            self.rows, self.current, self.origin = list(run.rows), run.final, run.provenance
            self.info = {name: value for name, value in run.info.items() if name != "raised"}
            self.before = run.info.get("seconds", 0.0)
            self.endings = Endings.of(self.replicas, run.endings)
        if ledger.other_observers:
            states = [(row, row.state) for row in self.rows if row.state is not None]  # each has one
            self.rows = [replace(row, observed=self.watcher(row.t, state)) for row, state in states]
        return self

    def run(self, progress: bool | Part | None) -> Run:
        interrupted = ""
        try:
            now = self.time()
            with bar(self.dynamics.name, now, float(self.ts[-1]), progress) as update:
                while len(self.rows) < len(self.ts) and self.endings.alive.any():
                    self.reach(float(self.ts[len(self.rows)]), update)
            self.info |= self.expectations()
        except KeyboardInterrupt:
            if self.endings.alive.any() and len(self.rows) < len(self.ts):
                interrupted = self.stopped()
        except BaseException as error:
            self.rescue(error)
            raise
        if interrupted:
            return self.finish("interrupted", interrupted)
        status, message = self.endings.verdict()
        told = " ".join(observer_message(*each) for each in self.info.get(NOT_FINITE, {}).items())
        return self.finish(status, f"{message} {told}".strip())

    def rescue(self, error: BaseException) -> None:
        """Keep what was reached when something raises, and note with it where the run stands."""
        place = f"The run stands at t = {self.time():.6g} of {self.ts[-1]:.6g}"
        raised = f"{type(error).__name__}: {error}"
        run = self.so_far("interrupted", f"{place}, where it was ended by {raised}")
        where = (
            "in the attribute `run` of this exception (evolve(…, checkpoint=folder) would keep it on disk)"
        )
        with contextlib.suppress(AttributeError, TypeError):  # an exception with slots
            error.run = run  # type: ignore[attr-defined]
        if self.ledger is not None:
            with contextlib.suppress(Exception):  # must not hide what came first
                self.ledger.save(replace(run, info=run.info | {"raised": raised}), self.carry, last=True)
            where = f"in {self.ledger.path}; once this is mended, the same call goes on from there"
            if self.ledger.trouble:
                where = f"in the attribute `run` of this exception. {self.ledger.told('save it elsewhere')}"
        error.add_note(f"{place}. What it reached, {len(self.rows)} of {len(self.ts)} times, is {where}.")

    def time(self) -> float:
        """How far the slowest replica has come."""
        return float(np.min(np.asarray(self.dynamics.time(self.carry))))

    def expectations(self) -> Data:
        """How E over x was taken at the end, and how wrong it may be: of each replica, where they differ."""
        told = self.dynamics.functional.info
        if self.replicas is None:
            return told(self.current)
        each = [told(_replica(self.current, np.asarray(r))) for r in range(self.replicas)]
        alike = lambda values: values[0] if all(value == values[0] for value in values) else values
        return {name: alike([one[name] for one in each]) for name in each[0]}

    def reach(self, t: float, update: Callable) -> None:
        """Advance to the saved time t and look."""
        while True:
            if signals.asked():
                raise KeyboardInterrupt
            begun = time.monotonic()
            carry, info = self.dynamics.advance(self.carry, t, self.budget)
            info = jax.device_get(info)
            if self.ends("diverged", "The state is no longer finite", t, ~info.finite):
                return
            self.carry = carry
            self.note(info)
            if self.ends("stalled", "No further progress was made", t, info.stalled):
                return
            self.pace(time.monotonic() - begun)
            update(self.time(), self.risk())
            if np.all(info.reached | ~self.endings.alive):
                break
            self.save_if_due()
        state = self.dynamics.read(self.carry, t)
        observed = self.look(t, state)
        risk = observed["risk"]
        finite = np.isfinite(risk).reshape(*self.endings.alive.shape, -1).all(-1)
        if self.ends("diverged", "The risk is not finite", t, ~finite, state):
            return
        self.check_observers(t, observed)
        observed = {name: self.endings.only_alive(value) for name, value in observed.items()}
        self.current = state if self.endings.alive.all() else state.chosen(self.endings.alive, self.current)
        self.rows.append(Row(t, observed, self.current if self.snapshots else None))
        update(t, self.risk())
        self.save_if_due()

    def risk(self) -> np.ndarray | None:
        """The risk last seen, of what is alive."""
        return self.rows[-1].observed["risk"][self.endings.alive] if self.rows else None

    def ends(
        self, status: Status, what: str, t: float, bad: np.ndarray, state: AbstractState | None = None
    ) -> bool:
        """End the replicas that `bad` holds for; whether none is left."""
        lost = self.endings.lost(bad)
        if len(lost):
            message = self.explain(what, t, int(lost[0]), state)
            self.endings.end(lost, Ending(status, message, len(self.rows)))
        return not self.endings.alive.any()

    def look(self, t: float, state: AbstractState) -> dict[str, np.ndarray]:
        observed = self.watcher(t, state)
        for name, value in observed.items() if self.rows else ():
            first = self.rows[0].observed[name]
            if value.shape != first.shape:
                raise ValueError(
                    f"The observer {shown(name)} returned an array of shape {value.shape} at t = {t:.6g}, "
                    f"but {first.shape} before; one shape is needed at all times."
                )
        return observed

    def pace(self, seconds: float) -> None:
        """Pieces of a fraction of a second; the cut never changes the bits."""
        if seconds < _PIECE[0]:
            self.budget = min(self.budget * 2, 2**30)
        elif seconds > _PIECE[1]:
            self.budget = max(self.budget // 2, 1)

    def note(self, info: Info) -> None:
        noted = {"steps": info.steps, "rejected": info.rejected} | info.noted
        self.info |= {name: _plain(value) for name, value in noted.items()}
        for name, message in self.dynamics.cautions(info.noted).items() if info.noted else ():
            if name not in self.told:
                self.told.add(name)
                warnings.warn(message, stacklevel=5)

    def explain(self, what: str, t: float, r: int, state: AbstractState | None = None) -> str:
        """What happened, and what to change; `state` is one that is finite but whose risk is not."""
        dynamics, start, key = self.dynamics, self.start, self.key
        cause = "" if state is not None else why(dynamics, self.carry, start, t, r)
        if isinstance(dynamics, Replicated):
            dynamics, start, key = dynamics.dynamics, start.replica(r), key[r]
            state = None if state is None else state.replica(r)
        if state is not None:
            cause = why_not_finite(dynamics.functional, state, start)
        last = f"between t = {self.rows[-1].t if self.rows else 0.0:.6g} and t = {t:.6g}"
        when = last if t > 0 else "at the start"
        return f"{what} {when}. {cause or dynamics.advice(start, key)}"

    def check_observers(self, t: float, observed: Mapping[str, np.ndarray]) -> None:
        """Tell once of each observation that is NaN for what is alive; the run goes on."""
        told = self.info.get(NOT_FINITE, {})
        for name, value in observed.items():
            if name in told:
                continue
            if value.dtype.kind == "f" and np.isnan(value[self.endings.alive]).any():
                told = told | {name: t}
                warnings.warn(f"{observer_message(name, t)} The run goes on.", stacklevel=5)
        self.info |= {NOT_FINITE: told} if told else {}

    def stopped(self) -> str:
        by = signals.asked() or signal.SIGINT
        who = "hand" if by == signal.SIGINT else by.name
        return f"Stopped by {who} at t = {self.time():.6g} of {self.ts[-1]:.6g}."

    def so_far(self, status: Status, message: str) -> Run:
        info = self.info | {"seconds": self.before + time.monotonic() - self.begun}
        ended = {} if self.replicas is None else dict(self.endings.ended)
        rows = tuple(self.rows)
        return Run(rows, self.current, status, message, info, self.origin, self.replicas, ended)

    def save_if_due(self) -> None:
        if self.ledger is not None and self.ledger.due():
            self.ledger.save(self.so_far("running", ""), self.carry)

    def finish(self, status: Status, message: str) -> Run:
        run = self.so_far(status, message)
        if self.ledger is None:
            return run
        try:
            self.ledger.save(run, self.carry, last=True)
        except KeyboardInterrupt:  # what was computed is not lost to a second Ctrl-C
            message = f"{message} Stopped by hand in the last save; the checkpoint before it stands."
            return replace(run, status="interrupted", message=message.strip())
        if self.ledger.trouble:
            told = self.ledger.told("save the run elsewhere: run.save(another_folder).")
            message = f"{message} {told}".strip()
            info = run.info | {"checkpoint_error": self.ledger.trouble}
            return replace(run, message=message, info=info)
        return run


def _told(run: Run, request: signals.Request | None) -> Run:
    if run.status in ("diverged", "stalled"):
        warnings.warn(f"The run {run.status}. {run.message}", EndedWarning, stacklevel=3)
    elif run.status == "interrupted":  # not a warning: it is what was asked for
        signals.farewell(request, run.message)
    return run


_replica = jit_once(lambda state, r: state.replica(r))


def _run_key(key: Array, replicas: int | None) -> Array:
    """The run's own stream; replica r has that of a single run with the key `fold_in(key, r)`."""
    if replicas is None:
        return jax.random.fold_in(key, _STREAM)
    return _run_keys(replica_keys(key, replicas))


@jit_once
def _run_keys(keys: Array) -> Array:
    return jax.vmap(lambda one: jax.random.fold_in(one, _STREAM))(keys)


def _plain(value: object) -> PyTree:
    """A number; one for each replica where they differ."""
    values = np.asarray(value)
    alike = values.ndim == 0 or (values == values.flat[0]).all()
    return values.flat[0].item() if alike else values.tolist()


def _check_memory(state: AbstractState, snapshots: int) -> None:
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state) if hasattr(leaf, "nbytes"))
    hint = "Save fewer times, use fewer neurons or float32, or snapshots=False."
    fits(f"A run that keeps {snapshots} snapshots of {size / 2**20:.3g} MiB", size * (snapshots + 6), hint)
