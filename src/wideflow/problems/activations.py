"""Activations: the scalar function φ of the neuron `σ*(x; θ) = a φ(⟨w, x⟩ + b)`."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._checks import count, nearest

Function = Callable[[Array], Array]

# The highest degree of a Hermite polynomial: its recursion is compiled step by step.
_HIGHEST = 100


@dataclass(frozen=True)
class Activation:
    """An elementwise function φ: R → R, hashable so that it can be a static argument of `jax.jit`.

    - `name`, `options`: what `activation(name, **dict(options))` was asked for.
    - `fn`: φ itself; derivatives are taken by `jax.jvp`.
    - `kinks`: the points where φ or φ' jumps. Quadrature cuts its domain there, so an own φ with
      kinks should state them: `Activation("abs", jnp.abs, kinks=(0.0,))`.

    At a kink where φ is continuous, the named activations have the left derivative
    (ReLU'(0) = 0).
    """

    name: str
    fn: Function
    options: tuple[tuple[str, Any], ...] = ()
    kinks: tuple[float, ...] = ()

    def __call__(self, h: Array) -> Array:
        return self.fn(h)


def activation(spec: "str | Activation | Function", **options: Any) -> Activation:
    """The activation that `spec` stands for: a name, an `Activation`, or a JAX callable.

    | name | φ(h) |
    |---|---|
    | `relu`, `leaky_relu(slope=0.01)` | max(h, 0); the same plus slope·min(h, 0) |
    | `erf`, `tanh`, `sigmoid`, `softplus` | erf(h), tanh(h), 1/(1 + e^−h), log(1 + e^h) |
    | `gelu` | h P(z ≤ h), z ~ N(0, 1) (exact, not the tanh approximation) |
    | `sin`, `cos`, `identity`, `square` | sin(h), cos(h), h, h² |
    | `hermite(degree)` | He_k(h)/√k!, probabilists', so that E φ(z)² = 1 for z ~ N(0, 1) |
    | `piecewise_linear(knots)` | through the points (x_i, y_i); constant outside them |

    Equal arguments give equal objects, so a jitted function compiles once for them. A callable
    that is itself the φ of a name without options (`jax.nn.relu`) becomes that activation.
    """
    if isinstance(spec, str):
        return _from_name(spec, options)
    if options:
        raise ValueError(
            f"Options {sorted(options)} were given, but only an activation named by a string takes "
            f"options; got {spec!r}. Try a name out of {', '.join(names())}."
        )
    if isinstance(spec, Activation):
        return spec
    if callable(spec):
        return _from_callable(spec)
    raise ValueError(
        f"An activation is a name, an Activation or a JAX callable; got {spec!r}. "
        f"Known names: {', '.join(names())}."
    )


def names() -> tuple[str, ...]:
    """The names that `activation` knows."""
    return tuple(sorted(_PLAIN | _FAMILIES))


def is_named(phi: Activation) -> bool:
    """Whether φ is the library's own: a user's function may be called `erf` and be another one."""
    try:
        return phi == activation(phi.name, **dict(phi.options))
    except ValueError:
        return False


@cache
def derivative(phi: Activation) -> Activation:
    """φ' by forward differentiation, with the kinks of φ as its own; without delta functions."""

    def fn(h: Array) -> Array:
        return jax.jvp(phi.fn, (h,), (jnp.ones_like(h),))[1]

    return Activation(f"{phi.name}'", fn, kinks=phi.kinks)


@cache
def jumps(phi: Activation) -> bool:
    """Whether φ itself jumps at a kink: the change across it does not shrink with the step."""

    def change(step: float) -> Array:
        width = step * (1 + abs(kinks))
        return abs(phi(kinks + width) - phi(kinks - width))

    with jax.ensure_compile_time_eval():  # a number is needed even while a jit is being traced
        kinks = jnp.asarray(phi.kinks, dtype=float)
        return bool(jnp.any((change(1e-5) > 0.5 * change(1e-4)) & (change(1e-4) > 1e-6)))


# --- functions without options ---------------------------------------------------------------


def _gelu(h: Array) -> Array:
    # erfc keeps the relative accuracy of the left tail, which 1 + erf loses.
    return 0.5 * h * jax.lax.erfc(-h / math.sqrt(2))


def _identity(h: Array) -> Array:
    return h


def _square(h: Array) -> Array:
    return h * h


_PLAIN: dict[str, tuple[Function, tuple[float, ...]]] = {
    "relu": (jax.nn.relu, (0.0,)),
    "erf": (jax.lax.erf, ()),
    "tanh": (jnp.tanh, ()),
    "sigmoid": (jax.nn.sigmoid, ()),
    "softplus": (jax.nn.softplus, ()),
    "gelu": (_gelu, ()),
    "sin": (jnp.sin, ()),
    "cos": (jnp.cos, ()),
    "identity": (_identity, ()),
    "square": (_square, ()),
}


# --- families: the options are checked first, the function is then built once per value --------


def _leaky_relu(slope: Any = 0.01) -> Activation:
    try:
        slope = float(slope)
    except (TypeError, ValueError):
        raise _bad_option("leaky_relu", "slope", slope, "a finite number", "slope=0.01") from None
    if not math.isfinite(slope):
        raise _bad_option("leaky_relu", "slope", slope, "a finite number", "slope=0.01")
    return Activation("leaky_relu", _leaky_fn(slope), (("slope", slope),), (0.0,))


@cache
def _leaky_fn(slope: float) -> Function:
    return lambda h: jnp.where(h > 0, h, slope * h)


def _hermite(degree: Any) -> Activation:
    degree = count("Activation 'hermite': degree", degree, least=0)
    if degree > _HIGHEST:
        raise _bad_option("hermite", "degree", degree, f"at most {_HIGHEST}", f"degree={_HIGHEST}")
    return Activation("hermite", _hermite_fn(degree), (("degree", degree),))


@cache
def _hermite_fn(degree: int) -> Function:
    def fn(h: Array) -> Array:
        """√(k+1) φ_{k+1} = h φ_k − √k φ_{k−1}, φ_0 = 1."""
        before, now = jnp.zeros_like(h), jnp.ones_like(h)
        for k in range(degree):
            before, now = now, (h * now - math.sqrt(k) * before) / math.sqrt(k + 1)
        return now

    return fn


def _piecewise_linear(knots: Any) -> Activation:
    try:
        points = np.asarray(knots, dtype=float)
    except (TypeError, ValueError):
        points = np.zeros(0)
    well_formed = points.ndim == 2 and points.shape[1] == 2 and len(points) >= 2
    if not (well_formed and np.isfinite(points).all() and (np.diff(points[:, 0]) > 0).all()):
        allowed = "two or more finite pairs (x, y), x strictly increasing"
        raise _bad_option("piecewise_linear", "knots", knots, allowed, "knots=((-1, -1), (1, 1))")
    pairs = tuple((float(x), float(y)) for x, y in points)
    return Activation("piecewise_linear", _ramps_fn(pairs), (("knots", pairs),), tuple(x for x, _ in pairs))


@cache
def _ramps_fn(knots: tuple[tuple[float, float], ...]) -> Function:
    def fn(h: Array) -> Array:
        # A sum of ramps, not of ReLUs, which would cancel badly far outside the knots; with
        # `where`, not `clip`, which has half of the slope as its derivative at the knots.
        y = jnp.full_like(h, knots[0][1])
        for (x0, y0), (x1, y1) in pairwise(knots):
            ramp = (y1 - y0) / (x1 - x0) * (h - x0)
            y = y + jnp.where(h > x1, y1 - y0, jnp.where(h > x0, ramp, 0.0))
        return jnp.where(jnp.isnan(h), h, y)

    return fn


_FAMILIES: dict[str, Callable[..., Activation]] = {
    "leaky_relu": _leaky_relu,
    "hermite": _hermite,
    "piecewise_linear": _piecewise_linear,
}


# --- from a specification ----------------------------------------------------------------------


def _from_name(name: str, options: dict[str, Any]) -> Activation:
    if name not in names():
        hint = nearest(name, names())
        raise ValueError(f"Unknown activation {name!r}.{hint} Known: {', '.join(names())}.")
    family = _FAMILIES.get(name)
    parameters = inspect.signature(family).parameters if family else {}
    allowed = ", ".join(parameters) or "no options"
    if unknown := sorted(set(options) - set(parameters)):
        raise ValueError(f"Activation {name!r} has no option {unknown}; it takes {allowed}.")
    required = {k for k, p in parameters.items() if p.default is p.empty}
    if missing := sorted(required - set(options)):
        raise ValueError(f"Activation {name!r} needs the option {missing}; it takes {allowed}.")
    if family:
        return family(**options)
    fn, kinks = _PLAIN[name]
    return Activation(name, fn, kinks=kinks)


def _from_callable(fn: Function) -> Activation:
    for name, (known, _) in _PLAIN.items():
        if fn is known:  # so that its kinks and its closed forms are not lost
            return activation(name)
    name = getattr(fn, "__name__", type(fn).__name__)
    try:
        hash(fn)
        # The scalar catches functions that mix entries along an axis, such as softmax.
        inputs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((), (2, 3))]
        outputs = [jax.eval_shape(fn, x) for x in inputs]
    except Exception as error:
        raise ValueError(
            f"{name} is not an elementwise, hashable JAX function: {error} "
            "Write it with jax.numpy, for one array of any shape."
        ) from error
    for x, y in zip(inputs, outputs, strict=True):
        is_array = isinstance(y, jax.ShapeDtypeStruct)
        if not (is_array and y.shape == x.shape and jnp.issubdtype(y.dtype, jnp.floating)):
            raise ValueError(
                f"{name} is not elementwise: {x.dtype}{list(x.shape)} became {y}. "
                "An activation maps a float array to a float array of the same shape."
            )
    return Activation(name, fn)


def _bad_option(name: str, option: str, given: Any, allowed: str, example: str) -> ValueError:
    return ValueError(f"Activation {name!r}: {option} must be {allowed}; got {given!r}. Try {example}.")
