"""Activations: the scalar function φ of the neuron `σ*(x; θ) = a φ(⟨w, x⟩ + b)`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from .._checks import function, nearest, number
from .._data import Data
from .._shown import shown
from ..store.registry import must_be, recorded
from ..vocabulary.activations import ACTIVATIONS

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Activation:
    """An elementwise function φ: R → R, hashable so that it can be a static argument of `jax.jit`.

    - `name`, `options`: what `activation(name, **dict(options))` was asked for.
    - `fn`: φ itself; derivatives are taken by `jax.jvp`.
    - `kinks`: the points where φ or φ' jumps. Quadrature cuts its domain there, so a φ of your own with
      kinks should state them: `Activation("abs", jnp.abs, kinks=(0.0,))`.
    - `dual`, `mean`: closed forms, where there are any: (q1, q2, q12) ↦ E φ(u)φ(v) for centred Gaussians of
      variances q1, q2 and covariance q12, and (μ, v) ↦ E φ(μ + √v z), z ~ N(0, 1); elementwise on arrays of
      one shape, and differentiable. Without them such means are taken by quadrature or a Hermite series.

    At a kink where φ is continuous, the named activations have the left derivative
    (ReLU'(0) = 0).
    """

    name: str
    fn: Function
    options: tuple[tuple[str, Any], ...] = ()
    kinks: tuple[float, ...] = ()
    dual: Callable[[Array, Array, Array], Array] | None = None
    mean: Callable[[Array, Array], Array] | None = None

    def __call__(self, h: Array) -> Array:
        return self.fn(h)


def activation(spec: "str | Activation | Function", **options: object) -> Activation:
    """The activation that `spec` stands for: a name, an `Activation`, or a JAX callable.

    {table}

    Equal arguments give equal objects, so a jitted function compiles once for them. A callable
    that is itself the φ of a name without options (`jax.nn.relu`) becomes that activation.

    >>> wf.activation("leaky_relu", slope=0.1)(jnp.array([-1.0, 2.0]))
    Array([-0.1,  2. ], dtype=float64)"""
    if isinstance(spec, str):
        return _from_name(spec, options)
    if options:
        raise ValueError(
            f"Options {sorted(options)} were given, but only an activation named by a string takes "
            f"options; got {shown(spec)}. Try a name out of {', '.join(names())}."
        )
    if isinstance(spec, Activation):
        return spec
    if callable(spec):
        return _from_callable(spec)
    raise ValueError(
        f"An activation is a name, an Activation or a JAX callable; got {shown(spec)}. "
        f"Known names: {', '.join(names())}."
    )


def names() -> tuple[str, ...]:
    """The names that `activation` knows."""
    return tuple(sorted(ACTIVATIONS))


def is_named(phi: Activation) -> bool:
    """Whether φ is the library's own: a user's function of the same name may be a different one."""
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

    if not phi.kinks:
        return False

    def change(step: float) -> Array:
        width = step * (1 + abs(kinks))
        return abs(phi(kinks + width) - phi(kinks - width))

    with jax.ensure_compile_time_eval():  # a number is needed even while a jit is being traced
        kinks = jnp.asarray(phi.kinks, dtype=float)
        return bool(jnp.any((change(1e-5) > 0.5 * change(1e-4)) & (change(1e-4) > 1e-6)))


def _from_name(name: str, options: Data) -> Activation:
    if name not in ACTIVATIONS:
        hint = nearest(name, names())
        raise ValueError(f"Unknown activation {shown(name)}.{hint} Known: {', '.join(names())}.")
    word = ACTIVATIONS[name]
    word.check("Activation", options)
    return word.constructor()(**options)


def _from_callable(fn: Function) -> Activation:
    plain = [word.name for word in ACTIVATIONS.values() if not word.options]
    for known in map(activation, plain):
        if fn is known.fn:  # so that its kinks and its closed forms are not lost
            return known
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


# --- as data -----------------------------------------------------------------------------------


def _fields(phi: Activation) -> Data:
    """A named activation is its name and options; one of the user's own is also its functions."""
    closed = {"dual": phi.dual, "mean": phi.mean}
    forms = {name: form for name, form in closed.items() if form is not None}
    own = {} if is_named(phi) else {"fn": phi.fn, "kinks": phi.kinks} | forms
    return {"name": phi.name, "options": phi.options} | own


def _rebuilt(
    name: str, options: Any, fn: object = None, kinks: Any = (), dual: Any = None, mean: Any = None
) -> Activation:
    if fn is None:
        return activation(must_be("name", name, str), **dict(options))
    checked = tuple(number("kinks", kink) for kink in kinks)
    return Activation(name, function("fn", fn), options, checked, dual, mean)


recorded(Activation, fields=_fields, build=_rebuilt)


# --- in words ----------------------------------------------------------------------------------


def _table() -> str:
    """The rows of the vocabulary, as the docstring of `activation` shows them."""
    signature = lambda option: option.name if option.required else f"{option.name}={option.default}"
    rows = ["| name | φ(h) |", "|---|---|"]
    for word in ACTIVATIONS.values():
        options = f"({', '.join(map(signature, word.options))})" if word.options else ""
        formula = f"{word.formula}; {word.about}" if word.about else word.formula
        rows.append(f"| `{word.name}{options}` | {formula} |")
    return "\n    ".join(rows)


activation.__doc__ = (activation.__doc__ or "").replace("{table}", _table())
