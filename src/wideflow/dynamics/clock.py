"""Time in equal steps: t = kη."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from numpy.typing import ArrayLike

from .._checks import is_traced
from .._typing import Scalar

_MOST_STEPS = 2**31 - 1  # step counters are int32


def steps_to(ts: ArrayLike, step: float) -> np.ndarray:
    """The numbers k of the steps nearest to the times."""
    return np.rint(np.asarray(ts, np.float64) / step).astype(np.int64)


def step_number(t: Scalar, step: Scalar) -> Int[Array, ""]:
    """The number k of the step nearest to t: in float64 where both are known, else as traced."""
    if is_traced(t) or is_traced(step):
        return jnp.rint(t / step).astype(jnp.int32)
    return np.asarray(min(int(steps_to(t, float(step))), _MOST_STEPS), np.int32)  # type: ignore[return-value]


def check_steps(ts: np.ndarray, step: float) -> None:
    """Raise if the last time takes too many steps, or two times are one step."""
    many = float(ts[-1]) / float(step)
    if many > _MOST_STEPS:
        raise ValueError(
            f"t = {ts[-1]:.6g} takes {many:.3g} steps of {step:.6g}; at most {_MOST_STEPS}. Stop earlier, or "
            "use a larger step."
        )
    steps = steps_to(ts, step)
    if (np.diff(steps) == 0).any():
        i = int(np.argmin(np.diff(steps)))
        raise ValueError(
            f"ts must be at least a step of {step:.6g} apart, but ts[{i}] = {ts[i]:.6g} and ts[{i + 1}] = "
            f"{ts[i + 1]:.6g} both are step {steps[i]}. Save fewer times, or use a smaller step."
        )
