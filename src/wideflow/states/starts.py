"""Laws of θ to start from."""

import abc
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import count, fits, number, positive
from .._checks import key as check_key
from ..problems.neurons import AbstractNeuron, Neuron
from ..problems.problem import Problem
from .particles import Particles


class AbstractMarginal(eqx.Module):
    """Law of one coordinate of θ; coordinates are independent."""

    @abc.abstractmethod
    def sample(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Independent draws."""


class Normal(AbstractMarginal):
    """N(mean, sd²)."""

    mean: float = eqx.field(default=0.0, converter=lambda v: number("Normal(mean)", v))
    sd: float = eqx.field(default=1.0, converter=lambda v: positive("Normal(sd)", v, zero=True))

    def sample(self, key, shape, dtype):
        return self.mean + self.sd * jax.random.normal(key, shape, dtype)


class Uniform(AbstractMarginal):
    """Uniform on [low, high]."""

    low: float = eqx.field(default=-1.0, converter=lambda v: number("Uniform(low)", v))
    high: float = eqx.field(default=1.0, converter=lambda v: number("Uniform(high)", v))

    def __check_init__(self):
        if not self.low < self.high:
            raise ValueError(f"Uniform(low, high) must have low < high, got {self.low} and {self.high}.")

    def sample(self, key, shape, dtype):
        return jax.random.uniform(key, shape, dtype, self.low, self.high)


class Signs(AbstractMarginal):
    """±scale, each with probability ½."""

    scale: float = eqx.field(default=1.0, converter=lambda v: number("Signs(scale)", v))

    def sample(self, key, shape, dtype):
        return self.scale * jax.random.rademacher(key, shape, dtype)


class Constant(AbstractMarginal):
    """Always `value`."""

    value: float = eqx.field(default=0.0, converter=lambda v: number("Constant(value)", v))

    def sample(self, key, shape, dtype):
        return jnp.full(shape, self.value, dtype)


class Drawn(AbstractMarginal):
    """Any law: fn(key, shape) returns independent draws."""

    fn: Callable[[Array, tuple[int, ...]], Array] = eqx.field(static=True)

    def sample(self, key, shape, dtype):
        drawn = jnp.asarray(self.fn(key, shape), dtype)
        if drawn.shape != shape:
            raise ValueError(
                f"A law given as a function must map (key, {shape}) to draws of that shape, got "
                f"{drawn.shape}."
            )
        return drawn


def _marginal(name: str, law: Any, scale: float = 1.0) -> AbstractMarginal:
    if isinstance(law, AbstractMarginal):
        return law
    if callable(law):
        return Drawn(law)
    return Normal(0.0, scale * positive(f"init({name})", law, zero=True))


class Law(eqx.Module):
    """A law of θ with independent parts: `sample(key, n)` makes the start of a network."""

    neuron: AbstractNeuron
    marginals: tuple[AbstractMarginal, ...]
    widths: tuple[int, ...] = eqx.field(static=True)

    @property
    def D(self) -> int:  # noqa: N802 (theory's name)
        return sum(self.widths)

    def sample(self, key: Array, n: int, alpha: float = 1.0, dtype: Any = None) -> Particles:
        """n independent particles with scale α. Particle j depends on (key, j) only, so a narrow
        network is the beginning of a wide one from the same key."""
        n, dtype = count("n", n), jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
        if not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(f"dtype must be a float type such as jnp.float32, got {dtype}.")
        check_key("key", key)
        hint = "Use fewer neurons or dtype=jnp.float32."
        fits(f"{n} neurons in R^{self.D}", 3 * n * self.D * dtype.itemsize, hint)
        return Particles(_draw(self, key, n, dtype), alpha=alpha, neuron=self.neuron)


@eqx.filter_jit
def _draw(law: Law, key: Array, n: int, dtype: Any) -> Float[Array, "n D"]:
    def particle(j):
        keys = jax.random.split(jax.random.fold_in(key, j), len(law.marginals))
        drawn = zip(law.marginals, keys, law.widths, strict=True)
        return jnp.concatenate([m.sample(k, (width,), dtype) for m, k, width in drawn])

    return jax.vmap(particle)(jnp.arange(n))


def init(problem: Problem, a: Any = None, w: Any = None, b: Any = None, theta: Any = None) -> Law:
    """The law of θ = (a, w[, b]) at time 0, with independent coordinates.

    A number is a standard deviation: a ~ N(0, a²), w ~ N(0, (w²/d) I), b ~ N(0, b²); by default
    a = 1, w = 1, b = 0. A marginal (`wf.Normal(mean, sd)`, `wf.Uniform(low, high)`, `wf.Signs()`,
    `wf.Constant(v)`) or a function (key, shape) → draws is taken for each coordinate as it is.
    A custom neuron takes `theta` alone, for all its coordinates."""
    if not isinstance(problem, Problem):
        raise ValueError(f"init(problem) must be a wf.Problem, got {problem!r}.")
    neuron, d = problem.neuron, problem.d
    if not isinstance(neuron, Neuron):
        if not (a is None and w is None and b is None):
            raise ValueError(
                f"init(a, w, b) must be left out, as a custom neuron has no such parts, got a = {a}, "
                f"w = {w}, b = {b}: use init(problem, theta=…)."
            )
        everywhere = _marginal("theta", 1.0 if theta is None else theta)
        return Law(neuron, (everywhere,), (neuron.size(d),))
    heads, bias = neuron.size(d) - d - neuron.bias, neuron.bias
    if theta is not None:
        raise ValueError("init(theta=…) is for custom neurons; this one takes a, w and b.")
    if a is not None and not heads:
        raise ValueError('Neuron(output="unit") has a = 1: leave init(a=…) out.')
    if b is not None and not bias:
        raise ValueError("The neuron has no bias: set Neuron(..., bias=True), or leave init(b=…) out.")
    parts = [
        ("a", 1.0 if a is None else a, 1.0, heads),
        ("w", 1.0 if w is None else w, 1.0 / math.sqrt(d), d),
        ("b", 0.0 if b is None else b, 1.0, int(bias)),
    ]
    kept = [(name, law, scale, width) for name, law, scale, width in parts if width]
    marginals = tuple(_marginal(name, law, scale) for name, law, scale, _ in kept)
    return Law(neuron, marginals, tuple(width for *_, width in kept))
