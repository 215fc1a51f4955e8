"""A single neuron as the target, y = erf(⟨w*, x⟩), and what lazy training can make of it.

x ~ N(0, I_d), |w*| = 1. Lazy training of a wide erf network with a ~ N(0, 1), w ~ N(0, I/d) is regression
with its tangent kernel at the start,

    K(x, x') = E φ(u)φ(v) + ⟨x, x'⟩ E φ'(u)φ'(v),

(u, v) Gaussian with variances |x|²/d and |x'|²/d and covariance ⟨x, x'⟩/d. With m of order d samples, d → ∞,
it fits at most the linear part of the target; as E[z erf(z)] = 2/√(3π) and E erf(z)² = (2/π) asin(2/3),
z ~ N(0, 1),

    ½E(y − f)² → ½‖P_{>1} f*‖² = ½((2/π) asin(2/3) − 4/(3π)) at best."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from ..problems.duals import closed_dual
from ..problems.laws import Gaussian
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..problems.targets import single_index

NOT_LINEAR = 0.5 * (2 / math.pi * math.asin(2 / 3) - 4 / (3 * math.pi))


def problem_in(d: int) -> Problem:
    return Problem(x=Gaussian(d), target=single_index("erf"), neuron=Neuron("erf"))


@jax.jit
def lazy_kernel(x: Any, other: Any) -> Any:
    """K(x, x') of the infinitely wide erf network at its start; E φ'φ' = ∂/∂q₁₂ E φφ' by Price's theorem."""
    d = x.shape[1]
    dual = closed_dual("erf", "erf")
    inner = x @ other.T
    q1, q2 = jnp.sum(x**2, axis=1)[:, None] / d, jnp.sum(other**2, axis=1) / d
    value, slope = jax.jvp(lambda q12: dual(q1, q2, q12), (inner / d,), (jnp.ones_like(inner),))
    return value + inner * slope
