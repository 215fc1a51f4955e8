"""Checkpoints: what survives when a process is killed."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .run import Row, Run, get_rows, header, put_rows, put_state, read_record
from .store import folder


@dataclass(frozen=True)
class Checkpoint:
    """Keep a run in `directory` as it goes, written every `every` seconds and at the end.

    The same call of `evolve` with the same folder goes on from there, to the same bits. A folder
    that holds another problem's run is refused."""

    directory: str | Path
    every: float = 30.0

    def __post_init__(self):
        if not self.every >= 0:
            raise ValueError(f"Checkpoint(every) must be a number of seconds >= 0: {self.every!r}.")


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _leaves(carry: Any) -> list[Any]:
    return jax.tree.leaves(eqx.filter(carry, eqx.is_array))


class Ledger:
    """Writes a run piece by piece: saved times are written once and never again, the carry anew."""

    def __init__(self, checkpoint: Checkpoint, fingerprint: str):
        self.path, self.every = Path(checkpoint.directory), checkpoint.every
        self.fingerprint = fingerprint
        self.segments: list[dict[str, Any]] = []
        self.written = 0
        self.last = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self.last >= self.every

    def write(self, run: Run, carry: Any) -> None:
        """Commit all of `run` and the carry, in one atomic step."""
        self.last = time.monotonic()
        new = run.rows[self.written :]
        segments = list(self.segments)
        if new:
            segments.append(put_rows(self.path, f"rows-{self.written:05d}", new))
        stored = {
            f"{i:05d}": np.asarray(jax.random.key_data(v) if _is_key(v) else v)
            for i, v in enumerate(_leaves(carry))
        }
        record = header(run, fingerprint=self.fingerprint, segments=segments) | {
            "final": put_state(self.path, "final", run.final),
            "carry": folder.put(self.path, "carry", stored),
        }
        folder.commit(self.path, record)
        self.segments, self.written = segments, len(run.rows)

    def restore(self, carry: Any) -> tuple[list[Row], Any, dict[str, Any]] | None:
        """Saved times, carry and manifest of the run in the folder; None if there is none yet.
        `carry` is a fresh one, for its structure."""
        if not folder.exists(self.path):
            return None
        record = read_record(self.path)
        if record.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"{self.path} holds a run of another problem, dynamics, start, times or key. Give "
                "this run a folder of its own, or remove that one."
            )
        rows = [row for entry in record["segments"] for row in get_rows(self.path, entry)]
        stored = folder.get(self.path, record["carry"])
        arrays, static = eqx.partition(carry, eqx.is_array)
        leaves, tree = jax.tree.flatten(arrays)
        read = [
            jax.random.wrap_key_data(jnp.asarray(stored[f"{i:05d}"]), impl=jax.random.key_impl(leaf))
            if _is_key(leaf)
            else jnp.asarray(stored[f"{i:05d}"])
            for i, leaf in enumerate(leaves)
        ]
        self.segments, self.written = record["segments"], len(rows)
        return rows, eqx.combine(jax.tree.unflatten(tree, read), static), record
