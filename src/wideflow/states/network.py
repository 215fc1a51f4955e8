"""A network of any depth at finite width."""

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import finite, positive
from ..parametrisations import ANY_DEPTH, Parametrisation, named
from .chunks import map_rows
from .layers import Conv, Dense
from .trainable import AbstractTrainable, Tangent

if TYPE_CHECKING:
    from .family import Family

_HIDDEN = 2**24  # bytes of hidden layers to hold at once: a few times the cache keeps the products large


class Weights(NamedTuple):
    """W (fan-in, units), or (window, window, channels in, channels) of a convolution; the bias or None."""

    w: Any
    b: Any


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

    parts: tuple[Weights, ...]
    alpha: Float[Array, ""]
    centre: tuple[Weights, ...] | None
    parametrisation: Parametrisation
    family: "Family" = eqx.field(static=True)
    n: int = eqx.field(static=True)

    def __init__(self, parts, family, n, parametrisation, *, alpha=1.0, centred=False):
        shapes = family.weight_shapes(n)
        given = [np.shape(part[0]) for part in parts]
        if given != shapes:
            raise ValueError(f"A network of width {n} has weights of shapes {shapes}, got {given}.")
        self.parts = tuple(Weights(*part) for part in parts)
        self.alpha = jnp.asarray(positive("alpha", alpha), self.parts[0].w.dtype)
        self.centre = self.parts if centred else None
        self.parametrisation = jax.tree.map(lambda v: jnp.asarray(v, self.dtype), parametrisation)
        self.family, self.n = family, n

    @property
    def dtype(self) -> Any:
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
        return _predict(self, self._rows_of(x))

    def trace(self, x: Array, nudges: Any = None) -> Trace:
        """f and all that is computed on the way, with nudges (if given) added to the output of each weight
        layer: their derivative at 0 is the back-signal ∂f/∂h_l. All rows are held."""
        return _trace(self, self._rows_of(x), nudges)

    def features(self, x: Array) -> tuple[Array, ...]:
        """The output h_l of every hidden weight layer, (m, units) or (m, height, width, channels)."""
        return _features(self, self._rows_of(x))

    def pull(self, x: Array, signal: Array) -> Any:
        """Σ_i signal_i ∇f(x_i) times n^−c_l/α (∇F has another α)."""
        x = self._rows_of(x)
        _, back = jax.vjp(lambda parts: _raw(self, parts, x), self.parts)
        return jax.tree.map(lambda g, rate: g * (rate / self.alpha), back(signal)[0], self.rates())

    def tangent(self):
        f, params = _raw_of(self.family, self.n), (self.parts, self.parametrisation)
        return Tangent(f, params, (self.rates(), 0.0))

    def rates(self) -> Any:
        """n^−c_l of the weights, and of the biases."""
        p, n = self.parametrisation, self.n
        pairs = [(p.rate(i, n), p.bias_rate(i, n)) for i in range(len(self.parts))]
        return tuple(
            Weights(rate, None if part.b is None else of_bias)
            for part, (rate, of_bias) in zip(self.parts, pairs, strict=True)
        )

    def normal(self, key: Array) -> Any:
        leaves, tree = jax.tree.flatten(self.parts)
        keys = jax.random.split(key, len(leaves))
        sizes = jax.tree.leaves(self._start_sizes())
        drawn = [
            jnp.asarray(s, v.dtype) * jax.random.normal(k, v.shape, v.dtype)
            for s, k, v in zip(sizes, keys, leaves, strict=True)
        ]
        return jax.tree.unflatten(tree, drawn)

    def _start_sizes(self) -> Any:
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
        mine, depth = self.parametrisation, len(self.parts) - 1
        if mine.name not in ANY_DEPTH:
            return ""
        rules = [named(mine.name, depth, optimiser) for optimiser in ("sgd", "adam")]
        mine = mine.shift(0.0)  # as plain numbers
        if mine == rules[not scale_free] and mine != rules[scale_free]:
            wanted, has = ("adam", "sgd") if scale_free else ("sgd", "adam")
            return (
                f"The rates of this network's parametrisation {mine.name!r} are those for {has}, with which "
                f'its regime is another one. Take family.sample(…, {mine.name!r}, optimiser="{wanted}").'
            )
        return ""

    def rows(self, m: int) -> int:
        widest = max(math.prod(shape) for shape in self.family.shapes(self.n))
        return int(np.clip(_HIDDEN // (widest * self.dtype.itemsize), min(m, 16), m))

    def multipliers(self) -> list[Any]:
        """What stands before W x in each weight layer."""
        return self.family.multipliers(self.parametrisation, self.n)

    def _rows_of(self, x: Any) -> Array:
        x = x if isinstance(x, jax.Array) else jnp.asarray(finite("A network's input x", x))
        shape = self.family.inputs
        if x.ndim < 2 or math.prod(x.shape[1:]) != self.family.d:
            hint = " Try x[None]." if x.shape == shape else ""
            raise ValueError(f"A network's input x must have rows of shape {shape}, got {x.shape}.{hint}")
        return x.astype(self.dtype).reshape(x.shape[0], *shape)


def _run(network: Network, parts: Any, x: Array, nudges: Any = None) -> Trace:
    """All layers, one after the other."""
    p, n, multipliers = network.parametrisation, network.n, network.multipliers()
    inputs, features, i = [], [], 0
    for layer in network.family.layers:
        if not isinstance(layer, Dense | Conv):
            x = layer.apply(x)
            continue
        inputs.append(x)
        x = multipliers[i] * layer.apply(parts[i].w, x)
        if parts[i].b is not None:
            x = x + p.bias_multiplier(i, n) * parts[i].b
        if nudges is not None:
            x = x + nudges[i]
        features.append(x)
        i += 1
    return Trace(x, tuple(inputs), tuple(features))


def _raw(network: Network, parts: Any, x: Array) -> Array:
    """f(x; parts), without α and centre; (m,) for one output."""
    f = _run(network, parts, x).f
    return f[:, 0] if network.outputs == 1 else f


@functools.cache
def _raw_of(family: "Family", n: int) -> Callable[[Any, Array], Array]:
    def f(params: Any, x: Array) -> Array:
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
def _trace(network: Network, x: Array, nudges: Any) -> Trace:
    return _run(network, network.parts, x, nudges)
