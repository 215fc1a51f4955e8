"""The Gibbs measure as the law of noisy particles after a long time."""

import itertools
import math
import warnings
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import count, positive
from .._checks import key as check_key
from .._shown import shown
from .._tracing import jit, traced
from ..dynamics.langevin import Langevin
from ..functionals.base import AbstractFunctional
from ..functionals.free_energy import confining
from ..loop import evolve
from ..run import Run
from ..states.particles import Particles
from .result import Gibbs

_BLOCKS, _PER_BLOCK = 16, 8  # of time, for standard errors; saved times in each
# The starts: the given one, and its trained coordinates stretched; mirrored ones find wells that no run
# leaves.
_STRETCHED = (1.0, -0.25, 3.0, -0.0625, 6.0)
_MOST = 5.0  # standard errors that 2D tests with 15 degrees of freedom do not pass by chance


def by_langevin(
    functional: AbstractFunctional,
    beta: float,
    decay: float,
    particles: Particles,
    starts: object,
    key: Array | None,
    step: float | None,
    time: float | None,
) -> Gibbs[Particles]:
    """Langevin from several starts, judged by the second half of the time."""
    if step is None or time is None:
        raise ValueError("gibbs(on=particles) needs step=… of Langevin and time=…, several 1/decay at least.")
    step, time = positive("gibbs(step)", step), positive("gibbs(time)", time)
    if time < 4 * _BLOCKS * _PER_BLOCK * step:
        least = 4 * _BLOCKS * _PER_BLOCK
        raise ValueError(f"gibbs(time) must be {least} steps of {step:g} or more, got {time:g}.")
    number = count("gibbs(starts)", starts, least=2) if isinstance(starts, int) else 0
    if not 2 <= number <= len(_STRETCHED):
        raise ValueError(f"gibbs(starts) of particles is 2 to {len(_STRETCHED)}, got {shown(starts)}.")
    key = jax.random.key(0) if key is None else check_key("gibbs(key)", key)
    dynamics = Langevin(functional, step, beta=beta, decay=decay)
    observer = Rest(traced(confining(functional, beta=beta, decay=decay)), jnp.asarray(beta, particles.dtype))
    ts = np.linspace(time / 2, time, _BLOCKS * _PER_BLOCK + 1)[1:]
    runs = []
    for i, factor in enumerate(_STRETCHED[:number]):
        start, own = _stretched(particles, factor), jax.random.fold_in(key, i)
        run = evolve(
            dynamics, start, ts, key=own, observe={"rest": observer}, progress=False, snapshots=False
        )
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

    def __call__(self, t: float, state: Particles) -> Array:
        return _rest(self.functional, self.beta, state)


@jit
def _rest(functional: AbstractFunctional, beta: Array, rho: Particles) -> Float[Array, "4 D"]:
    theta, velocity = rho.theta, rho.joined(functional.drift(rho))
    moves = jnp.asarray(rho.neuron.moves(rho.D), rho.dtype)
    rows = [theta, theta**2, velocity, 2 * theta * velocity + 2 * moves / beta]
    return jnp.stack([rho.weights @ row for row in rows])


def _stretched(rho: Particles, factor: float) -> Particles:
    """The trained coordinates times a factor; lengths stay positive."""
    moves, radii = (np.array(v) for v in (rho.neuron.moves(rho.D), rho.neuron.radii(rho.D)))
    factors = np.where(moves, np.where(radii, abs(factor), factor), 1.0)
    return rho.with_parts(rho.neuron.unpack(rho.theta * jnp.asarray(factors, rho.dtype)))


def _blocks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over time and its standard error, from means of blocks."""
    means = values.reshape(_BLOCKS, _PER_BLOCK, *values.shape[1:]).mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / math.sqrt(_BLOCKS)


def _ratio(value: np.ndarray, error: np.ndarray) -> np.ndarray:
    return np.divide(value, error, out=np.zeros_like(value), where=error > 0)


def _judged(runs: list[Run], beta: float, decay: float) -> Gibbs[Particles]:
    """What the second half of the time says. Errors are those of the means of blocks of it, and infinite
    where the runs are not at rest or disagree."""
    statistics = [_blocks(np.asarray(run["rest"], float)) for run in runs]
    weak = [_ratio(mean[2:], error[2:]) for mean, error in statistics]
    residual = max(float(np.abs(w).max()) for w in weak)
    gaps = (_ratio(a[0] - b[0], np.hypot(a[1], b[1]))[:2] for a, b in itertools.combinations(statistics, 2))
    spread = max(float(np.abs(gap).max()) for gap in gaps)
    risk, error = _blocks(np.asarray(runs[0]["risk"], float))
    mean, errors = statistics[0]
    at_rest = max(residual, spread) <= _MOST
    result = Gibbs(
        state=runs[0].final,
        method="langevin",
        beta=beta,
        decay=decay,
        risk=float(risk),
        error=float(error) if at_rest else math.inf,
        free_energy=math.nan,
        moments=mean[:2],
        moment_errors=errors[:2] if at_rest else np.full_like(errors[:2], math.inf),
        residual=residual,
        spread=spread,
        status="ok" if at_rest else "stalled",
        message="" if at_rest else _not_at_rest(residual, spread),
        details={"weak_form": weak[0]},
    )
    if not at_rest:
        warnings.warn(result.message, stacklevel=4)
    return result


def _not_at_rest(residual: float, spread: float) -> str:
    return (
        f"The particles are not at rest: {residual:.2g} standard errors in the weak form, {spread:.2g} "
        "between starts, so that nothing is known about the error. Take a longer time, or a smaller step if "
        "that does not help."
    )


def _failed(run: Run, beta: float, decay: float, D: int) -> Gibbs[Particles]:  # noqa: N803 (theory's name)
    unknown, infinite = np.full((2, D), math.nan), np.full((2, D), math.inf)
    return Gibbs(
        run.final, "langevin", beta, decay, math.nan, math.inf, math.nan, unknown, infinite, math.inf,
        math.inf, "diverged", run.message, {"weak_form": infinite},
    )  # fmt: skip
