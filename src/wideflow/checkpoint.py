"""Checkpoints: what survives when a process is killed."""

import contextlib
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._checks import positive
from .provenance import versions
from .run import Run, get_run, header, put_rows, put_state, read_record
from .store import folder


@dataclass(frozen=True)
class Checkpoint:
    """Keep a run in `directory` as it goes, written every `every` seconds and at the end.

    The same call of `evolve` with the same folder goes on from there, to the same bits. A folder
    that holds another problem's run is refused."""

    directory: str | Path
    every: float = 30.0

    def __post_init__(self):
        positive("Checkpoint(every)", self.every, zero=True, infinite=True)


class Ledger:
    """Writes a run piece by piece: saved times are written once and never again, the carry anew.

    `prints` are the fingerprints of what the run is made of, by name."""

    def __init__(self, checkpoint: Checkpoint, prints: dict[str, str]):
        self.path, self.every = Path(checkpoint.directory), checkpoint.every
        self.prints = prints
        # (entries of the manifest, saved times in them): one value, for a signal may come any time
        self.kept: tuple[list[dict[str, Any]], int] = ([], 0)
        self.last = time.monotonic()

    def held(self) -> contextlib.AbstractContextManager[None]:
        """The folder, for this run alone."""
        return folder.held(self.path)

    def due(self) -> bool:
        return time.monotonic() - self.last >= self.every

    def write(self, run: Run, carry: Any) -> None:
        """Commit all of `run` and the carry, in one atomic step."""
        segments, written = self.kept
        new = run.rows[written:]
        try:
            if new:
                segments = [*segments, put_rows(self.path, f"rows-{written:05d}", new)]
            record = header(run, fingerprint=self.prints, segments=segments) | {
                "final": put_state(self.path, "final", run.final),
                "carry": folder.put(self.path, "carry", _stored(carry)),
            }
            folder.commit(self.path, record)
            self.kept = segments, len(run.rows)
        finally:
            self.last = time.monotonic()  # a full disk is not tried again at every step

    def restore(self, carry: Any, functions: dict[str, Any]) -> tuple[Run, Any] | None:
        """The run in the folder and its carry; None if there is none yet. `carry` is a fresh one,
        for its structure, `functions` those of the start."""
        if not folder.exists(self.path):
            return None
        record = read_record(self.path)
        self._check(record)
        run = get_run(self.path, record, functions)
        self.kept = record["segments"], len(run.rows)
        return run, _restored(carry, folder.get(self.path, record["carry"]), self.path)

    def _check(self, record: dict[str, Any]) -> None:
        found = record.get("fingerprint", {})
        other = [name for name, value in self.prints.items() if found.get(name) != value]
        if other:
            which = "a run that was saved by hand" if not found else f"another run: other {', '.join(other)}"
            raise ValueError(
                f"{self.path} holds {which}. Give this run a folder of its own, or remove that one."
            )
        begun = record["provenance"].get("versions", {})
        moved = [f"{k} {begun.get(k)} → {v}" for k, v in versions().items() if begun.get(k) != v]
        if moved:
            warnings.warn(
                f"The run in {self.path} was begun with other versions ({', '.join(moved)}). It goes "
                "on, but not to the same bits as without the stop.",
                stacklevel=5,
            )


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex)


def _stored(carry: Any) -> dict[str, np.ndarray]:
    """The numbers in a carry, by position."""
    leaves = [leaf for leaf in jax.tree.leaves(carry) if _is_number(leaf)]
    return {f"{i:05d}": np.asarray(jax.random.key_data(v) if _is_key(v) else v) for i, v in enumerate(leaves)}


def _restored(carry: Any, stored: dict[str, np.ndarray], path: Path) -> Any:
    """`carry` with the stored numbers in place of its own."""
    fresh, leaves, tree = _stored(carry), *jax.tree.flatten(carry)
    shape = lambda arrays: {k: (v.shape, v.dtype) for k, v in arrays.items()}
    if shape(stored) != shape(fresh):
        raise ValueError(f"{path} was written by a version that carries other numbers from step to step.")
    numbers = (stored[name] for name in sorted(stored))
    return jax.tree.unflatten(tree, [_like(v, next(numbers)) if _is_number(v) else v for v in leaves])


def _like(leaf: Any, value: np.ndarray) -> Any:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(value), impl=jax.random.key_impl(leaf))
    if isinstance(leaf, bool | int | float | complex):
        return type(leaf)(value.item())
    return jnp.asarray(value)
