"""Inverse temperatures that change in time."""

import dataclasses
from typing import Literal, get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from .._checks import is_traced, nearest, positive
from .._shown import shown
from .._typing import Scalar, TypeIs

Kind = Literal["linear", "geometric", "logarithmic", "power"]


class Annealing(eqx.Module):
    """β(t), from `start` at t = 0 to `end` at t = `over`, and `end` from then on. With u = t/over ∈ [0, 1]:

    - "linear": β = start + (end − start) u;
    - "geometric": β = start (end/start)^u, the temperature falls by the same factor in equal times;
    - "logarithmic": β = start + (end − start) log(1 + t)/log(1 + over), the slow law under which noisy
      descent is known to reach inf R;
    - "power": β = start (1 + u((end/start)^{1/p} − 1))^p, p = `power`: linear at p = 1, geometric at p = ∞.

    A free energy belongs to one temperature: `wf.FreeEnergy(R, beta=annealing(t))` at the time t.

    >>> beta = wf.Annealing(10.0, 1000.0, over=50.0)
    >>> [round(float(beta(t))) for t in (0.0, 25.0, 50.0, 75.0)]
    [10, 100, 1000, 1000]"""

    start: float = eqx.field(converter=lambda v: positive("Annealing(start)", v))
    end: float = eqx.field(converter=lambda v: positive("Annealing(end)", v))
    over: float = eqx.field(converter=lambda v: positive("Annealing(over)", v))
    kind: Kind = eqx.field(static=True, default="geometric")
    power: float = eqx.field(default=2.0, kw_only=True, converter=lambda v: positive("Annealing(power)", v))

    def __check_init__(self):
        known = get_args(Kind)
        if self.kind not in known:
            raise ValueError(
                f"Annealing(kind) must be one of {known}, got {shown(self.kind)}.{nearest(self.kind, known)}"
            )

    @property
    def coldest(self) -> Scalar:
        """The largest β on the way."""
        if is_traced(self.start) or is_traced(self.end):
            return jnp.maximum(self.start, self.end)
        return max(self.start, self.end)

    def __call__(self, t: ArrayLike) -> Float[Array, ""]:
        """β(t)."""
        t = jnp.clip(jnp.asarray(t, jnp.result_type(float)), 0.0, self.over)
        u, ratio = t / self.over, self.end / self.start
        if self.kind == "linear":
            return self.start + (self.end - self.start) * u
        if self.kind == "geometric":
            return self.start * ratio**u
        if self.kind == "logarithmic":
            return self.start + (self.end - self.start) * jnp.log1p(t) / jnp.log1p(self.over)
        return self.start * (1 + u * (ratio ** (1 / self.power) - 1)) ** self.power


def inverse_temperature(beta: object) -> float | Annealing | None:
    """β as a number > 0 or inf, or a schedule as it is; None where none was given."""
    if beta is None or is_annealed(beta):
        return beta
    if callable(beta) or dataclasses.is_dataclass(beta):
        raise ValueError(
            f"beta must be a number > 0 or inf, or a schedule such as wf.Annealing(start, end, over), got "
            f"{shown(beta)}: a function of time cannot be kept with a run."
        )
    return positive("beta", beta, infinite=True)


def is_annealed(value: object) -> TypeIs[Annealing]:
    """Whether an inverse temperature changes with time."""
    return isinstance(value, Annealing)
