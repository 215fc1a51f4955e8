"""Feature and lazy training: Geiger, Spigler, Jacot and Wyart, J. Stat. Mech. 2020.

Networks of two hidden layers and width h train F = α(f − f₀) by gradient flow of R/α², where f has the
prefactor h^−½ of the NTK parametrisation. The paper's claims, which are measured here:

- the two regimes are divided by an α* ~ h^−½. α* is where ‖K_t − K_0‖/‖K_0‖, K the tangent kernel at the end
  of training, crosses 1. (The movement is a function of α√h, c₂/(α√h)², plus c₁/(α h) from the randomness of
  the start, which dominates for α > 1: a lower level or smaller h would measure that.) With the prefactor 1/h
  of the mean-field (muP) network the same model has α_mf = α√h, and the boundary is α_mf* ~ h⁰: that the two
  conventions are one model is a check of its own;
- in both regimes, at a fixed α√h, the variance of F over random starts falls like 1/h, so that averaging an
  ensemble of networks does for the test error what width does;
- which regime has the lower test error depends on the data (fully connected networks did better when lazy on
  the paper's images). The task here is y = sign(x₁x₂) on the sphere in R^10: two directions of ten matter,
  and the feature side finds them.

The paper has images, more layers and the hinge loss with an end at loss 0; here the loss is ½(y − F)² and
training ends at a fixed R, on either side of the boundary: at a fixed time the feature side would be nearer
to its end. φ is the paper's softplus, log(1 + e^{5h})/5, scaled to keep the variance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..diagnostics.scaling import Slope, fit_slope, mean_and_error
from ..dynamics.flow import GradientFlow
from ..dynamics.gradient_descent import GradientDescent
from ..figures import COLOURS, panels
from ..functionals.risk import Risk
from ..kernels.tangent import tangent_kernel
from ..loop import evolve
from ..problems.activations import Activation
from ..problems.laws import Dataset, Sphere
from ..problems.neurons import Neuron
from ..problems.nodes import Nodes
from ..problems.problem import Problem
from ..states.family import MLP
from ..states.network import Network
from ..states.replicas import stack
from .base import Check, Outcome, Say, finished, slope_check

DIMENSION, DEPTH, SAMPLES, TESTED = 10, 2, 100, 2000
ALPHAS = tuple(2.0**k for k in range(-3, 3))
END = 0.02  # training ends at this R, of ½ at the start
LEVEL = 1.0  # of the kernel's movement, for α*
KERNEL_ROWS = 64
SIDES = {"feature": 2.0, "lazy": 64.0}  # α√h: well below and well above the boundary
FIRST, FINEST = 4.0, 2.0 ** (np.arange(1, 9) / 8)  # times at which R is checked: 4, then eight per octave
SAME = 1e-4  # of F in two conventions after a hundred steps in float32, whose rounding is 1e-7 per step


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    widths: tuple[int, ...] = (32, 64, 128, 256, 512)
    map_seeds: int = 6
    variance_seeds: int = 16
    fitted: int = 64  # the least width of the variance's law: below, the next order in 1/h shows
    tolerance: float = 0.1  # of the slopes of α*, three or more error bars
    variance_tolerance: float = 0.2  # of those of the variance


FULL = Settings()
# At these widths the part c₁/(α h) of the movement still counts: α* falls like h^−0.33, which is told apart
# from h⁰ and h^−1. The variances of six starts, each known to √(2/5) = 60 % at worst, give slopes to ± 0.2.
REDUCED = Settings(
    (32, 64, 128), map_seeds=2, variance_seeds=6, fitted=32, tolerance=0.25, variance_tolerance=0.6
)


def _softplus(h: Array) -> Array:
    return 1.404 * jax.nn.softplus(5 * h) / 5


FAMILY = MLP(DIMENSION, DEPTH, Activation("softplus_5", _softplus))


class Task(NamedTuple):
    risk: Risk
    x: Array
    test: Nodes


class Trained(NamedTuple):
    """What is kept of each training: ‖K_t − K_0‖/‖K_0‖ (starts), and F on the test points (starts,
    TESTED)."""

    movement: np.ndarray
    outputs: np.ndarray


def task() -> Task:
    """The data, the same for every width, α and start."""
    problem = Problem(x=Sphere(DIMENSION), target=lambda x: jnp.sign(x[0] * x[1]), neuron=Neuron("relu"))
    train, test = (problem.sample(jax.random.key(seed), m) for seed, m in ((1, SAMPLES), (2, TESTED)))
    return Task(Risk(Problem(x=Dataset(train.x, train.y), neuron=problem.neuron)), train.x, test)


def starts(h: int, alpha: float, seeds: Sequence[int]) -> Network:
    """F = α(f − f₀) in the paper's convention, at its start; one replica per seed."""
    keys = jax.vmap(lambda seed: jax.random.fold_in(jax.random.key(h), seed))(np.array(seeds))
    one = lambda key: FAMILY.sample(key, h, "ntk", alpha=alpha, centred=True, dtype=jnp.float32)
    return stack([one(key) for key in keys])


def trained(risk: Risk, networks: Network) -> Network:
    """Each of the networks when its own risk is END, looked for one octave of time after the other."""
    import diffrax

    # the steps are bounded by stability, not by accuracy: a method of low order goes furthest per gradient
    flow = GradientFlow(risk, solver=diffrax.Bosh3())
    t, networks = FIRST, finished(evolve(flow, networks, [FIRST], progress=False)).final
    ends: dict[int, Network] = {}
    while len(ends) < (networks.replicas or 0):
        run = finished(evolve(flow, networks, t * (FINEST - 1), progress=False))
        for r, risks in enumerate(np.asarray(run["risk"]).T):
            below = np.flatnonzero(risks <= END)
            if below.size and r not in ends:
                ends[r] = run.states[int(below[0])].replica(r)
        t, networks = 2 * t, run.final
    return stack([ends[r] for r in sorted(ends)])


def learn(task: Task, h: int, alpha: float, seeds: Sequence[int]) -> Trained:
    before = starts(h, alpha, seeds)
    after = trained(task.risk, before)
    k0, kt = (tangent_kernel(networks, task.x[:KERNEL_ROWS]) for networks in (before, after))
    norm = lambda kernels: np.linalg.norm(np.asarray(kernels), axis=(-2, -1))
    return Trained(norm(kt - k0) / norm(k0), np.asarray(after(task.test.x), float))


def movements(task: Task, h: int, seeds: int, say: Say) -> np.ndarray:
    """The kernel's movement, (seeds, ALPHAS)."""
    columns = []
    for alpha in ALPHAS:
        say(f"kernel movement at width {h}, α = {alpha:g}, {seeds} starts")
        columns.append(learn(task, h, alpha, range(seeds)).movement)
    return np.array(columns).T


def boundary(movements: np.ndarray) -> tuple[float, float]:
    """α* where the movement, a falling function of α, crosses LEVEL: geometric mean over starts, error."""
    if (movements[:, 0] <= LEVEL).any() or (movements[:, -1] >= LEVEL).any():
        raise RuntimeError(f"ALPHAS do not enclose the boundary: movements {movements[:, [0, -1]]}.")
    crossings = [np.interp(-np.log(LEVEL), -np.log(row), np.log(ALPHAS)) for row in movements]
    mean, error = mean_and_error(crossings)
    return float(np.exp(mean)), float(np.exp(mean) * error)


def boundary_law(movements: dict[int, np.ndarray]) -> tuple[np.ndarray, Slope]:
    """Rows (α*, error) for each width, and the power law."""
    rows = np.array([boundary(movements[h]) for h in movements])
    return rows, fit_slope(list(movements), rows[:, 0], rows[:, 1])


def outputs(task: Task, scale: float, h: int, seeds: int, say: Say) -> np.ndarray:
    """F on the test points at α = scale/√h, (seeds, TESTED)."""
    say(f"outputs at α√h = {scale:g}, width {h}, {seeds} starts")
    return learn(task, h, scale / np.sqrt(h), range(1000, 1000 + seeds)).outputs


def variance(values: np.ndarray) -> tuple[float, float]:
    """Variance over starts, mean over the test points; its error is the jackknife's over starts."""
    of = lambda rows: float(rows.var(axis=0, ddof=1).mean())
    left_out = np.array([of(np.delete(values, i, axis=0)) for i in range(len(values))])
    return of(values), float(np.sqrt((len(values) - 1) * left_out.var()))


def variance_law(outputs: dict[int, np.ndarray], fitted: int) -> tuple[np.ndarray, Slope]:
    """Rows (variance, error) for each width, and the power law from the width `fitted` on."""
    rows, widths = np.array([variance(outputs[h]) for h in outputs]), np.array(list(outputs))
    far = widths >= fitted
    return rows, fit_slope(widths[far], rows[far, 0], rows[far, 1])


def wrong_part(task: Task, values: np.ndarray) -> np.ndarray:
    """The fraction of the test points where F, one row per network, has the wrong sign."""
    return np.mean(np.sign(values) != np.asarray(task.test.y), axis=-1)


def conventions_apart(task: Task, h: int = 50, alpha: float = 0.5) -> float:
    """The largest |F_ntk − F_muP| on test points after a hundred steps, for α and α_mf = α√h; h is
    no power of 4, at which all factors would be exact."""
    key, descent = jax.random.key(0), GradientDescent(task.risk, 0.05)
    ends = []
    for name, scale in (("ntk", alpha), ("mup", alpha * np.sqrt(h))):
        network = FAMILY.sample(key, h, name, alpha=scale, centred=True, dtype=jnp.float32)
        ends.append(finished(evolve(descent, network, [5.0], progress=False)).final(task.test.x))
    return float(jnp.max(jnp.abs(ends[0] - ends[1])))


def _error_checks(
    task: Task, outputs: dict[str, dict[int, np.ndarray]], widths: tuple[int, ...]
) -> list[Check]:
    """Test errors at the largest width; and of an ensemble at the smallest one, beside its members'."""
    widest, narrowest = widths[-1], widths[0]
    checks, errors = [], {}
    for side, by_width in outputs.items():
        errors[side] = mean_and_error(wrong_part(task, by_width[widest]))
    gap, bar = errors["lazy"][0] - errors["feature"][0], np.hypot(errors["lazy"][1], errors["feature"][1])
    measured = " and ".join(f"{mean:.4f} ± {error:.4f} ({side})" for side, (mean, error) in errors.items())
    what = f"test error, lazy − feature, h = {widest}: {measured}"
    checks.append(Check(what, "feature lower on this task", float(gap), float(bar), 0.02, 0.2))
    for side, by_width in outputs.items():
        single, error = mean_and_error(wrong_part(task, by_width[narrowest]))
        gain = single - float(wrong_part(task, by_width[narrowest].mean(axis=0)))
        what = f"test error, one network − ensemble of {len(by_width[narrowest])}, {side}, h = {narrowest}"
        checks.append(Check(what, "> 0", gain, error, 2e-3, 0.1))
    return checks


def _ticks(axis: Any, at: Any) -> None:
    """These numbers as ticks of a logarithmic axis, and no others."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(list(at)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def _draw_map(axes: Any, moved: dict[int, np.ndarray], law: tuple[np.ndarray, Slope]) -> None:
    """The movement over (h, α) with its boundary; and against α√h, where all widths are one curve."""
    from matplotlib.colors import LogNorm

    (rows, slope), logs, widths = law, {h: np.log(movements) for h, movements in moved.items()}, tuple(moved)
    table = np.exp([logs[h].mean(axis=0) for h in widths]).T
    edges = [np.append(grid, 2 * grid[-1]) / np.sqrt(2) for grid in (widths, ALPHAS)]
    image = axes[0].pcolormesh(*edges, table, norm=LogNorm(), cmap="viridis")
    axes[0].figure.colorbar(image, ax=axes[0])
    axes[0].errorbar(widths, rows[:, 0], rows[:, 1], fmt="o", ms=4, capsize=2, color="white")
    fit = f"α* ~ h$^{{{slope.value:+.3f} ± {slope.error:.3f}}}$"
    axes[0].plot(widths, slope.at(widths), "--", color="white", label=fit)
    axes[0].set(xscale="log", yscale="log", xlabel="width h", ylabel="α  (f with prefactor h$^{-1/2}$)")
    axes[0].set_title(f"‖K$_t$ − K$_0$‖ / ‖K$_0$‖, and where it is {LEVEL:g}", fontsize=10)
    axes[0].legend(labelcolor="white", loc="upper right")
    axes[0].grid(False)
    for i, (h, each) in enumerate(logs.items()):
        mean, error = np.exp(each.mean(axis=0)), each.std(axis=0, ddof=1) / np.sqrt(len(each))
        style = {"fmt": "o-", "ms": 3, "capsize": 2, "color": COLOURS[i], "label": f"h = {h}"}
        axes[1].errorbar(np.sqrt(h) * np.array(ALPHAS), mean, mean * error, **style)
    axes[1].axhline(LEVEL, color="0.4", lw=1, ls=":")
    axes[1].set(xscale="log", yscale="log", xlabel="α√h  (= α of f with prefactor 1/h)")
    axes[1].set_ylabel("‖K$_t$ − K$_0$‖ / ‖K$_0$‖")
    axes[1].set_title("one curve for α < 1", fontsize=10)
    axes[1].legend()
    _ticks(axes[0].xaxis, widths)
    _ticks(axes[0].yaxis, ALPHAS)
    _ticks(axes[1].xaxis, (1, 2, 4, 8, 16, 32, 64))


def _draw_sides(axes: Any, task: Task, outputs: dict, laws: dict, settings: Settings) -> None:
    """Variance over starts and test error against the width, on either side."""
    widths = settings.widths
    fitted = [h for h in widths if h >= settings.fitted]
    for i, (side, by_width) in enumerate(outputs.items()):
        (rows, slope), colour = laws[side], COLOURS[i]
        label = f"{side}, α√h = {SIDES[side]:g}: slope {slope.value:+.2f} ± {slope.error:.2f}"
        style = {"ms": 4, "capsize": 2, "color": colour}
        axes[0].errorbar(widths, rows[:, 0], rows[:, 1], fmt="o", label=label, **style)
        axes[0].plot(fitted, slope.at(fitted), "--", color=colour)
        single = np.array([mean_and_error(wrong_part(task, by_width[h])) for h in widths])
        whole = [wrong_part(task, by_width[h].mean(axis=0)) for h in widths]
        axes[1].errorbar(widths, single[:, 0], single[:, 1], fmt="o-", label=side, **style)
        label = f"{side}, ensemble of {settings.variance_seeds}"
        axes[1].plot(widths, whole, "s:", ms=4, mfc="white", color=colour, label=label)
    axes[0].set(xscale="log", yscale="log", xlabel="width h", ylabel="variance of F over starts")
    axes[1].set(xscale="log", xlabel="width h", ylabel="test error")
    for axis in axes:
        _ticks(axis.xaxis, widths)
        axis.legend(fontsize=8)


def run(say: Say, settings: Settings = FULL) -> Outcome:
    data, widths = task(), settings.widths
    moved = {h: movements(data, h, settings.map_seeds, say) for h in widths}
    trained = {
        side: {h: outputs(data, scale, h, settings.variance_seeds, say) for h in widths}
        for side, scale in SIDES.items()
    }
    law = boundary_law(moved)
    laws = {side: variance_law(by_width, settings.fitted) for side, by_width in trained.items()}
    ours = fit_slope(widths, *(law[0].T * np.sqrt(widths)))
    checks = [
        slope_check("slope in h of α*, f with prefactor h^−½", law[1], -0.5, settings.tolerance),
        slope_check("slope in h of α*, f with prefactor 1/h", ours, 0.0, settings.tolerance),
        Check("largest |F| between the two conventions", "0", conventions_apart(data), 0.0, 0.0, SAME),
    ]
    for side, (_, slope) in laws.items():
        what = f"slope in h of the variance over starts, {side} side (α√h = {SIDES[side]:g})"
        checks.append(slope_check(what, slope, -1.0, settings.variance_tolerance))
    checks += _error_checks(data, trained, widths)
    say("the figure")
    with panels(4) as (figure, axes):
        _draw_map(axes[:2], moved, law)
        _draw_sides(axes[2:], data, trained, laws, settings)
    return Outcome(tuple(checks), figure)
