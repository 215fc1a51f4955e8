"""Families of networks: an architecture without its width. `sample(key, n)` makes the network of width n,
and the kernels of n = ∞ come from the same layers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._checks import count, fits, positive
from .._checks import key as check_key
from ..parametrisations import Parametrisation, named
from ..problems.activations import activation as as_activation
from .layers import AveragePool, Conv, Dense, Elementwise, Flatten, GlobalAverage, Layer, Shape
from .network import Network, Weights

_DEEPEST = 1000


@dataclass(frozen=True)
class Family:
    """Networks of one architecture at every width n.

    Weight layer l = 1 … L+1 is h = n^−a_l g_l W x (+ bias) with entries of W ~ N(0, n^−2b_l s_l²), trained at
    the rate n^−c_l; (a, b, c) come from a `Parametrisation`, and the constants g_l s_l = gain/√k_l from here;
    k_l is the part of the fan-in that does not grow with n (window, positions; d in the first layer). In the
    first layer the constant is in the start, as in `wf.init` (w ~ N(0, I/d)), or with `input_scale="front"`
    in front of W; elsewhere it is in front.

    - `inputs`: the shape of one x, (d,) or (height, width, channels).
    - `bias`: standard deviation of the biases at the start; None for a network without."""

    inputs: Shape
    layers: tuple[Layer, ...]
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
            raise ValueError(f'input_scale must be "start" or "front", got {self.input_scale!r}.')
        weighted = [layer for layer in self.layers if isinstance(layer, Dense | Conv)]
        if len(weighted) < 2 or not isinstance(self.layers[-1], Dense) or self.layers[-1].units is None:
            raise ValueError(
                "A family of networks needs at least one hidden layer and ends with Dense(outputs), got "
                f"{self.layers!r}."
            )
        self.shapes(4)  # raises where two layers do not fit

    @property
    def depth(self) -> int:
        """L, the number of hidden layers with weights."""
        return sum(isinstance(layer, Dense | Conv) for layer in self.layers) - 1

    @property
    def outputs(self) -> int:
        last = self.layers[-1]
        assert isinstance(last, Dense) and last.units is not None
        return last.units

    @property
    def d(self) -> int:
        """Numbers in one x."""
        return math.prod(self.inputs)

    def shapes(self, n: int) -> list[Shape]:
        """The shape that each layer takes in, and that of the output."""
        return list(accumulate(self.layers, lambda shape, layer: layer.shape(shape, n), initial=self.inputs))

    def weight_shapes(self, n: int) -> list[Shape]:
        """The shape of W in each weight layer."""
        pairs = zip(self.layers, self.shapes(n), strict=False)
        return [layer.weight_shape(s, n) for layer, s in pairs if isinstance(layer, Dense | Conv)]

    def constants(self) -> list[float]:
        """gain/√k_l of each weight layer; k_l is its fan-in at width 1."""
        fans = [math.prod(shape[:-1]) for shape in self.weight_shapes(1)]
        return [self.gain / math.sqrt(fan) for fan in fans]

    def multipliers(self, parametrisation: Parametrisation, n: int) -> list[float]:
        """What stands before W x in each weight layer, n^−a_l g_l."""
        factors = [parametrisation.multiplier(i, n) for i in range(self.depth + 1)]
        fixed = self.constants()
        if self.input_scale == "start":
            fixed[0] = 1.0
        return [f * c for f, c in zip(factors, fixed, strict=True)]

    def deviations(self, parametrisation: Parametrisation, n: int) -> list[float]:
        """The standard deviation of the entries of W in each weight layer, n^−b_l s_l."""
        sds = [parametrisation.sd(i, n) for i in range(self.depth + 1)]
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
        dtype: Any = None,
    ) -> Network:
        """A network of width n at its random start; layer l depends on (key, l). `centred=True` trains
        F = α(f − f₀), which is 0 at the start. `optimiser="adam"` where it will be trained by Adam: the
        rates of a parametrisation by name differ for it."""
        n, parametrisation = count("n", n), named(parametrisation, self.depth, optimiser)
        dtype = jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
        shapes = self.weight_shapes(n)
        size = sum(math.prod(shape) for shape in shapes)
        fits(
            f"A network of {size:.3g} weights", 3.0 * size * dtype.itemsize, "Use a smaller width or float32."
        )
        sds, parts = self.deviations(parametrisation, n), []
        for i, shape in enumerate(shapes):
            of_w, of_b = jax.random.split(jax.random.fold_in(check_key("key", key), i))
            w = sds[i] * jax.random.normal(of_w, shape, dtype)
            b = None
            if self.bias is not None:
                b = self.bias * parametrisation.bias_sd(i, n) * jax.random.normal(of_b, shape[-1:], dtype)
            parts.append(Weights(w.astype(dtype), b if b is None else b.astype(dtype)))
        return Network(tuple(parts), self, n, parametrisation, alpha=alpha, centred=centred)

    def __repr__(self) -> str:
        given = {
            "gain": self.gain != 1,
            "bias": self.bias is not None,
            "input_scale": self.input_scale != "start",
        }
        more = "".join(f", {name}={getattr(self, name)!r}" for name, told in given.items() if told)
        return f"Family({'×'.join(map(str, self.inputs))} → {' → '.join(map(str, self.layers))}{more})"


def _deep(name: str, depth: Any) -> int:
    """`depth`, if a network of so many layers can be compiled: the programs grow with each of them."""
    if count(name, depth) > _DEEPEST:
        raise ValueError(f"{name} must be a whole number from 1 to {_DEEPEST}, got {depth}.")
    return int(depth)


def MLP(  # noqa: N802
    d: int,
    depth: int = 1,
    activation: Any = "relu",
    *,
    outputs: int = 1,
    gain: float = 1.0,
    bias: float | None = None,
    input_scale: str = "start",
) -> Family:
    """f(x) = W_{L+1} φ(W_L … φ(W_1 x)): `depth` = L hidden layers of n units each, φ the `activation`.

    `outputs` values of f; `gain`, `bias` (standard deviation at the start, None for none) and `input_scale`
    as in `wf.Family`."""
    depth, phi = _deep("MLP(depth)", depth), as_activation(activation)
    hidden = (Dense(), Elementwise(phi)) * depth
    layers = (*hidden, Dense(count("MLP(outputs)", outputs)))
    return Family((count("MLP(d)", d),), layers, gain, bias, input_scale)


def CNN(  # noqa: N802
    inputs: Sequence[int],
    depth: int = 1,
    activation: Any = "relu",
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
    dense output. `inputs` is (height, width, channels); x may come as images or as rows of their numbers."""
    depth, phi = _deep("CNN(depth)", depth), as_activation(activation)
    if np.ndim(inputs) != 1:
        raise ValueError(
            f"CNN(inputs) must be (height, width, channels), such as (28, 28, 1), got {inputs!r}."
        )
    shape = tuple(count("CNN(inputs)", side) for side in inputs)
    pools = [pool] * depth if isinstance(pool, int) else list(pool)
    if len(pools) != depth:
        raise ValueError(f"CNN(pool) must be one number or {depth}, one for each convolution, got {pool!r}.")
    heads: dict[str, Layer] = {"flatten": Flatten(), "average": GlobalAverage()}
    if head not in heads:
        raise ValueError(f'CNN(head) must be "flatten" or "average", got {head!r}.')
    layers: list[Layer] = []
    for side in pools:
        layers += [Conv(window, None, stride, padding), Elementwise(phi)]
        layers += [AveragePool(side)] if count("CNN(pool)", side) > 1 else []
    layers += [heads[head], Dense(count("CNN(outputs)", outputs))]
    return Family(shape, tuple(layers), gain, bias, input_scale)
