"""A function of a kernel: what training with a frozen kernel leads to."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import count, function
from .._shown import shown
from .._typing import TypeIs
from ..store.registry import recorded
from .chunks import map_rows
from .state import AbstractState

Kernel = Callable[[Array, Array], Array]
_TILE = 2**22  # entries of K(x, x_i) to hold at once


@recorded
class KernelFunction(AbstractState):
    """f(x) = f₀(x) + Σ_i K(x, x_i) c_i, c_i a number or one per output; f₀ = `start`, or 0.

    `KernelFunction(kernel)` is f = 0, to start `wf.KernelFlow` from. K(x, x') (m, m') is shared by all
    outputs and must be a JAX function of rows, such as `wf.kernels.InfiniteKernel(family)`."""

    kernel: Kernel
    outputs: int = eqx.field(static=True)
    start: Callable[[Array], Array] | None
    x: Float[Array, "m d"] | None
    coefficients: Array | None

    def __init__(
        self,
        kernel: Kernel,
        outputs: int = 1,
        start: Callable[[Array], Array] | None = None,
        x: Array | None = None,
        coefficients: Array | None = None,
    ):
        self.kernel = function("KernelFunction(kernel)", kernel)
        self.outputs = count("KernelFunction(outputs)", outputs)
        if start is not None and not callable(start):
            raise ValueError(f"KernelFunction(start) must be a function of rows x, got {shown(start)}.")
        rows = lambda array: None if array is None else len(array)
        if rows(x) != rows(coefficients):
            raise ValueError(
                "KernelFunction(x, coefficients) must be given together, with equally many rows."
            )
        self.start, self.x, self.coefficients = start, x, coefficients

    def __call__(self, x: Float[Array, "m d"]) -> Array:
        f = self._start(x)
        if self.x is None or self.coefficients is None:
            return f
        centres, c = self.x, self.coefficients
        rows = max(1, min(len(x), _TILE // len(centres)))
        return f + map_rows(lambda x: self.kernel(x, centres).astype(c.dtype) @ c, x, rows)

    def _start(self, x: Array) -> Array:
        shape = (len(x),) if self.outputs == 1 else (len(x), self.outputs)
        return jnp.zeros(shape, jnp.result_type(x, float)) if self.start is None else self.start(x)


def is_kernel_function(value: object) -> TypeIs[KernelFunction]:
    """Whether a state is a function of a kernel."""
    return isinstance(value, KernelFunction)
