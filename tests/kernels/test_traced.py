"""Kernels inside jit, grad and vmap: the same numbers, and derivatives against finite differences."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import wideflow as wf
from wideflow.kernels.empirical.layerwise import layerwise_ntk

# Two programs for one sum of some hundred products, each rounded at 1e-16.
ROUNDING = dict(rtol=1e-12, atol=1e-13)
X, Y = jr.normal(jr.key(1), (7, 4)), jr.normal(jr.key(2), (3, 4))
DEEP = wf.MLP(4, 2, "erf", outputs=2, bias=0.4)
NET = DEEP.sample(jr.key(0), 6, "mup")
NEURONS = wf.init(wf.Problem(x=wf.Gaussian(4), target=wf.single_index("erf"), neuron=wf.Neuron("tanh")))
STATES = {
    "network": NET,
    "CNN": wf.CNN((2, 2, 1), 1, "tanh", window=2).sample(jr.key(0), 3),
    "particles": NEURONS.sample(jr.key(0), 6, alpha=2.0),
    "linearised": wf.kernels.Linearisation(NET),
}
FORMS = ["full", "trace", "diagonal"]


@pytest.mark.parametrize("name", STATES)
def test_jit_of_a_state_and_of_data(name):
    state = STATES[name]
    for form, second in (("full", Y), ("trace", None)):
        kernel = functools.partial(wf.tangent_kernel, form=form)
        eager = kernel(state, X, second)
        compiled = eqx.filter_jit(kernel)(state, X, second)
        assert compiled.shape == eager.shape and compiled.dtype == eager.dtype
        np.testing.assert_allclose(compiled, eager, **ROUNDING)


@pytest.mark.parametrize("form", FORMS)
def test_jit_in_tiles(form, memory=3000):
    """So few bytes hold one or two samples at a time."""
    f, params, rates = NET.tangent()
    eager = layerwise_ntk(NET, X, form=form)
    deep = jax.jit(lambda x: layerwise_ntk(NET, x, form=form, memory=memory))(X)
    np.testing.assert_allclose(deep, eager, **ROUNDING)
    for method in ("contraction", "products"):
        ask = lambda x, how=method: wf.empirical_ntk(
            f, params, x, form=form, rates=rates, method=how, memory=memory
        )
        np.testing.assert_allclose(jax.jit(ask)(X), eager, **ROUNDING)


def test_what_f_closes_over_may_be_traced():
    """Inside grad alone, only the output of f says so."""
    params = jr.normal(jr.key(3), (4,))
    kernel = lambda c: jnp.sum(wf.empirical_ntk(lambda p, x: jnp.tanh(c * (x @ p)), params, X))
    step = 1e-5
    slope = (kernel(1.0 + step) - kernel(1.0 - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(kernel)(1.0), slope, rtol=1e-8)  # step², and 1e-16/step of rounding


def test_rates_may_be_traced():
    """The kernel is linear in the rates."""
    f, params, rates = NET.tangent()
    kernel = lambda c: wf.empirical_ntk(f, params, X, rates=jax.tree.map(lambda r: c * r, rates))
    np.testing.assert_allclose(jax.jacfwd(kernel)(2.0), kernel(1.0), **ROUNDING)


def trace_of(kernel):
    return jnp.trace(kernel if kernel.ndim == 2 else jnp.trace(kernel, axis1=2, axis2=3))


@pytest.mark.parametrize("name", ["network", "CNN", "particles"])
def test_derivative_of_the_trace_in_the_weights(name):
    """Along a random direction, by the central difference: its error is step², and 1e-16/step of rounding."""
    state, step = STATES[name], 1e-5
    value = jax.jit(lambda parts: trace_of(wf.tangent_kernel(state.with_parts(parts), X)))
    leaves, tree = jax.tree.flatten(state.parts)
    direction = jax.tree.unflatten(tree, [jr.normal(jr.key(i), v.shape) for i, v in enumerate(leaves)])
    at = lambda s: value(jax.tree.map(lambda p, v: p + s * v, state.parts, direction))
    slope = (at(step) - at(-step)) / (2 * step)
    gradient = jax.grad(value)(state.parts)
    along = sum(jnp.vdot(g, v) for g, v in zip(*map(jax.tree.leaves, (gradient, direction)), strict=True))
    np.testing.assert_allclose(along, slope, rtol=1e-7)


def test_replicas():
    """vmap over a leading axis of all parameters is each network's own kernel."""
    networks = [DEEP.sample(jr.key(seed), 6, "mup") for seed in range(3)]
    parts = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[net.parts for net in networks])
    f, (_, exponents), rates = NET.tangent()
    together = jax.vmap(lambda one: wf.tangent_kernel(NET.with_parts(one), X))(parts)
    general = jax.vmap(lambda one: wf.empirical_ntk(f, (one, exponents), X, rates=rates))(parts)
    stacked = DEEP.sample(jr.key(5), 6, "mup", replicas=2)
    at_once, by_layer = wf.tangent_kernel(stacked, X), wf.kernels.tangent_kernels(stacked, X)
    for r in range(2):
        alone = DEEP.sample(jr.fold_in(jr.key(5), r), 6, "mup")
        np.testing.assert_array_equal(stacked.replica(r)(X), alone(X))
        np.testing.assert_allclose(at_once[r], wf.tangent_kernel(alone, X), **ROUNDING)
        np.testing.assert_allclose(sum(by_layer.values())[r], at_once[r], **ROUNDING)
    for replica, network in enumerate(networks):
        alone = wf.tangent_kernel(network, X)
        np.testing.assert_allclose(together[replica], alone, **ROUNDING)
        np.testing.assert_allclose(general[replica], alone, **ROUNDING)


# --- n = ∞ ----------------------------------------------------------------------------------------


def test_infinite_kernels():
    """Closed forms: the series of other activations are as long as the numbers ask for on arrays alone."""
    family = wf.MLP(4, 1, "relu")
    eager, crossed = wf.infinite_kernels(family, X), wf.infinite_kernels(family, X, Y)
    for one, other in zip(jax.jit(lambda x: wf.infinite_kernels(family, x))(X), eager, strict=True):
        np.testing.assert_allclose(one, other, **ROUNDING)
    pairs = jax.vmap(lambda x: wf.infinite_kernels(family, x[None], Y))(X)
    for one, other in zip(pairs, crossed, strict=True):
        np.testing.assert_allclose(one[:, 0], other, **ROUNDING)
    # relu without biases is homogeneous of degree 1, and so is each kernel in either argument
    slope = jax.grad(lambda c: jnp.sum(wf.infinite_kernels(family, c * X, Y).ntk))(1.0)
    np.testing.assert_allclose(slope, np.sum(crossed.ntk), **ROUNDING)


def test_only_shapes_are_refused():
    with pytest.raises(ValueError, match="rows of shape"):
        jax.jit(lambda x: wf.tangent_kernel(NET, x))(X[:, :3])
    with pytest.raises(ValueError, match="rows of shape"):
        jax.jit(lambda x: wf.infinite_kernels(DEEP, x))(X[:, :3])
    with pytest.raises(ValueError, match="one array with a row for each"):
        jax.jit(lambda x: wf.empirical_ntk(lambda p, x: jnp.sum(x @ p), jnp.ones(4), x))(X)
