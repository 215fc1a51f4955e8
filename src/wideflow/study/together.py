"""Runs of a study that go together, as replicas of one compiled program."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._tracing import jit
from ..checkpoint import Checkpoint
from ..loop import evolve
from ..run import Row, Run
from ..salvage import load
from ..states.linearisation import linearised
from ..store import folder
from ..watch import to_host
from .build import Study
from .cases import Case
from .grouping import narrowed, replicas_of
from .observers import AbstractPicture
from .perform import EVERY, data_hash, drawn, measured

Observer = Callable[[float, Any], Any]


class AllReplicas(eqx.Module):
    """Observers of one kind, one for each replica, as one pytree: a single program for all of them."""

    observers: Any
    sees_all_replicas: ClassVar[bool] = True

    def __call__(self, t: float, state: Any) -> Array:
        return _seen(self.observers, jnp.asarray(t), state)


@jit
def _seen(observers: Any, t: Array, state: Any) -> Array:
    arrays, rest = eqx.partition(observers, eqx.is_array)
    look = lambda own, one: jnp.asarray(eqx.combine(own, rest)(t, one))
    return jax.vmap(look, in_axes=(0, state.axes()), axis_size=state.replicas)(arrays, state)


@dataclass(frozen=True)
class EachReplica:
    """Observers on the host, one for each replica, which sees its own network without the particles that fill
    it up. Their arrays are filled up with zeros to one shape, which `_split` cuts off again."""

    observers: tuple[Observer, ...]
    widths: tuple[int, ...]
    sees_all_replicas = True

    def __call__(self, t: float, state: Any) -> np.ndarray:
        here, first = jax.device_get(state), self.observers[0]
        each = enumerate(zip(self.observers, self.widths, strict=True))
        if isinstance(first, AbstractPicture) and all(fn == first for fn in self.observers):
            seen = first.of_replicas(here, self.widths)
        else:
            seen = [to_host(fn(t, narrowed(here.replica(r), n))) for r, (fn, n) in each]
        shape = tuple(np.max([value.shape for value in seen], axis=0).astype(int))
        return np.stack([_filled(value, shape) for value in seen])


def _as_one(observers: Sequence[Observer], widths: tuple[int, ...]) -> Observer:
    """One observer of all replicas: traced where that is possible, else one after the other."""
    if all(isinstance(fn, eqx.Module) for fn in observers):
        return AllReplicas(jax.tree.map(_stacked, *observers))
    return EachReplica(tuple(observers), widths)


def _stacked(*leaves: Any) -> Any:
    return np.stack(jax.device_get(leaves)) if eqx.is_array(leaves[0]) else leaves[0]


def _filled(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if value.shape == shape:
        return value
    room = [(0, large - small) for small, large in zip(value.shape, shape, strict=True)]
    return np.pad(value, room)


def perform_together(
    study: Study, cases: Sequence[Case], paths: Sequence[Path], path: Path, *, progress: bool | None = None
) -> list[Run]:
    """The runs of cases that go together, each kept in its own of the `paths` in the end, all of them in
    `path` on the way. What is there already is not done again."""
    data = data_hash(study)
    if all(folder.exists(one) for one in paths):
        return [_loaded(one, data) for one in paths]
    replicas, widths = replicas_of(study, cases), tuple(case.width or 0 for case in cases)
    here = jax.device_get(replicas)  # where slices need no program
    states = [narrowed(here.replica(r), n) for r, n in enumerate(widths)]
    pictures = [drawn(study, _seen_as(case, one), case) for case, one in zip(cases, states, strict=True)]
    filled = [here.replica(r) for r in range(len(cases))]
    figures = [measured(study, _seen_as(case, one), case) for case, one in zip(cases, filled, strict=True)]
    own = [one | other for one, other in zip(figures, pictures, strict=True)]
    names = [name for name in own[0] if all(name in fns for fns in own)]
    run = evolve(
        study.dynamics(cases[0]),
        replicas,
        study.ts,
        key=jnp.stack([case.key for case in cases]),
        observe={name: _as_one([fns[name] for fns in own], widths) for name in names},
        checkpoint=Checkpoint(path, every=EVERY),
        progress=progress,
        snapshots=study.spec.observe.snapshots,
    )
    if run.status == "interrupted":
        return [run]
    run = _on_host(run)
    each = zip(pictures, cases, states, strict=True)
    shapes = [
        {name: np.shape(fn(0.0, _seen_as(case, one))) for name, fn in fns.items()} for fns, case, one in each
    ]
    runs = [_split(run, r, n, shape, data) for r, (n, shape) in enumerate(zip(widths, shapes, strict=True))]
    return _kept(runs, paths, path)


def _on_host(run: Run) -> Run:
    """The run with its states as NumPy arrays, where slices need no program."""
    rows = tuple(replace(row, state=jax.device_get(row.state)) for row in run.rows)
    return replace(run, rows=rows, final=jax.device_get(run.final))


def _seen_as(case: Case, state: Any) -> Any:
    """The state as the run of a case shows it."""
    return linearised(state) if case.linearised else state


def _split(run: Run, r: int, n: int, shapes: dict[str, tuple[int, ...]], data: str | None) -> Run:
    """Replica r as a run of its own, as it would be alone."""
    one = run.replica(r)
    cut = lambda name, value: value[tuple(slice(size) for size in shapes.get(name, value.shape))]
    rows = tuple(
        Row(
            row.t,
            {name: cut(name, value) for name, value in row.observed.items()},
            None if row.state is None else narrowed(row.state, n),
        )
        for row in one.rows
    )
    share = {"seconds": one.info.get("seconds", 0.0) / (run.replicas or 1)}
    origin = one.provenance | {"data": data}
    return replace(one, rows=rows, final=narrowed(one.final, n), info=one.info | share, provenance=origin)


def _kept(runs: list[Run], paths: Sequence[Path], path: Path) -> list[Run]:
    try:
        for run, place in zip(runs, paths, strict=True):
            if not folder.exists(place):
                run.save(place)
    except OSError as error:
        why = str(error.__cause__ or error)
        return [replace(run, info=run.info | {"checkpoint_error": why}) for run in runs]
    shutil.rmtree(path, ignore_errors=True)
    return runs


def _loaded(path: Path, data: str | None) -> Run:
    run = load(path)
    if run.provenance.get("data") != data:
        raise ValueError(f"{path} holds a run on other data. Give --out another folder.")
    return run
