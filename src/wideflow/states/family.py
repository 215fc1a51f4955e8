"""Families of networks: an architecture without its width. `sample(key, n)` makes the network of width n,
and the kernels of n = ∞ come from the same layers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from .._checks import count, fits, positive
from .._checks import key as check_key
from .._shown import shown
from .._typing import Scalar, TypeIs
from ..parametrisations import Parametrisation, named
from ..problems.activations import Activation
from ..problems.activations import activation as as_activation
from ..store.registry import recorded
from .layers import (
    AbstractLayer,
    AbstractStep,
    AbstractWeighted,
    AveragePool,
    Conv,
    Dense,
    Elementwise,
    Flatten,
    GlobalAverage,
    Shape,
    Weights,
)
from .network import Network
from .replicas import replica_keys, stack

_DEEPEST = 1000


class Site(NamedTuple):
    """One weight matrix of a network: its layer, and the shapes that enter and leave it."""

    layer: AbstractWeighted
    inputs: Shape
    outputs: Shape


@recorded
@dataclass(frozen=True)
class Family:
    """Networks of one architecture at every width n.

    Weight layer l = 1 … L+1 is h = n^−a_l g_l W x (+ bias) with entries of W ~ N(0, n^−2b_l s_l²), trained at
    the rate n^−c_l; (a, b, c) come from a `Parametrisation`, and the constants g_l s_l = gain/√k_l from here;
    k_l is the part of the fan-in that does not grow with n (window, positions; d in the first layer). In the
    first layer the constant is in the start, as in `wf.init` (w ~ N(0, I/d)), or with `input_scale="front"`
    in front of W; elsewhere it is in front.

    - `inputs`: the shape of one x, (d,) or (height, width, channels).
    - `bias`: standard deviation of the biases at the start; None for a network without.

    >>> phi = wf.layers.Elementwise(wf.activation("relu"))
    >>> family = wf.Family((3,), (wf.layers.Dense(), phi, wf.layers.Dense(2)))
    >>> family.sample(key, 4)(jnp.ones((5, 3))).shape
    (5, 2)"""

    inputs: Shape
    layers: tuple[AbstractLayer, ...]
    gain: float = 1.0
    bias: float | None = None
    input_scale: str = "start"

    def __post_init__(self):
        positive("gain", self.gain)
        if self.bias is not None:
            if isinstance(self.bias, bool):
                raise ValueError(f"bias must be a standard deviation such as 0.1, or None, got {self.bias}.")
            positive("bias", self.bias, zero=True)
        if self.input_scale not in ("start", "front"):
            raise ValueError(f'input_scale must be "start" or "front", got {shown(self.input_scale)}.')
        wrong = [layer for layer in self.layers if not isinstance(layer, AbstractLayer)]
        if wrong or self.depth < 1 or self.layers[-1].outputs is None:
            raise ValueError(
                "A family of networks needs at least one hidden layer and ends with Dense(outputs), got "
                f"{shown(self.layers)}."
            )
        for n in (4, 5):  # raises where two layers do not fit; at one width they may by chance
            self.shapes(n)

    @cached_property
    def steps(self) -> tuple[AbstractStep, ...]:
        """All layers, with blocks taken apart."""
        return tuple(step for layer in self.layers for step in layer.steps())

    @property
    def depth(self) -> int:
        """L, the number of hidden layers with weights."""
        return sum(step.as_weighted() is not None for step in self.steps) - 1

    @property
    def outputs(self) -> int:
        outputs = self.layers[-1].outputs
        assert outputs is not None  # as __post_init__ has checked
        return outputs

    @property
    def d(self) -> int:
        """Numbers in one x."""
        return math.prod(self.inputs)

    def shapes(self, n: int) -> list[Shape]:
        """The shape that each of the `steps` takes in, and that of the output."""
        stack: tuple[Shape, ...] = (self.inputs,)
        shapes = [self.inputs]
        for step in self.steps:
            stack = step.pass_shapes(stack, n)
            shapes.append(stack[-1])
        return shapes

    def sites(self, n: int) -> list[Site]:
        """The weight layers, in the order of the parametrisation's rows."""
        shapes = self.shapes(n)
        weighted = [(i, step.as_weighted()) for i, step in enumerate(self.steps)]
        return [Site(layer, shapes[i], shapes[i + 1]) for i, layer in weighted if layer is not None]

    def weight_shapes(self, n: int) -> list[Shape]:
        """The shape of W in each weight layer."""
        return [site.layer.weight_shape(site.inputs, n) for site in self.sites(n)]

    def constants(self) -> list[float]:
        """gain/√k_l of each weight layer; k_l is its fan-in at width 1."""
        return [self.gain / math.sqrt(site.layer.fan_in(site.inputs, 1)) for site in self.sites(1)]

    def multipliers(self, parametrisation: Parametrisation, n: int) -> list[Scalar]:
        """What stands before W x in each weight layer, n^−a_l g_l."""
        factors = [parametrisation.multiplier(i, n) for i in range(self.depth + 1)]
        fixed = self.constants()
        if self.input_scale == "start":
            fixed[0] = 1.0
        return [f * c for f, c in zip(factors, fixed, strict=True)]

    def deviations(self, parametrisation: Parametrisation, n: int) -> list[Scalar]:
        """The standard deviation of the entries of W in each weight layer, n^−b_l s_l."""
        sds: list[Scalar] = [parametrisation.sd(i, n) for i in range(self.depth + 1)]
        if self.input_scale == "start":
            sds[0] *= self.constants()[0]
        return sds

    def sample(
        self,
        key: Array,
        n: int,
        parametrisation: "str | Parametrisation" = "ntk",
        *,
        alpha: float = 1.0,
        centred: bool = False,
        optimiser: str = "sgd",
        dtype: DTypeLike | None = None,
        replicas: int | None = None,
    ) -> Network:
        """A network of width n at its random start; layer l depends on (key, l). `centred=True` trains
        F = α(f − f₀), which is 0 at the start. `optimiser="adam"` where it will be trained by Adam: the
        rates of a parametrisation by name differ for it. `replicas=R` draws R networks along a leading axis,
        to be moved as one; replica r is `sample(fold_in(key, r), n)`."""
        if replicas is not None:
            keys = replica_keys(check_key("key", key), count("replicas", replicas))
            how = {"alpha": alpha, "centred": centred, "optimiser": optimiser, "dtype": dtype}
            return stack([self.sample(one, n, parametrisation, **how) for one in keys])  # type: ignore[arg-type]
        n, parametrisation = count("n", n), named(parametrisation, self.depth, optimiser)
        dtype = jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
        shapes = self.weight_shapes(n)
        size = sum(math.prod(shape) for shape in shapes)
        fits(
            f"A network of {size:.3g} weights", 3.0 * size * dtype.itemsize, "Use a smaller width or float32."
        )
        sds, parts = self.deviations(parametrisation, n), []
        for i, shape in enumerate(shapes):
            key_w, key_b = jax.random.split(jax.random.fold_in(check_key("key", key), i))
            w = sds[i] * jax.random.normal(key_w, shape, dtype)
            b = None
            if self.bias is not None:
                b = self.bias * parametrisation.bias_sd(i, n) * jax.random.normal(key_b, shape[-1:], dtype)
            parts.append(Weights(w.astype(dtype), b if b is None else b.astype(dtype)))
        return Network(tuple(parts), self, n, parametrisation, alpha=alpha, centred=centred)

    def __repr__(self) -> str:
        changed = {
            "gain": self.gain != 1,
            "bias": self.bias is not None,
            "input_scale": self.input_scale != "start",
        }
        options = "".join(f", {name}={getattr(self, name)!r}" for name, shown in changed.items() if shown)
        return f"Family({'×'.join(map(str, self.inputs))} → {' → '.join(map(str, self.layers))}{options})"


def _deep(name: str, depth: int) -> int:
    """`depth`, if a network of this many layers can be compiled: programs grow with each of them."""
    if count(name, depth) > _DEEPEST:
        raise ValueError(f"{name} must be a whole number from 1 to {_DEEPEST}, got {depth}.")
    return int(depth)


def MLP(  # noqa: N802
    d: int,
    depth: int = 1,
    activation: str | Activation = "relu",
    *,
    outputs: int = 1,
    gain: float = 1.0,
    bias: float | None = None,
    input_scale: str = "start",
) -> Family:
    """f(x) = W_{L+1} φ(W_L … φ(W_1 x)): `depth` = L hidden layers of n units each, φ the `activation`.

    `outputs` values of f; `gain`, `bias` (standard deviation at the start, None for none) and `input_scale`
    as in `wf.Family`.

    >>> wf.MLP(3, depth=2, outputs=2).sample(key, 4, "mup")(jnp.ones((5, 3))).shape
    (5, 2)"""
    depth, phi = _deep("MLP(depth)", depth), as_activation(activation)
    hidden = (Dense(), Elementwise(phi)) * depth
    layers = (*hidden, Dense(count("MLP(outputs)", outputs)))
    return Family((count("MLP(d)", d),), layers, gain, bias, input_scale)


def CNN(  # noqa: N802
    inputs: Sequence[int],
    depth: int = 1,
    activation: str | Activation = "relu",
    *,
    window: int = 3,
    stride: int = 1,
    padding: str = "SAME",
    pool: int | Sequence[int] = 1,
    head: str = "flatten",
    outputs: int = 1,
    gain: float = 1.0,
    bias: float | None = None,
    input_scale: str = "start",
) -> Family:
    """`depth` convolutions with n channels, each followed by φ and, where `pool` (one for all, or one each)
    is above 1, by an average over windows; then `head` "flatten" or "average" (over all positions), and a
    dense output. `inputs` is (height, width, channels); x may come as images or as rows of their numbers.

    >>> wf.CNN((4, 4, 1), depth=1, head="average").sample(key, 4)(jnp.ones((2, 4, 4, 1))).shape
    (2,)"""
    depth, phi = _deep("CNN(depth)", depth), as_activation(activation)
    if np.ndim(inputs) != 1:
        raise ValueError(
            f"CNN(inputs) must be (height, width, channels), such as (28, 28, 1), got {shown(inputs)}."
        )
    shape = tuple(count("CNN(inputs)", side) for side in inputs)
    pools = [pool] * depth if isinstance(pool, int) else list(pool)
    if len(pools) != depth:
        raise ValueError(
            f"CNN(pool) must be one number or {depth}, one for each convolution, got {shown(pool)}."
        )
    heads: dict[str, AbstractLayer] = {"flatten": Flatten(), "average": GlobalAverage()}
    if head not in heads:
        raise ValueError(f'CNN(head) must be "flatten" or "average", got {shown(head)}.')
    layers: list[AbstractLayer] = []
    for side in pools:
        layers += [Conv(window, None, stride, padding), Elementwise(phi)]
        layers += [AveragePool(side)] if count("CNN(pool)", side) > 1 else []
    layers += [heads[head], Dense(count("CNN(outputs)", outputs))]
    return Family(shape, tuple(layers), gain, bias, input_scale)


def is_family(value: object) -> TypeIs[Family]:
    """Whether a start is layers without a width."""
    return isinstance(value, Family)
