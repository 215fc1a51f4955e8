"""Where a run comes from: what was asked for, the seed, the versions, the kind of machine."""

import datetime
import functools
import importlib.metadata
import platform

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._data import Data
from .dynamics.base import AbstractDynamics
from .states.state import AbstractState
from .store.origins import VERSIONED
from .store.records import describe
from .store.settings import machine


@functools.cache
def versions() -> dict[str, str]:
    """Versions of the library and of the parts that its numbers depend on."""
    versions = {"python": platform.python_version()}
    for name in VERSIONED:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _dtype(state: AbstractState) -> str:
    dtypes = [str(leaf.dtype) for leaf in jax.tree.leaves(state) if hasattr(leaf, "dtype")]
    return dtypes[0] if dtypes else str(jnp.result_type(float))


def provenance(dynamics: AbstractDynamics, state: AbstractState, key: Array, observers: Data) -> Data:
    """What is recorded with every run."""
    device = jax.devices()[0]
    return {
        "dynamics": describe(dynamics) | {"name": dynamics.name},
        "start": describe(state),
        "observers": {name: describe(fn) for name, fn in observers.items()},
        "seed": np.asarray(jax.random.key_data(key)).tolist(),
        "dtype": _dtype(state),
        "x64": bool(jnp.result_type(float) == jnp.float64),
        "device": f"{device.platform}:{device.device_kind}",
        "platform": f"{platform.system()}-{platform.machine()}",
        "machine": machine(),
        "versions": versions(),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "sources": list(dynamics.sources),
    }
