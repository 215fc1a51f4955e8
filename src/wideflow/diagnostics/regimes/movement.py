"""What training has moved: weights, features, the function, the kernel, and the gap to the linearisation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..._checks import count
from ..alignment import alignment, are_classes, relative_movement, rms, target_of
from .hidden import FeatureMove, seen
from .model import AbstractModel, BufferMove
from .plan import KernelPlan, planned, projected
from .work import Work

_ONE_SIGMA = 0.8413  # of a normal law is below one standard deviation


@dataclass(frozen=True)
class KernelMove:
    """‖K_t − K_0‖/‖K_0‖ of the tangent kernel on `rows` rows, and by name of each of the weights; their share
    of tr K_0; alignments ⟨K, T⟩/(‖K‖‖T‖) of K_0 and K_t with T = yyᵀ (None without y) and T = Δf Δfᵀ.

    Of many outputs the kernel is that of `projections` of them at random, and `error` is the standard error
    of `movement` (0 where all outputs are taken)."""

    movement: float
    parts: dict[str, float]
    shares: dict[str, float]
    with_target: tuple[float, float] | None
    with_change: tuple[float, float]
    rows: int
    projections: int
    error: float


@dataclass(frozen=True)
class Movement:
    """All that was measured. Sizes of f are rms over rows and outputs; `gap` is ‖f_t − f_lin(W_t)‖/‖Δf‖.

    Weights are measured against their own start, those that start at 0 (biases) against that of their layer.
    `still` says that no weight moved at all; `buffers` what else moved, and was held.
    `broken` names what is not finite after training, weights or f; kernel and gap are then absent."""

    weights: dict[str, float]
    features: dict[str, FeatureMove] | None
    f0: float
    ft: float
    df: float
    y: float | None
    gap: float | None
    kernel: KernelMove | None
    m: int
    digits: float
    broken: tuple[str, ...]
    notes: tuple[str, ...]
    still: bool = False
    buffers: BufferMove | None = None


def measure(
    model: AbstractModel,
    y: ArrayLike | None = None,
    rows: int | None = None,
    seed: int = 0,
    projections: int | None = None,
    progress: bool | None = None,
) -> Movement:
    """Movement of a model; kernel, CKA and the gap to the linearisation on at most `rows` rows, drawn at
    random by `seed`."""
    rows = None if rows is None else count("rows", rows)
    projections = None if projections is None else count("projections", projections)
    before, after = model.weights(0), model.weights(1)
    layers = model.layers()
    projections = projections if layers else None  # else all outputs are cheap
    plan = planned(layers, model.itemsize, model.m, model.outputs, rows, projections)
    chosen = _subset(model.m, plan.rows, seed)
    f0, ft, features, seconds = seen(model, chosen)
    if not np.isfinite(f0).all():
        raise ValueError("f must be finite before training on x, but is not. Are params_before and x right?")
    target = None if y is None else target_of(y, f0)
    broken = [name for name, w in after.items() if not np.isfinite(w).all()]
    broken += [] if np.isfinite(ft).all() else ["f"]
    features, gap, kernel = None if broken else features, None, None
    if not broken:
        gap = _gap(f0[chosen], ft[chosen], model.linear(chosen))
        work = Work(model, plan, projected(model.outputs, plan.projections, seed), seconds, progress)
        kernel = _kernel(work, chosen, target, ft - f0)
    return Movement(
        weights=layer_movements(before, after),
        features=features,
        f0=rms(f0),
        ft=rms(ft),
        df=float("nan") if broken else rms(ft - f0),
        y=None if target is None or are_classes(y, f0) else rms(target),
        gap=gap,
        kernel=kernel,
        m=model.m,
        digits=float(np.finfo(f0.dtype if f0.dtype.kind == "f" else np.float32).eps),
        broken=tuple(broken),
        notes=_notes(model, plan, seed, bool(features) or bool(broken), kernel),
        still=all(np.array_equal(w, after[name]) for name, w in before.items()),
        buffers=None if broken else model.buffers(chosen, f0[chosen], ft[chosen]),
    )


def _notes(
    model: AbstractModel, plan: KernelPlan, seed: int, known: bool, kernel: KernelMove | None
) -> tuple[str, ...]:
    notes = list(model.notes())
    if plan.rows < model.m:
        notes.append(
            f"kernel, CKA and linearisation gap on {plan.rows} of {model.m} rows at random (seed {seed})"
        )
    if plan.is_sketch and kernel is not None:
        notes.append(
            f"the kernel is the mean over the {plan.outputs} outputs, by {plan.projections} random "
            f"projections of them (standard error of its movement {kernel.error:.1g}; "
            f"projections={plan.outputs} is exact)"
        )
    elif plan.outputs > 1:
        notes.append(f"the kernel is the mean over the {plan.outputs} outputs")
    if not known:
        notes.append("hidden layers not measured: give features(params, x), a dictionary or list of arrays")
    return tuple(notes)


def layer_movements(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> dict[str, float]:
    """‖W_t − W_0‖/‖W_0‖ by name; of weights that start at 0, over ‖W_0‖ of all weights of their layer, those
    whose name differs in its last part alone."""
    layer = lambda name: name.rpartition(".")[0]
    sizes: dict[str, float] = {}
    for name, w in before.items():
        sizes[layer(name)] = sizes.get(layer(name), 0.0) + float(np.sum(np.asarray(w, float) ** 2))
    moved = {}
    for name, w in before.items():
        moved[name], size = relative_movement(w, after[name]), sizes[layer(name)]
        if moved[name] == float("inf") and size > 0:
            moved[name] = float(np.linalg.norm(np.asarray(after[name], float)) / size**0.5)
    return moved


def _subset(m: int, most: int, seed: int) -> np.ndarray:
    if m <= most:
        return np.arange(m)
    return np.sort(np.random.default_rng(seed).choice(m, most, replace=False))


def _gap(f0: np.ndarray, ft: np.ndarray, linear: np.ndarray) -> float:
    moved = np.linalg.norm(ft - f0)
    return float(np.linalg.norm(ft - linear) / moved) if moved > 0 else float("nan")


def _kernel(work: Work, rows: np.ndarray, target: np.ndarray | None, change: np.ndarray) -> KernelMove:
    both = work.kernels(rows)
    parts = [kernels.parts for kernels in both]
    terms = [np.asarray(kernels.terms, float) for kernels in both]
    whole = [each.sum(0) for each in terms]
    trace = float(np.trace(whole[0]))
    shares = {name: float(np.trace(k)) / trace if trace else float("nan") for name, k in parts[0].items()}
    moved = {name: relative_movement(k, parts[1][name]) for name, k in parts[0].items()}
    aligned = lambda t: (alignment(whole[0], t[rows]), alignment(whole[1], t[rows]))
    with_target = None if target is None else aligned(target)
    plan = work.plan
    error = _sketch_error(terms[0], terms[1], plan.projections / plan.outputs) if plan.is_sketch else 0.0
    movement = relative_movement(*whole)
    return KernelMove(
        movement, moved, shares, with_target, aligned(change), len(rows), plan.projections, error
    )


def _sketch_error(before: np.ndarray, after: np.ndarray, share: float) -> float:
    """Of the movement by a share s/O of the outputs: by the jackknife, √((1 − s/O)(g − 1)/g Σ_k (θ_k − θ̄)²),
    θ_k being the movement without group k of g groups of projections. Of few groups it is itself uncertain:
    Student's factor makes it as wide as one standard error has to be to hold in 68 % of cases."""
    g = len(before)
    if g < 2:
        return float("nan")
    whole = before.sum(0), after.sum(0)
    left_out = [relative_movement(whole[0] - before[k], whole[1] - after[k]) for k in range(g)]
    from scipy.stats import t as student

    wider = float(student.ppf(_ONE_SIGMA, g - 1))
    return wider * float(np.sqrt((1 - share) * (g - 1) * np.var(left_out)))
