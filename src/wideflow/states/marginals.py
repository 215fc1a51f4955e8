"""Laws of one coordinate of θ."""

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from .._checks import number, positive
from ..problems.gauss import Rule, gauss_hermite, gauss_legendre, gauss_radius

_REACH = 8.0  # of panels in z: the rest of a law weighs 1e-15


class AbstractMarginal(abc.ABC):
    """Law of one coordinate of a part of θ that has `width` of them; coordinates are independent."""

    @abc.abstractmethod
    def sample(self, key: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Independent draws, the coordinates of a part along the last axis."""

    @abc.abstractmethod
    def rule(self, order: int, width: int = 1) -> Rule:
        """Gauss nodes and weights."""

    @abc.abstractmethod
    def quantile(self, level: np.ndarray, width: int = 1) -> np.ndarray:
        """The inverse of the distribution function."""

    @abc.abstractmethod
    def cdf(self, value: np.ndarray, width: int = 1) -> np.ndarray:
        """The distribution function P(· ≤ value)."""

    @abc.abstractmethod
    def tail(self, value: np.ndarray, width: int = 1) -> np.ndarray:
        """P(· > value), with all its digits where it is small."""

    def points_of(self, order: int) -> int:
        """How many nodes a rule of this order has."""
        return order

    @property
    def spread(self) -> bool:
        """Whether the law has a density, so that more nodes are better."""
        return self.points_of(99) == 99

    def isotropic(self, d: float) -> float | None:
        """γ, if d independent coordinates are N(0, (γ²/d) I), else None."""
        return None


@dataclass(frozen=True)
class Panels:
    """A composite rule for one coordinate: `order` Gauss–Legendre nodes on each panel between `edges`,
    in the variable z whose normal distribution function is the coordinate's level. It converges where
    a Gauss rule for the whole law does not: panels are cut where the integrand is steep."""

    edges: tuple[float, ...] = tuple(np.linspace(-_REACH, _REACH, 17))
    order: int = 6

    @property
    def size(self) -> int:
        return self.order * (len(self.edges) - 1)

    def rule(self, marginal: AbstractMarginal, width: int = 1) -> Rule:
        from scipy.special import ndtr

        x, w = gauss_legendre(self.order)
        edges = np.array(self.edges)
        half = 0.5 * np.diff(edges)[:, None]
        z = edges[:-1, None] + half * (1 + x)
        weights = half * w * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return marginal.quantile(ndtr(z.ravel()), width), weights.ravel()

    def cut(self, marked: np.ndarray, parts: int) -> "Panels":
        """Marked panels divided into `parts` equal parts each."""
        pairs = zip(self.edges[:-1], self.edges[1:], marked, strict=True)
        pieces = [np.linspace(a, b, parts + 1)[:-1] if cut else [a] for a, b, cut in pairs]
        return Panels((*(float(e) for piece in pieces for e in piece), self.edges[-1]), self.order)

    def wider(self) -> "Panels":
        """With one panel more on either side, as wide as the widest, within |z| ≤ 8: a smaller part of the
        law is left out."""
        width = float(np.max(np.diff(self.edges)))
        ends = max(self.edges[0] - width, -_REACH), min(self.edges[-1] + width, _REACH)
        return replace(self, edges=tuple(float(e) for e in np.unique([*self.edges, *ends])))


def _set(marginal: AbstractMarginal, **checked: float) -> None:
    for name, value in checked.items():
        object.__setattr__(marginal, name, value)


@dataclass(frozen=True)
class Normal(AbstractMarginal):
    """N(mean, sd²)."""

    mean: float = 0.0
    sd: float = 1.0

    def __post_init__(self):
        _set(self, mean=number("Normal(mean)", self.mean), sd=positive("Normal(sd)", self.sd, zero=True))

    def sample(self, key, shape, dtype):
        return self.mean + self.sd * jax.random.normal(key, shape, dtype)

    def points_of(self, order):
        return order if self.sd > 0 else 1

    def rule(self, order, width=1):
        z, weights = gauss_hermite(self.points_of(order))
        return self.mean + self.sd * z, weights

    def quantile(self, level, width=1):
        from scipy.special import ndtri

        return self.mean + self.sd * ndtri(level)

    def cdf(self, value, width=1):
        from scipy.special import ndtr

        centred = np.asarray(value) - self.mean
        return ndtr(centred / self.sd) if self.sd > 0 else (centred >= 0).astype(float)

    def tail(self, value, width=1):
        mirrored = Normal(-self.mean, self.sd).cdf(-np.asarray(value))
        return mirrored if self.sd > 0 else 1 - self.cdf(value)

    def isotropic(self, d):
        return self.sd * math.sqrt(d) if self.mean == 0 and math.isfinite(d) else None


@dataclass(frozen=True)
class Isotropic(AbstractMarginal):
    """N(0, (scale²/d) I) on all d coordinates of a part."""

    scale: float = 1.0

    def __post_init__(self):
        _set(self, scale=positive("Isotropic(scale)", self.scale, zero=True))

    def _of(self, width: int) -> Normal:
        return Normal(0.0, self.scale / math.sqrt(width))

    def sample(self, key, shape, dtype):
        return self.scale / math.sqrt(shape[-1]) * jax.random.normal(key, shape, dtype)

    def points_of(self, order):
        return order if self.scale > 0 else 1

    def rule(self, order, width=1):
        return self._of(width).rule(order)

    def quantile(self, level, width=1):
        return self._of(width).quantile(level)

    def cdf(self, value, width=1):
        return self._of(width).cdf(value)

    def tail(self, value, width=1):
        return self._of(width).tail(value)

    def isotropic(self, d):
        return self.scale


@dataclass(frozen=True)
class Radius(AbstractMarginal):
    """scale · |z|/√dim, z ~ N(0, I_dim): a length, of which `scale` is the root mean square."""

    scale: float
    dim: float

    def __post_init__(self):
        _set(self, scale=positive("Radius(scale)", self.scale, zero=True))
        _set(self, dim=positive("Radius(dim)", self.dim, infinite=True))

    def sample(self, key, shape, dtype):
        if math.isinf(self.dim):
            return jnp.full(shape, self.scale, dtype)
        return self.scale * jnp.sqrt(jax.random.gamma(key, self.dim / 2, shape, dtype) * (2 / self.dim))

    def points_of(self, order):
        return 1 if math.isinf(self.dim) or self.scale == 0 else order

    def rule(self, order, width=1):
        q, weights = gauss_radius(self.points_of(order), self.dim)
        return self.scale * q, weights

    def quantile(self, level, width=1):
        from scipy.special import gammaincinv

        square = 1.0 if math.isinf(self.dim) else gammaincinv(self.dim / 2, level) * 2 / self.dim
        return self.scale * np.sqrt(square) * np.ones_like(level)

    def cdf(self, value, width=1):
        from scipy.special import gammainc

        value = np.maximum(np.asarray(value, float), 0.0)
        if self.points_of(2) == 1:
            return (value >= self.scale).astype(float)
        return gammainc(self.dim / 2, (value / self.scale) ** 2 * self.dim / 2)

    def tail(self, value, width=1):
        from scipy.special import gammaincc

        value = np.maximum(np.asarray(value, float), 0.0)
        if self.points_of(2) == 1:
            return 1 - self.cdf(value)
        return gammaincc(self.dim / 2, (value / self.scale) ** 2 * self.dim / 2)


@dataclass(frozen=True)
class Uniform(AbstractMarginal):
    """Uniform on [low, high]."""

    low: float = -1.0
    high: float = 1.0

    def __post_init__(self):
        _set(self, low=number("Uniform(low)", self.low), high=number("Uniform(high)", self.high))
        if not self.low < self.high:
            raise ValueError(f"Uniform(low, high) must have low < high, got {self.low} and {self.high}.")

    def sample(self, key, shape, dtype):
        return jax.random.uniform(key, shape, dtype, self.low, self.high)

    def rule(self, order, width=1):
        x, weights = gauss_legendre(order)
        return self.quantile((1 + x) / 2), weights / 2

    def quantile(self, level, width=1):
        return self.low + (self.high - self.low) * level

    def cdf(self, value, width=1):
        return np.clip((np.asarray(value) - self.low) / (self.high - self.low), 0.0, 1.0)

    def tail(self, value, width=1):
        return 1 - self.cdf(value)


@dataclass(frozen=True)
class Rademacher(AbstractMarginal):
    """±scale, each with probability ½."""

    scale: float = 1.0

    def __post_init__(self):
        _set(self, scale=number("Rademacher(scale)", self.scale))

    def sample(self, key, shape, dtype):
        return self.scale * jax.random.rademacher(key, shape, dtype)

    def points_of(self, order):
        return 2

    def rule(self, order, width=1):
        return self.scale * np.array([-1.0, 1.0]), np.full(2, 0.5)

    def quantile(self, level, width=1):
        return self.scale * np.where(level < 0.5, -1.0, 1.0)

    def cdf(self, value, width=1):
        steps = [np.asarray(value) >= s for s in (-self.scale, self.scale)]
        return 0.5 * (steps[0].astype(float) + steps[1])

    def tail(self, value, width=1):
        return 1 - self.cdf(value)


@dataclass(frozen=True)
class Constant(AbstractMarginal):
    """Always `value`."""

    value: float = 0.0

    def __post_init__(self):
        _set(self, value=number("Constant(value)", self.value))

    def sample(self, key, shape, dtype):
        return jnp.full(shape, self.value, dtype)

    def points_of(self, order):
        return 1

    def rule(self, order, width=1):
        return np.array([self.value]), np.ones(1)

    def quantile(self, level, width=1):
        return np.full_like(level, self.value)

    def cdf(self, value, width=1):
        return (np.asarray(value) >= self.value).astype(float)

    def tail(self, value, width=1):
        return 1 - self.cdf(value)

    def isotropic(self, d):
        return 0.0 if self.value == 0 else None


@dataclass(frozen=True)
class Drawn(AbstractMarginal):
    """Any law: fn(key, shape) returns independent draws."""

    fn: Callable[[Array, tuple[int, ...]], Array]

    def sample(self, key, shape, dtype):
        drawn = jnp.asarray(self.fn(key, shape), dtype)
        if drawn.shape != shape:
            raise ValueError(
                f"A law given as a function must map (key, {shape}) to draws of that shape, got "
                f"{drawn.shape}."
            )
        return drawn

    def rule(self, order, width=1):
        raise ValueError(
            "A law given as a function (key, shape) has draws, but no Gauss nodes, quantiles or distribution "
            "function: use Normal, Uniform, Rademacher or Constant of wf.laws, or sample(key, n)."
        )

    def quantile(self, level, width=1):
        return self.rule(1)[0]

    def cdf(self, value, width=1):
        return self.rule(1)[0]

    def tail(self, value, width=1):
        return self.rule(1)[0]
