"""Checkpoints: what survives when a process is killed."""

import contextlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ._checks import path as check_path
from ._checks import positive
from ._data import Data
from .provenance import versions
from .run import Run, get_run, header, put_rows, put_state, read_record
from .store import folder
from .store.retrying import NO_PLACE, retried
from .store.schema import is_uniform
from .store.settings import SETTING, differences, machine


@dataclass(frozen=True)
class Checkpoint:
    """Keep a run in `directory` as it goes, written every `every` seconds and at the end.

    The same call of `evolve` with the same folder goes on from there, to the same bits. A folder
    that holds another problem's run is refused.

    >>> kept = wf.Checkpoint("runs/one", every=60.0)
    >>> wf.evolve(wf.GradientDescent(R, step=0.01), net, ts, checkpoint=kept).status
    'ok'"""

    directory: str | Path
    every: float = 30.0

    def __post_init__(self):
        check_path("Checkpoint(directory)", self.directory)
        positive("Checkpoint(every)", self.every, zero=True, infinite=True)


class Ledger:
    """Writes a run piece by piece: saved times are written once and never again, the carry anew.

    `prints` are the fingerprints of what the run is made of, by name."""

    def __init__(self, checkpoint: Checkpoint, prints: dict[str, str]):
        self.path, self.every = Path(checkpoint.directory), checkpoint.every
        self.prints = prints
        # (entries of the manifest, saved times in them): one value, for a signal may come any time
        self.kept: tuple[list[Data], int] = ([], 0)
        self.last = time.monotonic()
        self.locks = contextlib.ExitStack()
        self.locked = False

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """The folder, for this run alone. A disk that does not take it yet (full, over quota) does not stop
        the run: each save tries again. A place that can never be written is told at once."""
        with self.locks:
            try:
                retried(self._take)
            except OSError as error:
                if error.errno in NO_PLACE:
                    raise folder.SaveError(
                        error.errno,
                        f"The checkpoint cannot be written to {self.path}: {error.strerror or error}. Give "
                        "evolve(checkpoint=…) another folder.",
                    ) from error
                warnings.warn(
                    f"The checkpoint in {self.path} could not be written ({error}); the run goes on in "
                    "memory, and each save tries again.",
                    stacklevel=4,
                )
            yield

    def _take(self) -> None:
        self.locks.enter_context(folder.lock(self.path))
        self.locked = True

    def due(self) -> bool:
        return time.monotonic() - self.last >= self.every

    def write(self, run: Run, carry: PyTree) -> None:
        """Commit all of `run` and the carry, in one atomic step."""
        segments, written = self.kept
        new = run.rows[written:]
        try:
            if not self.locked:
                self._take()
            if new:
                segments = [*segments, put_rows(self.path, f"rows-{written:05d}", new)]
            record = header(run, fingerprint=self.prints, segments=segments) | {
                "final": put_state(self.path, "final", run.final),
                "carry": folder.put(self.path, "carry", _stored(carry)),
            }
            folder.commit(self.path, record | {"uniform": is_uniform(record)})
            self.kept = segments, len(run.rows)
        finally:
            self.last = time.monotonic()  # a full disk is not tried again at every step

    def restore(self, carry: PyTree, functions: Data) -> tuple[Run, PyTree] | None:
        """The run in the folder and its carry; None if there is none yet. `carry` is a fresh one,
        for its structure, `functions` those of the start."""
        if not folder.exists(self.path):
            return None
        record = read_record(self.path)
        self._check(record)
        run = get_run(self.path, record, functions)
        self.kept = record["segments"], len(run.rows)
        return run, _restored(carry, folder.get(self.path, record.get("carry", {})), self.path)

    def _check(self, record: Data) -> None:
        saved = record.get("fingerprint", {})
        other = [
            f"{name} ({saved.get(name)} → {value})" if name.startswith(SETTING) else name
            for name, value in self.prints.items()
            if saved.get(name) != value and not _is_unknown(name, saved)
        ]
        if other:
            which = "a run that was saved by hand" if not saved else f"another run: other {', '.join(other)}"
            raise ValueError(
                f"{self.path} holds {which}. Give this run a folder of its own, or remove that one."
            )
        begun = record["provenance"]
        moved = {
            "with other versions": differences(begun.get("versions"), versions()),
            "on another machine": differences(begun.get("machine"), machine()),
        }
        if any(moved.values()):
            where = " and ".join(f"{how} ({', '.join(what)})" for how, what in moved.items() if what)
            warnings.warn(
                f"The run in {self.path} was begun {where}. It goes on, but not to the same bits as without "
                "the stop.",
                stacklevel=5,
            )


def _is_unknown(name: str, saved: Data) -> bool:
    """Whether this is a setting that a saved run does not know: it comes with another JAX, which is told."""
    return name.startswith(SETTING) and name not in saved


def _is_key(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _is_number(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex)


def _stored(carry: PyTree) -> dict[str, np.ndarray]:
    """The numbers in a carry, by position."""
    leaves = [leaf for leaf in jax.tree.leaves(carry) if _is_number(leaf)]
    return {f"{i:05d}": np.asarray(jax.random.key_data(v) if _is_key(v) else v) for i, v in enumerate(leaves)}


def _restored(carry: PyTree, stored: dict[str, np.ndarray], path: Path) -> PyTree:
    """`carry` with the stored numbers in place of its own."""
    fresh, leaves, tree = _stored(carry), *jax.tree.flatten(carry)
    shape = lambda arrays: {k: (v.shape, v.dtype) for k, v in arrays.items()}
    if shape(stored) != shape(fresh):
        raise folder.DamagedError(
            f"{path / folder.MANIFEST}: the numbers in 'carry' are not those that this version carries from "
            "step to step."
        )
    numbers = (stored[name] for name in sorted(stored))
    return jax.tree.unflatten(tree, [_like(v, next(numbers)) if _is_number(v) else v for v in leaves])


def _like(leaf: PyTree, value: np.ndarray) -> PyTree:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(value), impl=jax.random.key_impl(leaf))
    if isinstance(leaf, bool | int | float | complex):
        return type(leaf)(value.item())
    return jnp.asarray(value)
