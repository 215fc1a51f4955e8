"""Kernels of infinitely wide networks by neural-tangents, float64.

job: {"cases": {name: case}, "get": ["nngp", "ntk"]}, a case as in `networks.kernel_of` with "x" and
perhaps "x2", the names of its inputs. Results: "<name>/<which>" of shape (N, N2)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..serve import Arrays, serve
from .networks import kernel_of


def prepare(job: dict, arrays: Arrays) -> Callable[[], Arrays]:
    jax.config.update("jax_enable_x64", True)
    get = tuple(job.get("get", ("nngp", "ntk")))
    inputs = {name: jnp.asarray(value, jnp.float64) for name, value in arrays.items()}
    kernels = {name: _compiled(case, get) for name, case in job["cases"].items()}

    def call() -> Arrays:
        results = {}
        for name, case in job["cases"].items():
            found = kernels[name](inputs[case["x"]], inputs.get(case.get("x2")))
            results |= {f"{name}/{which}": getattr(found, which) for which in get}
        return results

    return call


def _compiled(case: dict, get: tuple[str, ...]) -> Any:
    kernel = kernel_of(case)
    return jax.jit(lambda x1, x2: kernel(x1, x2, get))


if __name__ == "__main__":
    serve(prepare)
