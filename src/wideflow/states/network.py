"""A network of any depth at finite width."""

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from .._checks import count, finite, positive
from .._typing import DType, TypeIs
from ..parametrisations import ANY_DEPTH, Parametrisation, named
from ..problems.activations import Activation
from ..store.registry import assembled, must_be, recorded
from .chunks import map_rows
from .layers import Forward, Weights
from .trainable import AbstractTrainable, Tangent

if TYPE_CHECKING:
    from .family import Family

_HIDDEN = 2**24  # bytes of hidden layers to hold at once: a few times the cache keeps the products large


class Trace(NamedTuple):
    """What a network computes on the way: f (m, outputs); for every weight layer its input x, before the
    multiplier, and its output h."""

    f: Array
    inputs: tuple[Array, ...]
    features: tuple[Array, ...]


class Network(AbstractTrainable):
    """F(x) = α f(x; W), or α(f(x; W) − f(x; W₀)) if centred, with layer l as in `Family`.

    Its velocity is −n^−c_l α^−2 ∇_{W_l} R, so that t = kη₀ is the time of every width and every α; decay and
    noise act per unit of that time: −λW, and noise of the size n^−b_l of the layer's own start."""

    shared = ("parametrisation",)
    parts: tuple[Weights, ...]
    alpha: Float[Array, "*r"]
    centre: tuple[Weights, ...] | None
    parametrisation: Parametrisation
    family: "Family" = eqx.field(static=True)
    n: int = eqx.field(static=True)

    def __init__(self, parts, family, n, parametrisation, *, alpha=1.0, centred=False):
        shapes = family.weight_shapes(n)
        actual = [np.shape(part[0]) for part in parts]
        if actual != shapes:
            raise ValueError(f"A network of width {n} has weights of shapes {shapes}, got {actual}.")
        self.parts = tuple(Weights(*part) for part in parts)
        self.alpha = jnp.asarray(positive("alpha", alpha), self.parts[0].w.dtype)
        self.centre = self.parts if centred else None
        self.parametrisation = jax.tree.map(lambda v: jnp.asarray(v, self.dtype), parametrisation)
        self.family, self.n = family, n

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.parts[0].w.dtype

    def __repr__(self) -> str:
        rule = self.parametrisation.name or repr(self.parametrisation)
        centred = ", centred" if self.centre is not None else ""
        return f"Network(n = {self.n}, {rule}, α = {self.alpha}{centred}, {self.dtype}, {self.family!r})"

    @property
    def outputs(self) -> int:
        return self.family.outputs

    def __call__(self, x: Array) -> Array:
        """F on the rows of x: (m,) for one output, (m, outputs) for more."""
        if self.replicas is not None:
            return jax.vmap(lambda one: one(x), in_axes=(self.axes(),))(self)
        return _predict(self, self._rows_of(x))

    def trace(self, x: Array, nudges: PyTree = None) -> Trace:
        """f and all that is computed on the way, with nudges (if given) added to the output of each weight
        layer: their derivative at 0 is the back-signal ∂f/∂h_l. All rows are kept in memory."""
        return _trace(self, self._rows_of(x), nudges)

    def features(self, x: Array) -> tuple[Array, ...]:
        """The output h_l of every hidden weight layer, (m, units) or (m, height, width, channels)."""
        return _features(self, self._rows_of(x))

    def preactivations(self, x):
        forward = _forward(self, self.parts)
        stack: tuple[Array, ...] = (self._rows_of(x),)
        entering: list[tuple[Activation, Array]] = []
        for step in self.family.steps:
            entering += [] if step.phi is None else [(step.phi, stack[-1])]
            stack = step.pass_values(stack, forward)
        return tuple(entering)

    def vjp(self, x: Array, signal: Array) -> PyTree:
        """Σ_i signal_i ∇f(x_i) times n^−c_l/α (∇F has another α)."""
        x = self._rows_of(x)
        _, back = jax.vjp(lambda parts: _raw(self, parts, x), self.parts)
        return jax.tree.map(lambda g, rate: g * (rate / self.alpha), back(signal)[0], self.rates())

    def tangent(self):
        f, params = _raw_of(self.family, self.n), (self.parts, self.parametrisation)
        return Tangent(f, params, (self.rates(), 0.0))

    def rates(self) -> PyTree:
        """n^−c_l of the weights, and of the biases."""
        p, n = self.parametrisation, self.n
        pairs = [(p.rate(i, n), p.bias_rate(i, n)) for i in range(len(self.parts))]
        return tuple(
            Weights(rate, None if part.b is None else bias_rate)
            for part, (rate, bias_rate) in zip(self.parts, pairs, strict=True)
        )

    def normal(self, key: Array) -> PyTree:
        leaves, tree = jax.tree.flatten(self.parts)
        keys = jax.random.split(key, len(leaves))
        sizes = jax.tree.leaves(self._start_sizes())
        drawn = [
            jnp.asarray(s, v.dtype) * jax.random.normal(k, v.shape, v.dtype)
            for s, k, v in zip(sizes, keys, leaves, strict=True)
        ]
        return jax.tree.unflatten(tree, drawn)

    def _start_sizes(self) -> PyTree:
        p, n = self.parametrisation, self.n
        return tuple(
            Weights(p.sd(i, n), None if part.b is None else p.bias_sd(i, n))
            for i, part in enumerate(self.parts)
        )

    def second_moment(self) -> Float[Array, ""]:
        """½ Σ |W_l|²/rate_l: the energy whose flow, at the rates of the layers, is −W."""
        squares = jax.tree.map(lambda p, rate: jnp.sum(p**2) / rate, self.parts, self.rates())
        return 0.5 * sum(jax.tree.leaves(squares), jnp.zeros((), self.dtype))

    def objection(self, scale_free):
        own, depth = self.parametrisation, len(self.parts) - 1
        if own.name not in ANY_DEPTH:
            return ""
        rules = [named(own.name, depth, optimiser) for optimiser in ("sgd", "adam")]
        own = own.shift(0.0)  # as plain numbers
        if own == rules[not scale_free] and own != rules[scale_free]:
            needed, actual = ("adam", "sgd") if scale_free else ("sgd", "adam")
            return (
                f"The rates of this network's parametrisation {own.name!r} are those for {actual}, which "
                f'lead to another regime. Take family.sample(…, {own.name!r}, optimiser="{needed}").'
            )
        return ""

    def rows(self, m: int) -> int:
        widest = max(math.prod(shape) for shape in self.family.shapes(self.n))
        return int(np.clip(_HIDDEN // (widest * self.dtype.itemsize), min(m, 16), m))

    def multipliers(self) -> list[PyTree]:
        """What stands before W x in each weight layer."""
        return self.family.multipliers(self.parametrisation, self.n)

    def _rows_of(self, x: ArrayLike) -> Array:
        x = x if isinstance(x, jax.Array) else jnp.asarray(finite("A network's input x", x))
        shape = self.family.inputs
        if x.ndim < 2 or math.prod(x.shape[1:]) != self.family.d:
            hint = " Try x[None]." if x.shape == shape else ""
            raise ValueError(f"A network's input x must have rows of shape {shape}, got {x.shape}.{hint}")
        return x.astype(self.dtype).reshape(x.shape[0], *shape)


def _forward(network: Network, parts: PyTree, nudges: PyTree = None) -> Forward:
    """What the weight layers ask for."""
    p, n = network.parametrisation, network.n
    biases = [p.bias_multiplier(i, n) for i in range(len(parts))]
    return Forward(parts, network.multipliers(), biases, nudges)


def _run(network: Network, parts: PyTree, x: Array, nudges: PyTree = None) -> Trace:
    """All layers, one after the other."""
    forward = _forward(network, parts, nudges)
    stack: tuple[Array, ...] = (x,)
    for step in network.family.steps:
        stack = step.pass_values(stack, forward)
    return Trace(stack[-1], tuple(forward.inputs), tuple(forward.features))


def _raw(network: Network, parts: PyTree, x: Array) -> Array:
    """f(x; parts), without α and centre; (m,) for one output."""
    f = _run(network, parts, x).f
    return f[:, 0] if network.outputs == 1 else f


@functools.cache
def _raw_of(family: "Family", n: int) -> Callable[[PyTree, Array], Array]:
    def f(params: PyTree, x: Array) -> Array:
        network = Network(params[0], family, n, params[1])
        return _raw(network, network.parts, network._rows_of(x))

    return f


@eqx.filter_jit
def _predict(network: Network, x: Array) -> Array:
    def rows(x: Array) -> Array:
        f = _raw(network, network.parts, x)
        if network.centre is not None:
            f = f - _raw(network, network.centre, x)
        return network.alpha * f

    return map_rows(rows, x, network.rows(x.shape[0]))


@eqx.filter_jit
def _features(network: Network, x: Array) -> tuple[Array, ...]:
    return _run(network, network.parts, x).features[:-1]


@eqx.filter_jit
def _trace(network: Network, x: Array, nudges: PyTree) -> Trace:
    return _run(network, network.parts, x, nudges)


def _rebuilt(parts, alpha, centre, parametrisation, family, n) -> Network:
    """As it was stored, with any replica axes in front."""
    shapes = family.weight_shapes(count("n", n))
    for kept in (parts, centre):
        for part, shape in zip(kept, shapes, strict=True) if kept is not None else ():
            trailing = np.shape(part.w)[-len(shape) :], np.shape(part.b)[-1:]
            if trailing != (shape, () if part.b is None else shape[-1:]):
                raise ValueError(
                    f"a network of width {n} has weights of shape {shape}, got {np.shape(part.w)}."
                )
    dtype = parts[0].w.dtype
    exponents = jax.tree.map(
        lambda v: jnp.asarray(v, dtype), must_be("exponents", parametrisation, Parametrisation)
    )
    fields = {"parts": parts, "alpha": alpha, "centre": centre, "family": family, "n": n}
    return assembled(Network)(parametrisation=exponents, **fields)


recorded(Network, build=_rebuilt)


def is_network(state: object) -> TypeIs[Network]:
    """Whether a state is a network of layers."""
    return isinstance(state, Network)
