"""One parametrisation (a, b, c): a value that holds the exponents of a network."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from .._checks import count, number
from .._shown import shown
from ..store.registry import assembled, recorded
from .exponents import Exponents, first_step, kernel_exponents, power
from .regimes import TIE, Regime, classify


@dataclass(frozen=True, repr=False)
class Parametrisation:
    """Layer l = 1..L+1 (L hidden layers of width n): h_1 = n^{−a_1} W_1 x, h_l = n^{−a_l} W_l φ(h_{l−1}),
    entries of W_l ~ N(0, n^{−2b_l}) at the start, rate η₀ n^{−c_l}; time is t = k η₀ after k steps.

    A bias is a weight from a constant input. Those of hidden layers take the exponents of the first layer;
    that of the output takes (0, 0, 0), so that it starts and moves by order 1 whatever the optimiser.

    >>> wf.Parametrisation.mup(depth=1).regime().verdict
    'feature-learning'"""

    a: tuple[float, ...]
    b: tuple[float, ...]
    c: tuple[float, ...]
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for letter in "abc":
            object.__setattr__(self, letter, _exponents(letter, getattr(self, letter)))
        if not len(self.a) == len(self.b) == len(self.c):
            raise ValueError(
                "A parametrisation needs one a, b and c per layer, got "
                f"{len(self.a)}, {len(self.b)} and {len(self.c)} of them."
            )
        if len(self.a) < 2:
            raise ValueError(
                f"A parametrisation needs at least two layers (one hidden, one output), got {len(self.a)}. "
                "Try Parametrisation.two_layer(A, B, C)."
            )

    @property
    def depth(self) -> int:
        """L, the number of hidden layers."""
        return len(self.a) - 1

    # --- at a width; layer = 0..L is the index into a, b and c ---------------------------------

    def multiplier(self, layer: int, n: int) -> float:
        """n^{−a}: what stands before W x."""
        return _width(n) ** -self.a[self._index(layer)]

    def sd(self, layer: int, n: int) -> float:
        """n^{−b}: the standard deviation of the entries of W at the start."""
        return _width(n) ** -self.b[self._index(layer)]

    def rate(self, layer: int, n: int) -> float:
        """n^{−c}: what multiplies η₀."""
        return _width(n) ** -self.c[self._index(layer)]

    def bias_multiplier(self, layer: int, n: int) -> float:
        """What stands before the bias."""
        return _width(n) ** -self._bias(layer)[0]

    def bias_sd(self, layer: int, n: int) -> float:
        """The standard deviation of the bias at the start."""
        return _width(n) ** -self._bias(layer)[1]

    def bias_rate(self, layer: int, n: int) -> float:
        """What multiplies η₀ for the bias."""
        return _width(n) ** -self._bias(layer)[2]

    def _bias(self, layer: int) -> tuple[float, float, float]:
        if self._index(layer) == self.depth:
            return 0.0, 0.0, 0.0
        return self.a[0], self.b[0], self.c[0]

    def _index(self, layer: int) -> int:
        if count("layer", layer, least=0) > self.depth:
            raise ValueError(f"layer must be 0..{self.depth} at depth {self.depth}, got {layer}.")
        return layer

    # --- what it does ---------------------------------------------------------------------------

    def exponents(self, optimiser: str = "sgd") -> Exponents:
        """Exponents in n of f(0), and of Δh_l and Δf in the first step (`parametrisations.exponents`).

        Two-layer (A, B, C): f(0) ½−A−B, Δh e−(A+B+C), Δf e+1−2A−C+max(0, −2B), e = max(0, ½−A−B)."""
        return first_step(*self._invariants(optimiser), optimiser)

    def regime(self, optimiser: str = "sgd") -> Regime:
        """Unstable, trivial, lazy or feature-learning, and the inequality that decides."""
        return classify(*self._invariants(optimiser), optimiser)

    def kernel_layers(self) -> tuple[float, ...]:
        """Exponents in n of every layer's part of the tangent kernel at the start (SGD).

        K_l: −c_l − 2a_l + [l≥2] + 1 − 2(a+b)_{L+1} for l ≤ L, and 1 − c_{L+1} − 2a_{L+1} for the last, where
        hidden layers are of size 1; else their sizes enter. 0: it is in the limit, < 0: it vanishes, > 0: it
        diverges. Hidden biases count like the first layer, the output's has exponent 0."""
        return kernel_exponents(*self._invariants("sgd"))

    @property
    def nngp_exponent(self) -> float:
        """½ − (a+b)_{L+1} where hidden layers are of size 1. 0: f(0) is a Gaussian process; < 0: f(0) → 0."""
        return self.exponents().f0

    # --- symmetry -------------------------------------------------------------------------------

    def shift(self, s: float | Iterable[float], optimiser: str = "sgd") -> "Parametrisation":
        """(a+s, b−s, c−2s), Adam (a+s, b−s, c−s), s a number or one per layer: the same trained function."""
        k = power(optimiser)
        steps = (number("s", s),) * (self.depth + 1) if np.ndim(s) == 0 else _exponents("s", s)  # type: ignore[arg-type]
        if len(steps) != self.depth + 1:
            raise ValueError(f"s must be one number, or one per layer ({self.depth + 1}), got {len(steps)}.")
        own = [tuple(map(_plain, v)) for v in (self.a, self.b, self.c)]
        moved = [(a + t, b - t, c - k * t) for a, b, c, t in zip(*own, steps, strict=True)]
        a, b, c = zip(*moved, strict=True)
        return Parametrisation(a, b, c, self.name)

    def equivalent(self, other: "Parametrisation", optimiser: str = "sgd") -> bool:
        """Whether both train the same function: a_l + b_l and 2a_l + c_l (Adam: a_l + c_l) agree."""
        if not isinstance(other, Parametrisation):
            raise ValueError(f"equivalent(other) needs a Parametrisation, got {shown(other)}.")
        if other.depth != self.depth:
            return False
        own, theirs = np.array(self._invariants(optimiser)), np.array(other._invariants(optimiser))
        return bool(np.abs(own - theirs).max() <= TIE)

    def _invariants(self, optimiser: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """p_l = a_l + b_l and q_l = k a_l + c_l of every layer."""
        k, a, b, c = power(optimiser), *(tuple(map(_plain, v)) for v in (self.a, self.b, self.c))
        return (
            tuple(a_l + b_l for a_l, b_l in zip(a, b, strict=True)),
            tuple(k * a_l + c_l for a_l, c_l in zip(a, c, strict=True)),
        )

    # --- the named ones -------------------------------------------------------------------------

    @classmethod
    def two_layer(cls, A: float, B: float, C: float, name: str = "") -> "Parametrisation":  # noqa: N803
        """f = n^{−A} Σ a_j φ(⟨w_j, x⟩), a_j ~ N(0, n^{−2B}), one rate η₀ n^{−C}."""
        return cls((0.0, A), (0.0, B), (C, C), name)

    @classmethod
    def scaled(cls, A: float) -> "Parametrisation":  # noqa: N803
        """The two-layer network f = α/n Σ_j with scale α = n^{1−A} and the rate n/α² of the library's flow,
        (A, 0, 1−2A): α = 1 (mean field) at A = 1, α = √n (NTK) at A = ½, and r = 1 − A between."""
        A = number("A", A)
        return cls.two_layer(A, 0.0, 1 - 2 * A, f"scaled({A:g})")

    @classmethod
    def ntk(cls, depth: int = 1, optimiser: str = "sgd") -> "Parametrisation":
        """Weights of size 1, multipliers n^{−½} but in the first layer. For SGD every rate is 1; for Adam
        they are such that every layer moves f by order 1."""
        L = count("depth", depth)
        c = (0.0,) * (L + 1) if power(optimiser) == 2 else (0.5, *(1.0,) * (L - 1), 0.5)
        return cls((0.0, *(0.5,) * L), (0.0,) * (L + 1), c, "ntk")

    @classmethod
    def standard(cls, depth: int = 1, optimiser: str = "sgd") -> "Parametrisation":
        """No multipliers, sd n^{−½} but in the first layer, and the largest common rate that is stable: 1/n;
        for Adam n^{−3/2} from two hidden layers on, where the features moved at rate 1/n meet a last
        layer of size n^{−½} and move f by √n."""
        L = count("depth", depth)
        c = 1.0 if power(optimiser) == 2 or L == 1 else 1.5
        return cls((0.0,) * (L + 1), (0.0, *(0.5,) * L), (c,) * (L + 1), "standard")

    @classmethod
    def mup(cls, depth: int = 1, optimiser: str = "sgd") -> "Parametrisation":
        """Every layer moves features (or f) by order 1: a = −½, 0, ½ (first, between, last), sd n^{−½}, and
        rates 1 (SGD) or n^{−½}, n^{−1}, n^{−½} (Adam). With one hidden layer it is mean field."""
        L = count("depth", depth)
        c = (0.0,) * (L + 1) if power(optimiser) == 2 else (0.5, *(1.0,) * (L - 1), 0.5)
        return cls((-0.5, *(0.0,) * (L - 1), 0.5), (0.5,) * (L + 1), c, "mup")

    @classmethod
    def mean_field(cls, *, optimiser: str = "sgd") -> "Parametrisation":
        """Two-layer (1, 0, −1): f = 1/n Σ_j, and the rate n that undoes the 1/n (Adam: the rate 1)."""
        return cls.two_layer(1.0, 0.0, -1.0 if power(optimiser) == 2 else 0.0, "mean_field")

    @classmethod
    def naive(cls) -> "Parametrisation":
        """Two-layer (½, 0, −½): the NTK's network at a rate that moves its features; f diverges."""
        return cls.two_layer(0.5, 0.0, -0.5, "naive")

    @classmethod
    def compromise(cls) -> "Parametrisation":
        """Two-layer (1, 0, −½): mean field at a smaller rate; neither features nor f move."""
        return cls.two_layer(1.0, 0.0, -0.5, "compromise")

    def __repr__(self) -> str:
        parts = [f"{letter}=({', '.join(f'{v:g}' for v in getattr(self, letter))})" for letter in "abc"]
        return f"Parametrisation({', '.join(parts + [f'name={self.name!r}'] * bool(self.name))})"

    def __str__(self) -> str:
        """A table with one row per layer."""
        rows = [f"{self.name or 'parametrisation':<16}{'n^-a':>8}{'n^-b':>8}{'n^-c':>8}"]
        for i, values in enumerate(zip(self.a, self.b, self.c, strict=True)):
            layer = "output" if i == self.depth else f"layer {i + 1}"
            rows.append(f"{layer:<16}" + "".join(f"{v:>8g}" for v in values))
        return "\n".join(rows)


def _unflattened(name: str, exponents: Iterable[Any]) -> Parametrisation:
    new = object.__new__(Parametrisation)  # under jit there are no values to check
    for letter, values in zip(("a", "b", "c"), exponents, strict=True):
        object.__setattr__(new, letter, values)
    object.__setattr__(new, "name", name)
    return new


# Exponents are leaves, so that a network compiled for one parametrisation is compiled for all.
jax.tree_util.register_pytree_node(Parametrisation, lambda p: ((p.a, p.b, p.c), p.name), _unflattened)


def _exponents(name: str, values: ArrayLike) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable) or np.ndim(values) == 0:
        raise ValueError(f"{name} must hold one exponent per layer, such as (0, 0.5), got {shown(values)}.")
    # + 0.0 turns −0 into 0, which would print as "-0".
    return tuple(number(f"{name}[{i}]", v) + 0.0 for i, v in enumerate(values))


def _plain(exponent: Any) -> float:
    """A number; that of a network is an array, which in float32 has six decimals."""
    return exponent if isinstance(exponent, float) else round(float(exponent), 6)


def _width(n: int) -> float:
    return float(count("n", n))


def _rebuilt(a: Any, b: Any, c: Any, name: str) -> Parametrisation:
    """As it was stored: the exponents of a network are arrays."""
    if not len(a) == len(b) == len(c) >= 2 or not isinstance(name, str):
        raise ValueError(
            f"A parametrisation needs a, b and c of one length and a name, got {a}, {b}, {c}, {name}."
        )
    for v in (*a, *b, *c):
        if np.asarray(v).dtype.kind not in "fi" or not np.isfinite(v).all():
            raise ValueError(f"A parametrisation needs exponents that are numbers, got {shown(v)}.")
    return assembled(Parametrisation)(a=a, b=b, c=c, name=name)


recorded(Parametrisation, build=_rebuilt)
