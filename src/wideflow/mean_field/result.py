"""What `gibbs` returns, on a grid and by particles alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from jaxtyping import Float
from numpy import ndarray

from ..states.grid import GridDensity
from ..states.particles import Particles

Rest = TypeVar("Rest", GridDensity, Particles)


@dataclass(frozen=True)
class Gibbs(Generic[Rest]):
    """ρ* ∝ exp(−βΨ_λ(θ; ρ*)), on a grid or as particles, and how well it is known.

    - `state`: the density or the particles at rest; `method`: "newton" on a grid, "langevin" by particles.
    - `risk`: its R, with `error`; `free_energy`: F = R/α² + (λ/2)∫|θ|²dρ − S/β, NaN for particles, whose
      entropy is not known.
    - `moments`, `moment_errors`: ∫θ dρ* and ∫θ² dρ* by coordinate, (2, D).
    - `residual`: how far ρ is from the fixed point. Newton: of the worst start, √∫(log ρ + βΨ_λ(·; ρ) +
      log Z)²dρ (ρ and its image exp(−βΨ_λ)/Z, the larger in each cell); near ρ* it bounds the error of log ρ
      in that norm, as the equation's derivative is ≥ 1. Langevin: the largest of ∫(−⟨∇q, ∇Ψ_λ⟩ + Δq/β)dρ, q
      each trained coordinate and its square, in standard errors; a step η biases it by O(η).
    - `spread`: the largest difference between what was reached from any two starts; ρ* is unique where R is
      convex. Newton: in L1, of the size of the residual if all is well. Langevin: of the moments, in
      standard errors.
    - `status`: "ok"; "stalled" if a start did not come to rest (Newton: residual above the tolerance;
      Langevin: residual or spread above 5); "diverged". `message` says more.
    - `details`: of Newton `largest` (of |log ρ + βΨ_λ + log Z| over all cells), `iterations` of each start,
      `boundary_mass` (in the outermost cells: much of it means that the box cuts ρ* off) and `coarseness`
      (h√∫|∂ log ρ|²dρ, the largest over the axes: cell over standard deviation for a Gaussian); of Langevin
      `weak_form`, the tested integrals over their standard errors, (2, D).

    Errors are one standard error by particles, and on a grid the bounds that follow from the residual (the
    grid's own error apart). They are infinite unless `status` is "ok": where starts did not meet, or are not
    at rest, a small scatter says nothing."""

    state: Rest
    method: Literal["newton", "langevin"]
    beta: float
    decay: float
    risk: float
    error: float
    free_energy: float
    moments: Float[ndarray, "2 D"]
    moment_errors: Float[ndarray, "2 D"]
    residual: float
    spread: float
    status: Literal["ok", "stalled", "diverged"]
    message: str
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def converged(self) -> bool:
        """Whether all starts came to rest, at the same ρ* as far as can be seen."""
        return self.status == "ok"
