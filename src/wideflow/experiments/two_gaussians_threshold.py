"""When one sphere is optimal for two centred Gaussians: Mei, Montanari and Nguyen, PNAS 2018.

The problem is that of `two_gaussians_dynamics`: y = ±1, x ~ N(0, (1 ± Δ)² I_d), truncated linear σ. A law of
w that is invariant under rotations is a law ρ of r = |w|, with σ̄(q; r) = E_u σ(r q u) at |x| = √d q and

    R(ρ) = ½E(y − ∫σ̄(q; r)ρ(dr))²,   Ψ(r; ρ) = −E[(y − f(q)) σ̄(q; r)].

R is convex in ρ, so ρ is optimal iff Ψ(·; ρ) is least on its support. Let r* minimise R(δ_r). The uniform
law on the sphere of radius r* is optimal iff min_r Ψ(r; δ_r*) ≥ Ψ(r*; δ_r*). The claim: that ends at a Δ*_d
which tends to Δ*_∞ ≈ 0.47. In d = ∞ there are two values of q, and at Δ*_∞ one sphere fits both labels: the
least risk is 0 from there on. In finite d the condition fails below a Δ'_d ~ 1/d too, where |x| varies more
within a class than between them and a mixture of short and long weights, f ≈ 0, beats one sphere.

Where one sphere is not optimal the least risk is that of a law on a grid of radii, and

    R(ρ) − inf R ≤ ∫Ψ(·; ρ) dρ − min_r Ψ(r; ρ)

certifies it. Radii run from 0 to 10⁶, which stands for ∞: σ̄ has a limit there and Ψ may be least at it. The
grid's own spacing costs about 1e-6 in R. Slopes in d are those of d ≥ 80, as the next term is of order 1/d².

Conventions. The paper's risk is E(y − f)² = 2R, R = ½E(y − f)² being the library's; it is the one on the
axis. No time enters (the paper's t, for ξ = 1, is the library's 2t)."""

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._tracing import jit
from ..diagnostics.scaling import Slope, fit_slope
from ..figures import COLOURS, panels
from .base import Check, Outcome, Say, slope_check
from .two_gaussians_dynamics import problem_of

ORDER, RISE = 48, 1e-8  # nodes of x, what counts as below Ψ(r*)
OPTIMAL, UPPER, LOWER = 0.2, 0.7, 1e-4  # a Δ where one sphere is optimal in all d, and two where it is not
LARGE = 80  # dimensions from which on slopes in d are fitted
RADII = np.concatenate([2 * np.tan(np.linspace(0, 1.55, 500)), [1e6]])
GAP = 1e-6  # on the certificate of the least risk


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    dimensions: tuple[float, ...] = (20, 40, 80, 160, 320, math.inf)
    drawn: tuple[float, ...] = (20, 40, 160, math.inf)
    deltas: np.ndarray = field(default_factory=lambda: np.linspace(0.05, 0.95, 37))
    digits: float = 1e-6  # width of the last bracket
    tolerance: float = 0.1  # on exponents in d
    doubt: float = 5e-5  # of a threshold


FULL = Settings()
# Brackets a hundred times as wide, of thresholds that are 1e-3 apart: a tenth of the exponents more.
REDUCED = Settings(
    (80, 320, math.inf), (math.inf,), np.linspace(0.1, 0.9, 5), digits=1e-4, tolerance=0.2, doubt=5e-4
)


@jit
def _table(neuron: Any, radii: Any, x: Any) -> tuple[Any, Any]:
    """σ̄ and ∂_r σ̄ at all radii and nodes."""
    features = lambda r: neuron.features(neuron.unpack(r), x)
    return jax.jvp(features, (radii,), (jnp.ones_like(radii),))


@dataclass(frozen=True)
class Radial:
    """The reduced problem at its nodes: σ̄ of radii as dense arrays."""

    neuron: Any
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, d: float, delta: float, order: int) -> "Radial":
        problem = problem_of(d, delta).reduced(order // 4)
        nodes: Any = problem.quadrature(order)
        return cls(problem.neuron, *(np.asarray(v) for v in (nodes.x, nodes.y, nodes.weights)))

    def table(self, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, second = _table(self.neuron, jnp.asarray(radii)[:, None], jnp.asarray(self.x))
        return np.asarray(first), np.asarray(second)

    def risk(self, f: np.ndarray) -> np.ndarray:
        return 0.5 * (self.y - f) ** 2 @ self.weights

    def psi(self, sigma: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Ψ = −E[(y − f) σ̄]."""
        return -sigma @ (self.weights * (self.y - f))


def best_sphere(radial: Radial) -> tuple[float, np.ndarray]:
    """r* = argmin R(δ_r) and σ̄ there: the best radius of the grid, then the zero of dR/dr = ∂_rΨ(r; δ_r)."""
    sigma, _ = radial.table(RADII)
    i = int(np.argmin(radial.risk(sigma)))
    near = np.linspace(RADII[max(i - 1, 0)], RADII[i + 1], len(RADII))
    sigma, slope = radial.table(near)
    rise = -np.sum(radial.weights * (radial.y - sigma) * slope, axis=1)
    k = int(np.clip(np.searchsorted(rise > 0, True), 1, len(near) - 1))
    share = rise[k - 1] / (rise[k - 1] - rise[k])
    return near[k - 1] + share * (near[k] - near[k - 1]), sigma[k - 1] + share * (sigma[k] - sigma[k - 1])


def excess(d: float, delta: float, order: int) -> float:
    """min_r Ψ(r; δ_r*) − Ψ(r*; δ_r*): below 0 iff one sphere is not optimal."""
    radial = Radial.of(d, delta, order)
    _, f = best_sphere(radial)
    return float(np.min(radial.psi(radial.table(RADII)[0], f)) - radial.psi(f, f))


def threshold(d: float, order: int, beyond: float, digits: float) -> float:
    """Δ*_d by bisection, between a Δ where one sphere is optimal and one `beyond`, where it is not."""
    inside, outside = OPTIMAL, beyond
    while abs(outside - inside) > digits:
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if excess(d, middle, order) < -RISE else (middle, outside)
    return (inside + outside) / 2


def measured(d: float, digits: float, beyond: float = UPPER) -> tuple[float, float]:
    """A threshold, and its error: the change under doubled orders, and the bracket."""
    fine, rough = (threshold(d, order, beyond, digits) for order in (2 * ORDER, ORDER))
    return fine, abs(fine - rough) + digits


def best_law(radial: Radial) -> np.ndarray:
    """The law on the radii that minimises R at these nodes. As y − f = ∫(y − σ̄)dρ it is the point of least
    norm in a convex hull, given by nonnegative least squares: min |Gz|² + (1ᵀz − 1)², ρ = z/1ᵀz."""
    from scipy.optimize import nnls

    sigma, _ = radial.table(RADII)
    rows = np.sqrt(radial.weights)[:, None] * (radial.y - sigma).T
    right = np.append(np.zeros(len(rows)), 1.0)
    z, _ = nnls(np.vstack([rows, np.ones(len(RADII))]), right, maxiter=10**5)
    return z / z.sum()


def least_risk(d: float, delta: float) -> tuple[float, float, float]:
    """The least risk over laws on the radii, its duality gap, and min_r R(δ_r): the law is found with one
    order and judged with the double, so that what it owes to the nodes shows in its gap."""
    rho, radial = best_law(Radial.of(d, delta, ORDER)), Radial.of(d, delta, 2 * ORDER)
    sigma, _ = radial.table(RADII)
    f = rho @ sigma
    psi, sphere = radial.psi(sigma, f), radial.risk(best_sphere(radial)[1])
    return float(radial.risk(f)), float(rho @ psi - psi.min()), float(sphere)


def _slope(values: dict[float, tuple[float, float]]) -> Slope:
    """The power of d that (value, error) follow in large d."""
    large = [d for d in values if LARGE <= d < math.inf]
    return fit_slope(large, *zip(*(values[d] for d in large), strict=True))


def _draw(upper: Any, curves: dict[float, np.ndarray], laws: dict[str, Any], deltas: np.ndarray) -> Any:
    """The least risk; the threshold against 1/d; how the thresholds tend to those of d = ∞."""
    with panels(3, width=4.6, height=3.8) as (figure, axes):
        for colour, (d, rows) in zip(COLOURS, curves.items(), strict=False):
            axes[0].plot(deltas, 2 * rows[:, 0], color=colour, label=f"d = {d}".replace("inf", "∞"))
            axes[0].plot(deltas, 2 * rows[:, 2], "--", lw=1, color=colour)
            axes[0].axvline(upper[d][0], color=colour, ls=":", lw=1)
        axes[0].plot([], [], "--", lw=1, color="0.3", label="best sphere")
        axes[0].plot([], [], ":", lw=1, color="0.3", label="Δ*")
        axes[0].set(xlabel="Δ", ylabel="least risk E(y − f)² = 2R", yscale="log", ylim=(1e-4, 2))
        axes[0].legend(fontsize=8, loc="lower left")
        last = upper[math.inf][0]
        axes[1].plot([1 / d for d in upper], [value for value, _ in upper.values()], "o-", color=COLOURS[0])
        axes[1].set(xlabel="1/d", ylabel="threshold Δ*", xlim=(-0.002, 0.053))
        axes[1].annotate(f"d = ∞: {last:.6f}", (0, last), (12, -3), textcoords="offset points")
        for colour, (name, values) in zip(COLOURS, laws.items(), strict=False):
            slope, ds = _slope(values), list(values)
            axes[2].loglog(ds, [values[d][0] for d in ds], "o", color=colour, label=name)
            fit = f"slope {slope.value:+.3f} (d ≥ {LARGE})"
            axes[2].plot(ds, slope.at(ds), "--", color=colour, label=fit)
        axes[2].set_xticks(ds, [f"{d}" for d in ds])
        axes[2].set_xticks([], minor=True)
        axes[2].set(xlabel="d", ylabel="distance from the threshold of d = ∞")
        axes[2].legend(fontsize=8)
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    upper, lower, curves, deltas, digits = {}, {}, {}, settings.deltas, settings.digits
    for d in settings.dimensions:
        upper[d] = measured(d, digits)
        say(f"d = {d}: Δ* = {upper[d][0]:.6f} ± {upper[d][1]:.1g}")
        if math.isfinite(d):
            lower[d] = measured(d, digits, LOWER)
            say(f"d = {d}: optimal from Δ' = {lower[d][0]:.6f} ± {lower[d][1]:.1g} on")
    for d in settings.drawn:
        curves[d] = np.array([least_risk(d, delta) for delta in deltas])
        say(f"d = {d}: least risk for {len(deltas)} Δ, certified to {curves[d][:, 1].max():.1g}")
    last, error = upper[math.inf]
    apart = {d: (last - value, error + own) for d, (value, own) in upper.items() if math.isfinite(d)}
    worst = max(own for _, own in (*upper.values(), *lower.values()))
    rise = float(np.diff([value for value, _ in upper.values()]).min())
    gap = max(rows[:, 1].max() for rows in curves.values())
    inside = {d: (lower.get(d, (0.0,))[0] < deltas) & (deltas < upper[d][0]) for d in curves}
    same = max(np.abs(rows[inside[d], 2] - rows[inside[d], 0]).max() for d, rows in curves.items())
    zero = curves[math.inf][deltas > last, 0].max()
    checks = (
        Check("Δ* in d = ∞", "0.47", last, error, 0.465, 0.475),
        Check("largest change of a threshold under doubled orders", "0", worst, digits, 0.0, settings.doubt),
        Check("least rise of Δ* with d", "> 0", rise, 2 * worst, 1e-5, 1.0),
        slope_check(f"slope in d of Δ*_∞ − Δ*_d, d ≥ {LARGE}", _slope(apart), -1.0, settings.tolerance),
        slope_check(f"slope in d of Δ'_d, d ≥ {LARGE}", _slope(lower), -1.0, settings.tolerance),
        Check("largest duality gap of the least risk", "0", gap, 0.0, -1e-12, GAP),
        Check("Δ' < Δ < Δ*: largest R(δ_r*) − least R", "0", float(same), gap, 0.0, 10 * GAP),
        Check("d = ∞, Δ > Δ*: largest least risk", "0", float(zero), gap, 0.0, GAP),
    )
    return Outcome(checks, _draw(upper, curves, {"Δ*(∞) − Δ*(d)": apart, "Δ'(d)": lower}, deltas))
