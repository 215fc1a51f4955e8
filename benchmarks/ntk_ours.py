"""The kernels of wideflow, asked for as those of the peers are: `neural_tangents/infinite.py` (job with
"cases") and `neural_tangents/empirical.py` (weights as arrays, without biases), same jobs, same results."""

from collections.abc import Callable
from itertools import count, takewhile
from typing import Any

import jax
import jax.numpy as jnp

import wideflow as wf
from wideflow.kernels.empirical import layerwise
from wideflow.kernels.infinite import kernels as infinite
from wideflow.parametrisations import named
from wideflow.states.network import Network

from .serve import Arrays, serve

HEADS = {"flatten": "flatten", "gap": "average"}


def prepare(job: dict, arrays: Arrays) -> Callable[[], Arrays]:
    return _infinite(job, arrays) if "cases" in job else _empirical(job, arrays)


def _empirical(job: dict, arrays: Arrays) -> Callable[[], Arrays]:
    jax.config.update("jax_enable_x64", job["dtype"] == "float64")
    inputs = {name: jnp.asarray(value, job["dtype"]) for name, value in arrays.items()}
    layers = takewhile(lambda layer: f"W{layer}" in inputs, count())
    weights = [inputs[f"W{layer}"] for layer in layers]
    depth, (d, n), outputs = len(weights) - 1, weights[0].shape, weights[-1].shape[1]
    scales: dict[str, Any] = {"gain": job.get("w_std", 1.0), "input_scale": "front"}
    family = wf.MLP(d, depth, job["activation"], outputs=outputs, **scales)
    network = Network([(w, None) for w in weights], family, n, named("ntk", depth, "sgd"))
    return lambda: {"ntk": layerwise.layerwise_ntk(network, inputs["x"], inputs.get("x2"), form="full")}


def _infinite(job: dict, arrays: Arrays) -> Callable[[], Arrays]:
    get = job.get("get", ("nngp", "ntk"))
    families = {name: family(case, arrays[case["x"]].shape[1:]) for name, case in job["cases"].items()}

    def call() -> Arrays:
        results = {}
        for name, case in job["cases"].items():
            x1, x2 = arrays[case["x"]], arrays.get(case.get("x2"))
            found = infinite.infinite_kernels(families[name], x1, x2, parametrisation="ntk")
            results |= {f"{name}/{which}": getattr(found, which) for which in get}
        return results

    return call


def family(case: dict, shape: tuple[int, ...]) -> wf.Family:
    """The family of a case (see `neural_tangents/networks.py`) on inputs of a shape. A bias of
    neural-tangents is b_std·b with b trained, ours is trained itself: the same kernel at b_std 0 and 1."""
    depth, pool_after = case["depth"], case.get("pool_after")
    phi: Any = case["activation"]
    if phi == "leaky_relu":
        phi = wf.activation(phi, slope=case["options"]["alpha"])
    scales = {"gain": case.get("w_std", 1.0), "bias": case.get("b_std") or None, "input_scale": "front"}
    if (head := case.get("readout")) is None:
        return wf.MLP(*shape, depth, phi, **scales)
    pool = [2 if layer == pool_after else 1 for layer in range(1, depth + 1)]
    return wf.CNN(shape, depth, phi, pool=pool, head=HEADS[head], **scales)


if __name__ == "__main__":
    serve(prepare)
