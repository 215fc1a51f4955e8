"""What training has moved: weights, features, the function, the kernel, and the gap to the linearisation."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..._checks import count
from ..alignment import alignment, are_classes, cka, relative_movement, rms, target_of
from .model import AbstractModel, pieces


@dataclass(frozen=True)
class FeatureMove:
    """Of one hidden layer: rms over rows and units of Δh = h_t − h_0 and of h_0, their ratio, the rms of h_t,
    and the alignment (linear CKA) of h_0 with h_t."""

    dh: float
    h0: float
    ht: float
    relative: float
    cka: float


@dataclass(frozen=True)
class KernelMove:
    """‖K_t − K_0‖/‖K_0‖ of the tangent kernel on `rows` rows, and by name of each of the weights; their share
    of tr K_0; alignments ⟨K, T⟩/(‖K‖‖T‖) of K_0 and K_t with T = yyᵀ (None without y) and T = Δf Δfᵀ."""

    movement: float
    parts: dict[str, float]
    shares: dict[str, float]
    with_target: tuple[float, float] | None
    with_change: tuple[float, float]
    rows: int


@dataclass(frozen=True)
class Movement:
    """All that was measured. Sizes of f are rms over rows and outputs; `gap` is ‖f_t − f_lin(W_t)‖/‖Δf‖.

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


def measure(model: AbstractModel, y: ArrayLike | None = None, rows: int = 256, seed: int = 0) -> Movement:
    """Movement of a model; kernel and CKA on at most `rows` rows, drawn at random by `seed`."""
    everything, chosen = np.arange(model.m), _subset(model.m, count("rows", rows), seed)
    before, after = model.weights(0), model.weights(1)
    weights = {name: relative_movement(w, after[name]) for name, w in before.items()}
    f0, ft = (model.outputs(when, everything) for when in (0, 1))
    if not np.isfinite(f0).all():
        raise ValueError("f must be finite before training on x, but is not. Are params_before and x right?")
    target = None if y is None else target_of(y, f0)
    notes = list(model.notes())
    if len(chosen) < model.m:
        notes.append(f"kernel and CKA on {len(chosen)} of {model.m} rows, drawn at random (seed {seed})")
    if f0.shape[1] > 1:
        notes.append(f"the kernel is the mean over the {f0.shape[1]} outputs")
    broken = [name for name, w in after.items() if not np.isfinite(w).all()]
    broken += [] if np.isfinite(ft).all() else ["f"]
    moves = not broken
    features = _features(model, everything, chosen) if moves else None
    if features is None and moves:
        notes.append("hidden layers not measured: give features(params, x), a dictionary or list of arrays")
    size = None if target is None or are_classes(y, f0) else rms(target)
    gap = kernel = None
    if moves:
        gap = _gap(f0, ft, model.linear(everything))
        kernel = _kernel(model, chosen, target, ft - f0)
    df = rms(ft - f0) if moves else float("nan")
    digits = float(np.finfo(f0.dtype).eps) if f0.dtype.kind == "f" else float(np.finfo(np.float32).eps)
    return Movement(
        weights,
        features,
        rms(f0),
        rms(ft),
        df,
        size,
        gap,
        kernel,
        model.m,
        digits,
        tuple(broken),
        tuple(notes),
    )


def _subset(m: int, most: int, seed: int) -> np.ndarray:
    if m <= most:
        return np.arange(m)
    return np.sort(np.random.default_rng(seed).choice(m, most, replace=False))


def _features(model: AbstractModel, everything: np.ndarray, chosen: np.ndarray) -> PyTree:
    totals: dict[str, np.ndarray] = {}
    for rows in pieces(everything):
        both = model.features(0, rows), model.features(1, rows)
        if both[0] is None or both[1] is None:
            return None
        for name, h0 in both[0].items():
            h0, ht = np.asarray(h0, float), np.asarray(both[1][name], float)
            squares = np.array([np.sum((ht - h0) ** 2), np.sum(h0**2), np.sum(ht**2), h0.size])
            totals[name] = totals.get(name, 0) + squares
    one, other = model.features(0, chosen), model.features(1, chosen)
    assert one is not None and other is not None
    out = {}
    for name, (moved, start, end, size) in totals.items():
        dh, h0, ht = np.sqrt(np.array([moved, start, end]) / max(size, 1))
        relative = dh / h0 if h0 > 0 else (0.0 if dh == 0 else np.inf)
        out[name] = FeatureMove(float(dh), float(h0), float(ht), float(relative), cka(one[name], other[name]))
    return out


def _gap(f0: np.ndarray, ft: np.ndarray, linear: np.ndarray) -> float:
    moved = np.linalg.norm(ft - f0)
    return float(np.linalg.norm(ft - linear) / moved) if moved > 0 else float("nan")


def _kernel(
    model: AbstractModel, rows: np.ndarray, target: np.ndarray | None, change: np.ndarray
) -> KernelMove:
    parts = [model.kernels(when, rows) for when in (0, 1)]
    whole = [sum(np.asarray(k, float) for k in kernels.values()) for kernels in parts]
    trace = float(np.trace(whole[0]))
    shares = {name: float(np.trace(k)) / trace if trace else float("nan") for name, k in parts[0].items()}
    moved = {name: relative_movement(k, parts[1][name]) for name, k in parts[0].items()}
    aligned = lambda t: (alignment(whole[0], t[rows]), alignment(whole[1], t[rows]))
    with_target = None if target is None else aligned(target)
    return KernelMove(relative_movement(*whole), moved, shares, with_target, aligned(change), len(rows))
