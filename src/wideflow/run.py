"""The result of a run, and how it is kept on disk."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from .kernels.infinite.kernels import InfiniteKernel
from .parametrisations import Parametrisation
from .problems.activations import Activation, activation, names
from .problems.neurons import CustomNeuron, Neuron, Ridge
from .problems.radial import RadialNeuron
from .references import REFERENCES
from .states.family import Family
from .states.grid import GridDensity
from .states.kernel_function import KernelFunction
from .states.layers import AveragePool, Conv, Dense, Elementwise, Flatten, GlobalAverage
from .states.linearisation import Linearisation
from .states.network import Network, Weights
from .states.particles import Particles
from .store import folder
from .store.records import decode, encode, plain, recorded, revived

Status = Literal["ok", "diverged", "stalled", "interrupted", "running"]
FORMAT = 1
_TRIES = 20  # readings of a folder that another process is writing to


def _activation_fields(phi: Activation) -> dict[str, Any]:
    """A named activation is its name and options; one of the user's own is also its function."""
    known = phi.name in names() and activation(phi.name, **dict(phi.options)) == phi
    own = {} if known else {"fn": phi.fn, "kinks": phi.kinks}
    return {"name": phi.name, "options": phi.options} | own


def _activation(name: str, options: Any, fn: Any = None, kinks: Any = ()) -> Activation:
    return activation(name, **dict(options)) if fn is None else Activation(name, fn, options, kinks)


def _particles_fields(rho: Particles) -> dict[str, Any]:
    """θ as it is defined, whatever layout the engine prefers."""
    return {"theta": rho.theta, "weights": rho.weights, "alpha": rho.alpha, "neuron": rho.neuron}


def _particles(theta: Any, weights: Any, alpha: Any, neuron: Any) -> Particles:
    parts = neuron.unpack(theta)
    return _assembled(Particles)(parts=parts, weights=weights, alpha=alpha, neuron=neuron)


def _assembled(cls: type) -> Callable[..., Any]:
    """An object of `cls` from its fields; its values were checked when it was first made."""

    def build(**fields: Any) -> Any:
        made: Any = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    return build


def _network(parametrisation: Parametrisation, **fields: Any) -> Network:
    dtype = fields["parts"][0].w.dtype
    exponents = jax.tree.map(lambda v: jnp.asarray(v, dtype), parametrisation)
    return _assembled(Network)(parametrisation=exponents, **fields)


recorded(Neuron, CustomNeuron, RadialNeuron, Ridge)
recorded(Dense, Conv, Elementwise, AveragePool, GlobalAverage, Flatten, Family, Parametrisation, Weights)
recorded(Network, build=_network)
recorded(Linearisation, build=_assembled(Linearisation))
recorded(KernelFunction, build=_assembled(KernelFunction))
recorded(InfiniteKernel)
recorded(GridDensity, build=_assembled(GridDensity))
recorded(Particles, fields=_particles_fields, build=_particles)
recorded(Activation, fields=_activation_fields, build=_activation)


@dataclass(frozen=True)
class Row:
    """What is kept of one saved time."""

    t: float
    observed: dict[str, np.ndarray]
    state: Any | None


@dataclass(frozen=True)
class Run:
    """Times, observations, snapshots, status and provenance of one evolution.

    `run.t`, `run["risk"]` (every observer by its name), `run.states` (snapshots at `run.t`),
    `run.final`, `run.status` ("ok", "diverged", "stalled", "interrupted"), `run.message` (what to
    change if the status is not ok), `run.info`, `run.provenance`."""

    rows: tuple[Row, ...]
    final: Any
    status: Status = "ok"
    message: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def t(self) -> np.ndarray:
        """The saved times that were reached."""
        return np.array([row.t for row in self.rows])

    @property
    def states(self) -> list[Any]:
        """Snapshots at `t`; empty if the run kept none (`evolve(..., snapshots=False)`)."""
        return [row.state for row in self.rows if row.state is not None]

    def keys(self) -> list[str]:
        """Names of the observations."""
        return list(self.rows[0].observed) if self.rows else []

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.keys():
            known = ", ".join(self.keys()) or "no saved time yet"
            raise KeyError(f"{name!r} was not observed; this run has {known}.")
        return np.stack([row.observed[name] for row in self.rows])

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __repr__(self) -> str:
        name = self.provenance.get("dynamics", {}).get("name", "run")
        end = f"t = {self.t[-1]:.4g}, risk = {np.mean(self['risk'][-1]):.4g}" if self.rows else "empty"
        return f"Run({name}, {self.status}, {len(self.rows)} times, {end})"

    def _repr_html_(self) -> str:
        """What a notebook shows: a table, the risk, and the neurons as they move, if snapshots were kept."""
        from .showing import HEAD, row_of, shown

        return shown({"run": self}, HEAD, [row_of(self)])

    def citations(self) -> list[str]:
        """The papers behind the methods that this run used."""
        return [REFERENCES[key] for key in self.provenance.get("sources", [])]

    def save(self, directory: str | Path) -> Path:
        """Write the run to a folder, all at once; `wf.load(directory)` reads it back."""
        path = Path(directory)
        with folder.held(path):
            if not self._is_checkpointed(path):
                record = header(self) | {
                    "final": put_state(path, "final", self.final),
                    "segments": [put_rows(path, "rows-00000", self.rows)] if self.rows else [],
                }
                folder.commit(path, record)
        return path

    def _is_checkpointed(self, path: Path) -> bool:
        """Whether `evolve` has kept this very run there already. To write over what it needs to go
        on would lose it, so the folder of another checkpoint is refused."""
        record = folder.read(path) if folder.exists(path) else {}
        if "fingerprint" not in record:
            return False
        told = ("status", "message", "provenance")
        if all(header(self)[key] == record[key] for key in told):
            return True
        raise ValueError(f"{path} holds the checkpoint of another run. Save this one to another folder.")


def header(run: Run, **more: Any) -> dict[str, Any]:
    """The part of a manifest that is not arrays."""
    head = {"format": FORMAT, "kind": "run", "status": run.status, "message": run.message}
    return head | {"info": plain(run.info), "provenance": plain(run.provenance)} | more


def put_state(path: Path, name: str, state: Any) -> dict[str, Any]:
    """Write one state; its entry holds the structure beside the file."""
    arrays: dict[str, np.ndarray] = {}
    return {"state": encode(state, arrays), "arrays": folder.put(path, name, arrays)}


def put_rows(path: Path, name: str, rows: tuple[Row, ...]) -> dict[str, Any]:
    """Write saved times as arrays with a leading time axis."""
    arrays = {"t": np.array([row.t for row in rows])}
    for key in rows[0].observed:
        arrays[f"observed/{key}"] = np.stack([row.observed[key] for row in rows])
    structure = None
    if rows[0].state is not None:
        columns: dict[str, list[np.ndarray]] = {}
        for row in rows:
            leaves: dict[str, np.ndarray] = {}
            structure = encode(row.state, leaves)
            for key, value in leaves.items():
                columns.setdefault(key, []).append(value)
        arrays |= {f"state/{key}": np.stack(values) for key, values in columns.items()}
    return {"state": structure, "arrays": folder.put(path, name, arrays)}


def get_state(path: Path, entry: dict[str, Any], functions: Any = None) -> Any:
    """Read what `put_state` wrote."""
    return decode(entry["state"], folder.get(path, entry["arrays"]), functions)


def get_rows(path: Path, entry: dict[str, Any], functions: Any = None) -> list[Row]:
    """Read what `put_rows` wrote."""
    arrays = folder.get(path, entry["arrays"])
    pick = lambda prefix, i: {
        key.removeprefix(prefix): np.asarray(value[i])
        for key, value in arrays.items()
        if key.startswith(prefix)
    }
    rows = []
    for i, t in enumerate(arrays["t"]):
        kept = entry["state"] is not None
        state = decode(entry["state"], pick("state/", i), functions) if kept else None
        rows.append(Row(float(t), pick("observed/", i), state))
    return rows


def load(directory: str | Path, functions: dict[str, Callable] | None = None) -> Run:
    """The run saved in a folder. A run of your own functions (a custom neuron or activation) needs
    them again, by name, before its states can be evaluated: `functions={"name": fn}`."""
    path = Path(directory)
    record = read_record(path)
    for _ in range(_TRIES):
        try:
            return get_run(path, record, functions)
        except folder.DamagedError:
            # a run that goes on in another process has put a newer checkpoint there meanwhile
            before, record = record, read_record(path)
            if record == before:
                raise
    raise folder.DamagedError(f"{path} changes faster than it can be read; try again.")


def get_run(path: Path, record: dict[str, Any], functions: Any = None) -> Run:
    """Read what a manifest lists, all of it checked."""
    if "carry" in record:
        folder.verified(path, record["carry"])  # not needed here, but damage is told at once
    rows = [row for entry in record["segments"] for row in get_rows(path, entry, functions)]
    final = get_state(path, record["final"], functions)
    status: Status = "interrupted" if record["status"] == "running" else record["status"]
    return Run(tuple(rows), final, status, record["message"], revived(record["info"]), record["provenance"])


def read_record(path: Path) -> dict[str, Any]:
    """The manifest of a saved run, checked for kind and format."""
    record = folder.read(path)
    if record.get("kind") != "run" or record.get("format") != FORMAT:
        raise ValueError(
            f"{path} holds a {record.get('kind')!r} of format {record.get('format')!r}; this version "
            f"reads runs of format {FORMAT}."
        )
    return record


def to_host(value: Any) -> np.ndarray:
    """An observation as a NumPy array."""
    array = np.asarray(jax.device_get(value))
    if array.dtype.kind not in "fiub":
        raise ValueError(f"An observer must return numbers, got dtype {array.dtype}.")
    return array
