"""The Gibbs measure as the law of noisy particles after a long time."""

import itertools
import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import count, positive
from .._checks import key as check_key
from .._tracing import traced
from ..dynamics.langevin import Langevin
from ..functionals.base import AbstractFunctional
from ..functionals.entropy import confining
from ..loop import evolve
from ..run import Run
from ..states.particles import Particles

_BLOCKS, _PER_BLOCK = 16, 8  # of time, for standard errors; saved times in each
_STRETCHED = (1.0, 0.25, 3.0, 0.0625, 6.0)  # the starts: the given one, its trained coordinates stretched
_MOST = 5.0  # standard errors that 2D tests with 15 degrees of freedom do not pass by chance


@dataclass(frozen=True)
class GibbsCloud:
    """Particles at rest under noise, and how well they are.

    Tested is ∫(−⟨∇q, ∇Ψ_λ⟩ + Δq/β)dρ = 0 for q each trained coordinate and its square, in the mean over the
    second half of the time; errors are those of the means of 16 blocks of it.

    - `particles`: those of the first start, at the end.
    - `means`, `errors`: ∫q dρ with standard errors, (2, D): coordinates, squares.
    - `weak_form`: the tested integrals over their standard errors, (2, D); `residual` the largest. A step η
      biases it by O(η), which shows when the errors are small enough.
    - `spread`: the largest difference of `means` between two starts (the given particles, and these drawn
      towards 0 and away from it), in standard errors.
    - `risk`, `risk_error`: the mean over the second half.
    - `status`: "ok"; "stalled" if residual or spread is above 5; "diverged"."""

    particles: Particles
    beta: float
    decay: float
    means: Float[np.ndarray, "2 D"]
    errors: Float[np.ndarray, "2 D"]
    weak_form: Float[np.ndarray, "2 D"]
    residual: float
    spread: float
    risk: float
    risk_error: float
    status: Literal["ok", "stalled", "diverged"]
    message: str

    @property
    def converged(self) -> bool:
        """Whether particles are at rest, the same from every start, as far as can be seen."""
        return self.status == "ok"

    @property
    def state(self) -> Particles:
        return self.particles


def stationary_cloud(
    functional: AbstractFunctional,
    beta: float,
    decay: float,
    particles: Particles,
    starts: Any,
    key: Array | None,
    step: float | None,
    time: float | None,
) -> GibbsCloud:
    """Langevin from several starts; what is seen in the second half of the time."""
    if step is None or time is None:
        raise ValueError("gibbs(on=particles) needs step=… of Langevin and time=…, several 1/decay at least.")
    step, time = positive("gibbs(step)", step), positive("gibbs(time)", time)
    if time < 4 * _BLOCKS * _PER_BLOCK * step:
        least = 4 * _BLOCKS * _PER_BLOCK
        raise ValueError(f"gibbs(time) must be {least} steps of {step:g} or more, got {time:g}.")
    number = count("gibbs(starts)", starts, least=2) if isinstance(starts, int) else 0
    if not 2 <= number <= len(_STRETCHED):
        raise ValueError(f"gibbs(starts) of particles is 2 to {len(_STRETCHED)}, got {starts!r}.")
    key = jax.random.key(0) if key is None else check_key("gibbs(key)", key)
    dynamics = Langevin(functional, step, beta=beta, decay=decay)
    look = Rest(traced(confining(functional, beta=beta, decay=decay)), jnp.asarray(beta, particles.dtype))
    ts = np.linspace(time / 2, time, _BLOCKS * _PER_BLOCK + 1)[1:]
    runs = []
    for i, factor in enumerate(_STRETCHED[:number]):
        start, own = _stretched(particles, factor), jax.random.fold_in(key, i)
        run = evolve(dynamics, start, ts, key=own, observe={"rest": look}, progress=False, snapshots=False)
        if run.status != "ok":
            return _failed(run, beta, decay, particles.D)
        runs.append(run)
    return _judged(runs, beta, decay)


@dataclass(frozen=True)
class Rest:
    """Means over the particles of (θ, θ², −∇Ψ_λ, −2θ∇Ψ_λ + 2/β), (4, D); the last two are d/dt of the first
    two, but for noise. Coordinates that are not trained have 0 there."""

    functional: AbstractFunctional
    beta: Array

    def __call__(self, t: float, state: Any) -> Array:
        return _rest(self.functional, self.beta, state)


@eqx.filter_jit
def _rest(functional: AbstractFunctional, beta: Array, rho: Particles) -> Float[Array, "4 D"]:
    theta, velocity = rho.theta, rho.joined(functional.drift(rho))
    moves = jnp.asarray(rho.neuron.moves(rho.D), rho.dtype)
    rows = [theta, theta**2, velocity, 2 * theta * velocity + 2 * moves / beta]
    return jnp.stack([rho.weights @ row for row in rows])


def _stretched(rho: Particles, factor: float) -> Particles:
    """The trained coordinates times a factor."""
    stretched = lambda moves, p: factor * p if moves else p
    return rho.with_parts(jax.tree.map(stretched, rho.trained(), rho.parts))


def _blocks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over time and its standard error, from means of blocks."""
    means = values.reshape(_BLOCKS, _PER_BLOCK, *values.shape[1:]).mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / math.sqrt(_BLOCKS)


def _ratio(value: np.ndarray, error: np.ndarray) -> np.ndarray:
    return np.divide(value, error, out=np.zeros_like(value), where=error > 0)


def _judged(runs: list[Run], beta: float, decay: float) -> GibbsCloud:
    seen = [_blocks(np.asarray(run["rest"], float)) for run in runs]
    weak = [_ratio(mean[2:], error[2:]) for mean, error in seen]
    residual = max(float(np.abs(w).max()) for w in weak)
    gaps = (_ratio(a[0] - b[0], np.hypot(a[1], b[1]))[:2] for a, b in itertools.combinations(seen, 2))
    spread = max(float(np.abs(gap).max()) for gap in gaps)
    risk, risk_error = _blocks(np.asarray(runs[0]["risk"], float))
    mean, error = seen[0]
    message = ""
    if max(residual, spread) > _MOST:
        message = (
            f"The particles are not at rest: {residual:.2g} standard errors in the weak form, {spread:.2g} "
            "between starts. Take a longer time, or a smaller step if that does not help."
        )
        warnings.warn(message, stacklevel=4)
    status: Literal["ok", "stalled"] = "stalled" if message else "ok"
    return GibbsCloud(
        runs[0].final, beta, decay, mean[:2], error[:2], weak[0], residual, spread, float(risk),
        float(risk_error), status, message,
    )  # fmt: skip


def _failed(run: Run, beta: float, decay: float, D: int) -> GibbsCloud:  # noqa: N803 (theory's name)
    unknown = np.full((2, D), np.nan)
    return GibbsCloud(
        run.final, beta, decay, unknown, unknown, unknown, math.inf, math.inf, math.nan, math.nan,
        "diverged", run.message,
    )  # fmt: skip
