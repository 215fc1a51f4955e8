"""The kernel of an MLP at given weights by neural-tangents, full output blocks (N, N2, k, k).

job: {"activation", "w_std", "b_std", "implementation", "dtype"}; arrays: x, perhaps x2, W0, W1, …
of shape (fan_in, fan_out) and perhaps b0, b1, …: h_l = w_std x_l W_l/√fan_in + b_std b_l, no
activation on the last. Result: "ntk"."""

from collections.abc import Callable
from itertools import count, takewhile

import jax
import jax.numpy as jnp

import neural_tangents as nt

from ..serve import Arrays, serve

ACTIVATIONS = {
    "relu": jax.nn.relu,
    "erf": jax.scipy.special.erf,
    "tanh": jnp.tanh,
    "gelu": lambda h: jax.nn.gelu(h, approximate=False),
    "identity": lambda h: h,
}


def prepare(job: dict, arrays: Arrays) -> Callable[[], Arrays]:
    jax.config.update("jax_enable_x64", job["dtype"] == "float64")
    inputs = {name: jnp.asarray(value, job["dtype"]) for name, value in arrays.items()}
    layers = list(takewhile(lambda layer: f"W{layer}" in inputs, count()))
    params = [(inputs[f"W{layer}"], inputs.get(f"b{layer}")) for layer in layers]
    phi, w_std, b_std = ACTIVATIONS[job["activation"]], job.get("w_std", 1.0), job.get("b_std", 0.0)

    def network(params, x):
        for layer, (w, b) in enumerate(params):
            x = w_std / w.shape[0] ** 0.5 * (x @ w)
            x = x if b is None else x + b_std * b
            x = phi(x) if layer + 1 < len(params) else x
        return x

    how = nt.NtkImplementation[job["implementation"]]
    ntk = nt.empirical_ntk_fn(network, trace_axes=(), vmap_axes=0, implementation=how)
    compiled = jax.jit(ntk)
    return lambda: {"ntk": compiled(inputs["x"], inputs.get("x2"), params)}


if __name__ == "__main__":
    serve(prepare)
