"""How fast F − F* falls beside the guarantee of a logarithmic Sobolev inequality; its collapse as β grows.

If every Gibbs measure ∝ e^{−βΨ_λ(·;ρ_t)} has KL ≤ I/(2ϱ), then F(ρ_t) − F* ≤ e^{−2ϱt/β}(F(ρ_0) − F*)
(Nitanda, Wu and Suzuki; Chizat, 2022), and ϱ ≥ βλe^{−β osc Ψ} for a bounded Ψ (Holley and Stroock, 1987). Two
data points x = ±e₁ with labels Y and neurons σ*(x; θ) = c e^{−|x−θ|²/2s²}, θ ∈ R^D, c < Y, give Ψ two wells.
All mass starts in one of them and has to cross a barrier Δ, so that the rate falls like e^{−βΔ}: with β in
proportion to D, exponentially in D.

The rate is fitted to F − F* on grids in D = 1, 2, 3. It is compared with

- the guarantee, osc Ψ = −inf Ψ (as Ψ < 0 vanishes at infinity), the largest along the run;
- in D = 1, 2κ, κ the smallest eigenvalue of the derivative at ρ* of the scheme in space: no time step in it;
- Eyring and Kramers' law for cold noise, by which a well is left at the rate
  k = |μ|/2π √(det H/|det H₀|) e^{−βΔ}, H and H₀ the Hessians of Ψ_λ(·; ρ*) at the well and at the saddle,
  μ < 0 the negative eigenvalue there. F − F* falls at 4k(1 + βf²), f = f(e₁; ρ*): 2k is how fast both wells
  balance, F is quadratic, and 1 + βf² is the second derivative of F with the risk over that without."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..diagnostics.rates import Rate, decay_rate, guaranteed_rate
from ..diagnostics.scaling import Slope
from ..dynamics.grid import scharfetter_gummel as sg
from ..dynamics.grid.faces import inflow
from ..dynamics.grid.flow import GridFlow
from ..figures import COLOURS, panels
from ..functionals.free_energy import confining
from ..functionals.risk import Risk
from ..loop import evolve
from ..mean_field.gibbs import gibbs
from ..mean_field.result import Gibbs
from ..problems.laws import Dataset
from ..problems.neurons import CustomNeuron
from ..problems.problem import Problem
from ..states.grid import GridDensity
from ..states.gridding import on_grid
from .base import Check, Outcome, Say, finished

HEIGHT, WIDTH, LABEL, DECAY = 0.25, 0.5, 4.0, 0.2  # c, s, Y, λ
PER_DIMENSION = 8.0  # β/D
HALF = {1: (3.4,), 2: (3.2, 2.4), 3: (2.8, 1.9, 1.9)}  # of the box: the larger D, the colder
LIVES, TOLERANCE = 5.0, 1e-5  # of the slow mode, that a run takes; of a step
Cells = dict[int, tuple[int, ...]]  # by D


@dataclass(frozen=True)
class Settings:
    """How much is measured and how finely; the defaults are the published run's."""

    betas: tuple[float, ...] = (8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 24.0)  # in D = 1
    cells: Cells = field(default_factory=lambda: {1: (170,), 2: (80, 60), 3: (40, 28, 28)})
    fewer: Cells = field(default_factory=lambda: {2: (60, 45), 3: (35, 25, 25)})  # to tell the error by


FULL = Settings()
# Fewer β and no D = 3; the plane on coarser cells, whose error is stated. The bounds stay.
REDUCED = Settings((8.0, 12.0, 16.0, 24.0), {1: (170,), 2: (44, 32)}, {2: (34, 24)})


def bump(x: Any, theta: Any) -> Any:
    """c e^{−|x−θ|²/2s²}."""
    return HEIGHT * jnp.exp(-jnp.sum((x - theta) ** 2) / (2 * WIDTH**2))


NEURONS = {D: CustomNeuron(bump, D) for D in HALF}


def risk(D: int) -> Risk:  # noqa: N803 (theory's name)
    ends = np.array([np.eye(D)[0], -np.eye(D)[0]])
    return Risk(Problem(x=Dataset(ends, np.full(2, LABEL)), neuron=NEURONS[D]))


def start(D: int, cells: tuple[int, ...]) -> GridDensity:  # noqa: N803
    """All mass in one well."""
    half = np.array(HALF[D])
    narrow = lambda theta: jnp.exp(-jnp.sum((theta - jnp.eye(D)[0]) ** 2) / (2 * 0.2**2))
    return on_grid(narrow, -half, half, cells, neuron=NEURONS[D])


class Landscape(NamedTuple):
    """Ψ_λ(·; ρ*): the barrier Δ, and 4k(1 + βf²)."""

    barrier: float
    kramers: float


def landscape(star: Gibbs[GridDensity]) -> Landscape:
    rho, beta = star.state, star.beta
    D = rho.D
    total = confining(risk(D), beta=beta, decay=DECAY)
    psi = jax.jit(lambda theta: total.potential(theta[None], rho)[0])
    slope, bend = jax.grad(psi), jax.jit(jax.hessian(psi))
    saddle, well = jnp.zeros(D), 0.9 * jnp.eye(D)[0]
    for _ in range(20):
        well = well - jnp.linalg.solve(bend(well), slope(well))
    barrier = float(psi(saddle) - psi(well))
    top, bottom = np.linalg.eigvalsh(bend(saddle)), np.linalg.eigvalsh(bend(well))
    leaving = -top[0] / (2 * np.pi) * np.sqrt(np.prod(bottom) / abs(np.prod(top))) * np.exp(-beta * barrier)
    f = float(rho(jnp.eye(D)[:1])[0])
    return Landscape(barrier, float(4 * leaving * (1 + beta * f**2)))


class Measured(NamedTuple):
    """One run: the fitted rate with its error, the guarantee, and what cold noise leads to."""

    D: int
    beta: float
    rate: Rate
    bound: float
    barrier: float
    kramers: float
    t: np.ndarray
    excess: np.ndarray
    star: Gibbs[GridDensity]


def measured(D: int, beta: float, cells: tuple[int, ...] = FULL.cells[1]) -> Measured:  # noqa: N803
    """The rate of F − F* from a start in one well."""
    rho, R = start(D, cells), risk(D)
    star = gibbs(R, beta=beta, decay=DECAY, on=rho, starts=2)
    if not star.converged:
        raise RuntimeError(star.message)
    shape = landscape(star)
    ts = np.linspace(0, LIVES / shape.kramers, 41)
    depth = {"depth": lambda t, rho: -jnp.min(R.potential(rho.theta, rho))}
    flow = GridFlow(R, beta=beta, decay=DECAY, tol=TOLERANCE)
    run = finished(evolve(flow, rho, ts, observe=depth, progress=False))
    excess = np.asarray(run["free_energy"]) - star.free_energy
    late = ts >= ts[-1] / 2
    rate = decay_rate(ts[late], excess[late], 0.0)
    bound = guaranteed_rate(beta, DECAY, float(np.max(run["depth"])))
    return Measured(D, beta, rate, bound, shape.barrier, shape.kramers, ts, excess, star)


def with_error(D: int, beta: float, settings: Settings) -> Measured:  # noqa: N803
    """The rate, with its error of second order in the cells' size by what changes on fewer cells."""
    many, few = settings.cells[D], settings.fewer[D]
    fine, coarse = measured(D, beta, many), measured(D, beta, few)
    order = (many[0] / few[0]) ** 2 - 1
    error = max(fine.rate.error, abs(fine.rate.value - coarse.rate.value) / order)
    return fine._replace(rate=fine.rate._replace(error=error))


def smallest_eigenvalue(star: Gibbs[GridDensity]) -> float:
    """κ: the smallest real part but 0 of −d/dm of ṁ = A(Ψ_λ(·; m))m at ρ*, on a line."""
    rho, total = star.state, confining(risk(1), beta=star.beta, decay=DECAY)

    def change(mass: Any) -> Any:
        psi = total.potential(rho.theta, rho.with_mass(mass))
        return inflow([sg.flux(mass, sg.rates(psi, jnp.asarray(star.beta), rho.widths[0]))], mass)

    values = np.linalg.eigvals(-np.asarray(jax.jacfwd(change)(rho.mass)))
    return float(np.sort(values.real)[1])


def line(x: Any, y: Any, errors: Any) -> Slope:
    """Least squares of y on x: the error is the larger of what the errors imply and what the scatter does."""
    x, y, errors = (np.asarray(v, float) for v in (x, y, errors))
    value, level = np.polyfit(x, y, 1)
    spread = np.sum((x - x.mean()) ** 2)
    scatter = np.sum((y - level - value * x) ** 2) / max(len(x) - 2, 1)
    return Slope(float(value), float(np.sqrt(max(scatter, np.mean(errors**2)) / spread)), float(level))


def arrhenius(rows: list[Measured], x: Any) -> Slope:
    """The line through the logarithms of the rates."""
    rates = np.array([row.rate.value for row in rows])
    return line(x, np.log(rates), [row.rate.error / row.rate.value for row in rows])


def checks(hot: list[Measured], eigenvalues: list[float], growing: list[Measured]) -> tuple[Check, ...]:
    """`hot` in D = 1, `growing` with β ∝ D."""
    off = [abs(row.rate.value / (2 * k) - 1) for row, k in zip(hot, eigenvalues, strict=True)]
    margin = [np.log10(row.rate.value / row.bound) for row in (*hot, *growing)]
    barrier = hot[-1].barrier
    along, across = arrhenius(hot, [row.beta for row in hot]), arrhenius(growing, [row.D for row in growing])
    kramers = np.polyfit([row.D for row in growing], np.log([row.kramers for row in growing]), 1)[0]
    cold = [row.rate.value / row.kramers for row in (hot[-1], *growing[1:])]
    worst = cold[int(np.argmax(np.abs(np.log(cold))))]
    fitted, doubtful = (max(row.rate.error / row.rate.value for row in rows) for rows in (hot, growing))
    return (
        Check("D = 1: largest |rate/2κ − 1|, κ the smallest eigenvalue at ρ*", "0", max(off), fitted, 0.0,
              0.03),
        Check("smallest log₁₀ of the rate over the guarantee 2λe^{−β osc Ψ}", "0 or more", min(margin),
              doubtful, 0.0, 10.0),
        Check("D = 1: slope of log rate in β", f"−Δ = {-barrier:.3f}", along.value, along.error,
              -1.15 * barrier, -0.85 * barrier),
        Check(f"β = {PER_DIMENSION:g}D: slope of log rate in D", f"{kramers:.3f}", across.value, across.error,
              kramers - 0.5, kramers + 0.5),
        Check("cold noise: rate over that of Eyring and Kramers, the farthest from 1", "1", worst, doubtful,
              0.75, 1.25),
    )  # fmt: skip


def _draw(hot: list[Measured], growing: list[Measured]) -> Any:
    with panels(3) as (figure, axes):
        for colour, row in zip(COLOURS, growing, strict=False):
            label = f"D = {row.D}, β = {row.beta:g}: rate {row.rate.value:.2g}"
            axes[0].semilogy(row.rate.value * row.t, row.excess / row.excess[0], color=colour, label=label)
        axes[0].set(xlabel="rate · t", ylabel="(F − F*) / (F − F*)(0)")
        axes[0].legend(fontsize=8)
        betas = [row.beta for row in hot]
        for axis, rows, x in ((axes[1], hot, betas), (axes[2], growing, [row.D for row in growing])):
            rates, errors = [row.rate.value for row in rows], [row.rate.error for row in rows]
            axis.errorbar(x, rates, errors, fmt="o", ms=4, color=COLOURS[0], label="rate of F − F*")
            axis.plot(x, [row.kramers for row in rows], "--", color=COLOURS[2], label="Eyring and Kramers")
            axis.plot(x, [row.bound for row in rows], color=COLOURS[1], label="guaranteed")
            axis.set(yscale="log", ylabel="rate")
            axis.legend(fontsize=8)
        axes[1].set(xlabel="inverse temperature β", title="D = 1")
        axes[2].set(xlabel="D", xticks=[row.D for row in growing], title=f"β = {PER_DIMENSION:g}D")
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    hot, growing = [], []
    for beta in settings.betas:
        say(f"D = 1, β = {beta:g}")
        hot.append(measured(1, beta, settings.cells[1]))
    eigenvalues = [smallest_eigenvalue(row.star) for row in hot]
    for D in settings.cells:
        say(f"D = {D}, β = {PER_DIMENSION * D:g}")
        growing.append(hot[0] if D == 1 else with_error(D, PER_DIMENSION * D, settings))
    return Outcome(checks(hot, eigenvalues, growing), _draw(hot, growing))
