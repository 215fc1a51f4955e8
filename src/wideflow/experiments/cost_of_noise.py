"""What noise costs: R_λ(ρ*_β) − inf R_λ falls like 1/β, R_λ = R + (λ/2)∫|θ|²dρ.

ρ* ∝ e^{−βΨ_λ(·;ρ*)} is where noisy dynamics at inverse temperature β come to rest (Mei, Montanari and Nguyen,
PNAS 2018). For a linear neuron ⟨θ, x⟩ with x ~ N(0, I_D) the cost is D/(2β) exactly. It tends to D/(2β)
wherever R_λ is least at atoms with a positive definite Hessian of Ψ_λ: a Gaussian of covariance H⁻¹/β costs
½tr(HH⁻¹)/β. That is shown for y = erf(x), x ~ N(0, 1), and neurons erf(wx) (D = 1) and a erf(wx) (D = 2).

inf R_λ comes from minimising over one neuron, by Newton's method, and from the certificate that no measure
does better: R_λ(δ) − inf R_λ ≤ Ψ_λ(θ₀; δ) − min_θ Ψ_λ(θ; δ), δ the atom at θ₀; the minimum is taken over
the grid."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._tracing import jit
from ..diagnostics.scaling import Slope, fit_slope
from ..figures import COLOURS, panels
from ..functionals.base import AbstractFunctional
from ..functionals.expectations import Quadrature
from ..functionals.free_energy import confining
from ..functionals.risk import Risk
from ..mean_field.gibbs import gibbs
from ..problems.laws import Gaussian
from ..problems.neurons import AbstractNeuron, Neuron
from ..problems.problem import Problem
from ..problems.targets import single_index, teacher
from ..states.gridding import on_grid
from ..states.particles import Particles
from .base import Check, Outcome, Say, slope_check

W_STAR = (0.7, -0.4)
_NEWTON = 50  # steps, of which ten are enough
_DEVIATIONS = 8.0  # of ρ* on either side of the box


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    dimensions: tuple[int, ...] = (1, 2)
    warm: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # β of the linear neuron: the law at any
    cold: tuple[float, ...] = (64.0, 128.0, 256.0, 512.0, 1024.0)  # β of erf, which tends to it


FULL = Settings()
# Fewer β on the same grid of the line, where nothing is random: the bounds are those of the whole.
REDUCED = Settings((1,), warm=(4.0, 32.0, 128.0), cold=(64.0, 256.0, 1024.0))


class Case(NamedTuple):
    """A problem in D dimensions: R, λ, the grid's cells along each axis, and the β to look at."""

    name: str
    D: int
    risk: Risk
    decay: float
    cells: int
    betas: tuple[float, ...]


class Least(NamedTuple):
    """inf R_λ: its value, at an atom θ₀, and how much lower it can be."""

    value: float
    theta: np.ndarray
    gap: float


class Costs(NamedTuple):
    """R_λ(ρ*_β) − inf R_λ for each β, and their errors."""

    case: Case
    values: np.ndarray
    errors: np.ndarray

    @property
    def slope(self) -> Slope:
        return fit_slope(self.case.betas, self.values, self.errors)

    @property
    def constants(self) -> np.ndarray:
        """2β/D times the cost."""
        return 2 * np.array(self.case.betas) * self.values / self.case.D


def linear(D: int, settings: Settings = FULL) -> Case:  # noqa: N803 (theory's name)
    """⟨θ, x⟩ for y = ⟨w*, x⟩."""
    target = teacher(np.array([W_STAR[:D]]), a=[1.0], link="identity")
    problem = Problem(x=Gaussian(D), target=target, neuron=Neuron("identity", output="unit"))
    risk = Risk(problem, Quadrature(4))  # exact for squares
    return Case(f"⟨θ, x⟩, D = {D}", D, risk, 0.5, (200, 100)[D - 1], settings.warm)


def erf(D: int, settings: Settings = FULL) -> Case:  # noqa: N803
    """erf(wx), or a erf(wx), for y = erf(x)."""
    neuron, decay = (Neuron("erf", output="unit"), 0.05) if D == 1 else (Neuron("erf"), 0.1)
    problem = Problem(x=Gaussian(1), target=single_index("erf"), neuron=neuron)
    name = ("erf(wx)", "a erf(wx)")[D - 1]
    risk, cells = Risk(problem, Quadrature(40)), (600, 180)[D - 1]
    return Case(f"{name}, D = {D}", D, risk, decay, cells, settings.cold)


def _box(case: Case, theta: np.ndarray, beta: float) -> Any:
    """A density on a grid that holds ρ*: wide by β for the linear neuron, whose ρ* is one Gaussian; erf has
    another atom at −θ₀ (D = 2)."""
    if case.name.startswith("⟨"):
        half = np.full(case.D, _DEVIATIONS / np.sqrt(beta * case.decay))
        low, high = theta - half, theta + half
    else:
        low, high = np.full(case.D, -3.2), np.full(case.D, 3.2)
    flat = lambda theta: jnp.exp(-0.5 * jnp.sum(theta**2))
    return on_grid(flat, low, high, case.cells, neuron=case.risk.problem.neuron)


@jit
def _newton(total: AbstractFunctional, neuron: AbstractNeuron, theta: jax.Array) -> jax.Array:
    """One Newton step for R_λ of an atom."""
    value = lambda theta: total.value(Particles(theta[None], neuron=neuron))
    return theta - jnp.linalg.solve(jax.hessian(value)(theta), jax.grad(value)(theta))


def least(case: Case) -> Least:
    """The minimum over atoms, and the certificate that it is the one over all measures."""
    total = confining(case.risk, beta=np.inf, decay=case.decay)
    theta = jnp.full(case.D, 0.75)
    for _ in range(_NEWTON):
        theta = _newton(total, case.risk.problem.neuron, theta)
    atom = Particles(theta[None], neuron=case.risk.problem.neuron)
    own = float(total.potential(theta[None], atom)[0])
    around = total.potential(_box(case, np.asarray(theta), case.betas[0]).theta, atom)
    return Least(float(total.value(atom)), np.asarray(theta), own - float(jnp.min(around)))


def cost(case: Case, bottom: Least, beta: float) -> tuple[float, float]:
    """R_λ(ρ*_β) − inf R_λ and its error: of both numbers and of ρ*, of which R_λ is a smooth function."""
    resting = gibbs(case.risk, beta=beta, decay=case.decay, on=_box(case, bottom.theta, beta), starts=2)
    if not resting.converged:
        raise RuntimeError(resting.message)
    value = resting.risk + case.decay * float(resting.state.second_moment())
    excess = value - bottom.value
    return excess, max(
        bottom.gap, 0.0
    ) + resting.residual + 1e-6 * excess  # at most, of what the box cuts off


def costs(case: Case, say: Say) -> Costs:
    bottom, rows = least(case), []
    for beta in case.betas:
        say(f"{case.name}: β = {beta:g}")
        rows.append(cost(case, bottom, beta))
    return Costs(case, *(np.array(column) for column in zip(*rows, strict=True)))


def checks(measured: Costs) -> list[Check]:
    """The slope, and the constant: of all β for the linear neuron, of the largest for erf."""
    case, exact = measured.case, measured.case.name.startswith("⟨")
    off, errors = np.abs(measured.constants - 1), measured.constants * measured.errors / measured.values
    worst = int(np.argmax(off)) if exact else len(off) - 1
    where = "any β" if exact else f"β = {case.betas[-1]:g}"
    return [
        slope_check(f"{case.name}: slope of R_λ(ρ*) − inf R_λ in β", measured.slope, -1.0,
                    1e-4 if exact else 0.1),
        Check(f"{case.name}: |cost/(D/2β) − 1| at {where}", "0", float(off[worst]), float(errors[worst]), 0.0,
              1e-4 if exact else 0.02),
    ]  # fmt: skip


def _draw(all_costs: list[Costs]) -> Any:
    with panels(2, width=5.0) as (figure, axes):
        for colour, measured in zip(COLOURS, all_costs, strict=False):
            betas, label = np.array(measured.case.betas), f"{measured.case.name}: {measured.slope.value:+.3f}"
            axes[0].loglog(betas, measured.values, "o", color=colour, ms=4, label=label)
            axes[0].loglog(betas, measured.case.D / (2 * betas), color=colour, lw=1)
            axes[1].semilogx(betas, measured.constants, "o-", color=colour, ms=4, lw=1)
        axes[0].loglog([], [], color="black", lw=1, label="D/(2β)")
        axes[0].set(xlabel="inverse temperature β", ylabel="R$_λ$(ρ*) − inf R$_λ$")
        axes[0].legend(fontsize=8, title="slope of", title_fontsize=8)
        axes[1].axhline(1, color="black", lw=1)
        axes[1].set(xlabel="inverse temperature β", ylabel="cost over D/(2β)", ylim=(0.9, 1.1))
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    measured = [costs(make(D, settings), say) for make in (linear, erf) for D in settings.dimensions]
    return Outcome(tuple(check for one in measured for check in checks(one)), _draw(measured))
