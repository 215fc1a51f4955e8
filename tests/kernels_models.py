"""Models of several libraries' kinds, and their kernels from explicit Jacobians."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np


def two_layer(params, x):
    a, w = params
    return jnp.tanh(x @ w.T) @ a / len(a)


def mlp(params, x):
    *hidden, (w, b) = params
    for v, c in hidden:
        x = jax.nn.gelu(x @ v + c)
    return x @ w + b


def dictionary(params, x):
    return {"relu": jax.nn.relu(x @ params["in"]["w"]), "step": params["step"]}["relu"] @ params["out"]


def convolution(params, x):
    """Images (m, 6, 6, 1); outputs (m, 2, 2), to be flattened."""
    filters, w = params
    h = jax.lax.conv_general_dilated(x, filters, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(h).reshape(x.shape[0], -1) @ w.reshape(-1, 4) + jnp.zeros((x.shape[0], 4))


def images(params, x):
    return convolution(params, x).reshape(-1, 2, 2)


_, STATIC = eqx.partition(eqx.nn.MLP(4, 2, 8, 2, key=jr.key(0)), eqx.is_inexact_array)


def equinox(params, x):
    return jax.vmap(eqx.combine(params, STATIC))(x)


def normal(key, *shape):
    return jr.normal(jr.key(key), shape)


def cases():
    """name → (f, params, x, x2)."""
    x, y = normal(1, 11, 4), normal(2, 5, 4)
    layers = [(4, 9), (9, 7), (7, 3)]
    deep = [(normal(3 + a, a, b) / a**0.5, 0.1 * normal(30 + a, b)) for a, b in layers]
    tree = {"in": {"w": normal(4, 4, 6)}, "out": normal(5, 6, 1), "step": jnp.asarray(3)}
    pictures, others = normal(6, 7, 6, 6, 1), normal(7, 3, 6, 6, 1)
    module = eqx.filter(eqx.nn.MLP(4, 2, 8, 2, key=jr.key(8)), eqx.is_inexact_array)
    return {
        "two layers": (two_layer, (normal(9, 20), normal(10, 20, 4)), x, y),
        "mlp": (mlp, deep, x, y),
        "dictionary": (dictionary, tree, x, y),
        "equinox": (equinox, module, x, y),
        "convolution": (images, (normal(11, 3, 3, 1, 2), normal(12, 18, 4)), pictures, others),
    }


def jacobian(f, params, x):
    """(m, O, P), leaf by leaf, by jax.jacrev; leaves of integers are left out."""
    moving, held = eqx.partition(params, eqx.is_inexact_array)
    leaves = jax.tree.leaves(jax.jacrev(lambda p: f(eqx.combine(p, held), x).reshape(len(x), -1))(moving))
    outputs = f(params, x).reshape(len(x), -1).shape[1]
    return [np.asarray(leaf).reshape(len(x), outputs, -1) for leaf in leaves]


def explicit(f, params, x1, x2=None, rates=None):
    """(m1, m2, O, O), or (m1, m2) for one output."""
    first = jacobian(f, params, x1)
    second = first if x2 is None else jacobian(f, params, x2)
    rates = [1.0] * len(first) if rates is None else rates
    pairs = zip(rates, first, second, strict=True)
    kernel = sum(rate * np.einsum("iop,jqp->ijoq", a, b) for rate, a, b in pairs)
    return kernel[:, :, 0, 0] if kernel.shape[2] == 1 else kernel
