"""Kernels of JAX functions from the products in their programs, against Jacobians that are written out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.kernels.empirical.sites import hidden, site_kernels, structure
from wideflow.kernels.function import model

KEYS = iter(jax.random.split(jax.random.key(0), 100))


def draw(*shape):
    return jax.random.normal(next(KEYS), shape) / max(1, shape[0]) ** 0.5


def dense(p, x):
    return jnp.tanh(x @ p["w"] + p["b"]) @ p["v"].T


def convolutions(p, x):
    """NHWC with strides, then NCHW with dilation."""
    nhwc, nchw = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
    h = jax.lax.conv_general_dilated(x, p["one"], (2, 1), "SAME", dimension_numbers=nhwc)
    h = jnp.tanh(h).transpose(0, 3, 1, 2)
    h = jax.lax.conv_general_dilated(
        h, p["two"], (1, 1), [(1, 1), (0, 2)], rhs_dilation=(1, 2), dimension_numbers=nchw
    )
    h = jnp.tanh(h)
    h = jax.lax.conv_general_dilated(
        h, p["grouped"], (1, 1), "VALID", dimension_numbers=nchw, feature_group_count=2
    )
    return h.reshape(len(x), -1)[:, :3]


def attention(p, ids):
    """Heads by einsum, a norm, positions, a checkpoint and a compiled part."""
    h = p["table"][ids] + p["positions"]
    normal = p["scale"] * (h - h.mean(-1, keepdims=True)) / (h.std(-1, keepdims=True) + 1e-3)

    @jax.checkpoint
    def heads(p, h):
        q, k, v = (jnp.einsum("mtd,dhe->mthe", h, p[name]) for name in ("q", "k", "v"))
        weights = jax.nn.softmax(jnp.einsum("mthe,mshe->mhts", q, k), -1)
        return jnp.einsum("mhts,mshe->mthe", weights, v)

    h = h + jnp.einsum("mthe,hed->mtd", heads(p, normal), p["out"])
    return jax.jit(lambda p, h: jax.nn.gelu(h.mean(1)) @ p["head"])(p, h)


def tied(p, ids):
    h = jnp.tanh(jnp.tanh(p["table"][ids] @ p["twice"]).mean(1) @ p["twice"])
    return h @ p["table"].T


def looped(p, x):
    return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, p["stack"])[0] * p["stack"].sum()


def scaled(p, x):
    """Parameters that are changed before they are used."""
    return jnp.tanh(x @ (0.3 * p["w"])) @ p["v"].reshape(5, 2).T


class Images(eqx.Module):
    """A pool of Equinox holds −inf as a bare number."""

    layers: list

    def __init__(self):
        one, two = jax.random.split(jax.random.key(2))
        pool = eqx.nn.MaxPool2d(2, 2)
        self.layers = [eqx.nn.Conv2d(2, 3, 2, key=one), pool, jnp.ravel, eqx.nn.Linear(6, 2, key=two)]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Words(eqx.Module):
    """Attention of Equinox holds the rate of a dropout as a bare number; its table is read by corners."""

    table: eqx.nn.Embedding
    attention: eqx.nn.MultiheadAttention
    head: eqx.nn.Linear

    def __init__(self):
        one, two, three = jax.random.split(jax.random.key(3), 3)
        self.table = eqx.nn.Embedding(7, 4, key=one)
        self.attention = eqx.nn.MultiheadAttention(2, 4, key=two)
        self.head = eqx.nn.Linear(4, 2, use_bias=False, key=three)

    def __call__(self, ids):
        h = jax.vmap(self.table)(ids)
        return self.head(jnp.tanh(h + self.attention(h, h, h)).mean(0))


def mapped(module, x):
    return jax.vmap(module)(x)


MLP = eqx.nn.MLP(4, 2, 5, 2, key=jax.random.key(1))
CASES = {
    "dense": (dense, {"w": draw(4, 5), "b": draw(5), "v": draw(3, 5)}, draw(6, 4), "b"),
    "many rows": (dense, {"w": draw(4, 5), "b": draw(5), "v": draw(3, 5)}, draw(131, 4), "b"),
    "convolutions": (
        convolutions,
        {"one": draw(3, 2, 2, 4), "two": draw(4, 4, 2, 2), "grouped": draw(4, 2, 2, 2)},
        draw(5, 5, 4, 2),
        "grouped",
    ),
    "attention": (
        attention,
        {
            "table": draw(7, 6),
            "positions": draw(5, 6),
            "scale": draw(6),
            **{name: draw(6, 2, 3) for name in "qkv"},
            "out": draw(2, 3, 6),
            "head": draw(6, 2),
        },
        jnp.asarray(np.random.default_rng(0).integers(0, 7, (6, 5))),
        "positions scale",
    ),
    "tied": (
        tied,
        {"table": draw(7, 4), "twice": draw(4, 4)},
        jnp.asarray(np.random.default_rng(0).integers(0, 7, (6, 5))),
        "table",
    ),
    "looped": (looped, {"stack": draw(3, 4, 4)}, draw(5, 4), "stack"),
    "scaled": (scaled, {"w": draw(4, 2), "v": draw(10)}, draw(5, 4), "w"),
    "equinox": (mapped, MLP, draw(5, 4), None),
    "images by equinox": (mapped, Images(), draw(5, 2, 3, 5), "layers0bias layers3bias"),
    "words by equinox": (
        mapped,
        Words(),
        jnp.asarray(np.random.default_rng(0).integers(0, 7, (6, 5))),
        "",
    ),
    "a sequence by equinox": (
        lambda m, x: jax.vmap(jax.vmap(m))(x).mean(1),
        eqx.nn.Linear(4, 3, key=jax.random.key(2)),
        draw(5, 6, 4),
        None,
    ),
}


def cast(tree, dtype):
    real = lambda v: eqx.is_array(v) and jnp.issubdtype(v.dtype, jnp.floating)
    return jax.tree.map(lambda v: v.astype(dtype) if real(v) else v, tree)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_explicit_jacobians(name, dtype):
    f, params, x, generic = CASES[name]
    params, x = cast(params, dtype), cast(x, dtype)
    wrapped = model(f, params, x)
    found = structure(wrapped, x)
    named = jax.tree_util.tree_leaves_with_path(wrapped.moving)
    paths = [jax.tree_util.keystr(path, simple=True) for path, _ in named]
    if generic is not None:
        assert sorted(paths[i] for i in found.generic) == sorted(generic.split())
    rates = np.linspace(1, 2, len(wrapped.leaves))
    O = wrapped.outputs  # noqa: E741
    groups = [np.eye(O)[: O // 2], np.eye(O)[O // 2 :]] if O > 1 else [np.eye(1)]
    kernels = site_kernels(wrapped, found, np.asarray(x), groups, rates, lambda: None)
    jacobian = jax.jacobian(lambda moving: wrapped(moving, x))(wrapped.moving)
    exact = []
    for rate, J in zip(rates, jax.tree.leaves(jacobian), strict=True):
        flat = np.asarray(J, float).reshape(len(x), O, -1)
        exact.append(rate * np.einsum("iop,jop->ij", flat, flat))
    # Sums of up to 10³ terms: rounding of float64, and of float32.
    atol = {"float64": 1e-10, "float32": 1e-5}[dtype] * np.abs(sum(exact)).max()
    for path, K, by_hand in zip(paths, kernels.parts, exact, strict=True):
        np.testing.assert_allclose(K, by_hand, rtol=0, atol=atol, err_msg=path)
    assert len(kernels.terms) == len(groups)
    np.testing.assert_allclose(kernels.terms.sum(0), sum(exact), rtol=0, atol=atol)


def test_the_product_at_a_site_is_what_the_function_computes():
    f, params, x, _ = CASES["dense"]
    wrapped = model(f, params, x)
    one, last = hidden(wrapped, structure(wrapped, x), x)
    np.testing.assert_allclose(one[:, 0], x @ params["w"], rtol=1e-12)
    np.testing.assert_allclose(last[:, 0], f(params, x), rtol=1e-12)


def test_few_vectors_at_a_time(monkeypatch):
    f, params, x, _ = CASES["attention"]
    wrapped = model(f, params, x)
    run = lambda: site_kernels(wrapped, structure(wrapped, x), np.asarray(x), [np.eye(2)], np.ones(8), counts)
    calls = []
    counts = lambda: calls.append(1)
    whole = run().terms
    monkeypatch.setattr("wideflow.kernels.empirical.sites._BYTES", 1)  # a vector at a time
    again = run().terms
    np.testing.assert_allclose(again, whole, rtol=0, atol=1e-12 * np.abs(whole).max())
    assert len(calls) == 4
