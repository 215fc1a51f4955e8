"""How two arrays, two sets of features, or a kernel and a target are aligned."""

import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from .._checks import finite


def rms(values: ArrayLike) -> float:
    """√(mean of squares)."""
    values = np.asarray(values, float)
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def relative_movement(before: ArrayLike, after: ArrayLike) -> float:
    """‖after − before‖/‖before‖; inf for what starts at 0 and moves."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    moved, size = norm(after - before), norm(before)
    if size == 0:
        return 0.0 if moved == 0 else float("inf")
    return moved / size


def norm(values: np.ndarray) -> float:
    """√(Σ v²), without the threads of a BLAS, which cost more than they bring."""
    return float(np.sqrt(np.sum(np.square(values))))


def alignment(kernel: ArrayLike, target: Array | np.ndarray) -> float:
    """⟨K, T⟩/(‖K‖‖T‖) with T = Σ_o t_o t_oᵀ for a target t (m,) or (m, O): 1 where K sees
    the target alone."""
    target = np.asarray(target, float).reshape(len(target), -1)
    kernel = np.asarray(kernel, float)
    size = norm(kernel) * norm(target.T @ target)  # ‖Σ t_o t_oᵀ‖ = ‖(⟨t_o, t_p⟩)_op‖
    return float(np.sum(target * (kernel @ target)) / size) if size > 0 else float("nan")


def cka(h1: Array | np.ndarray, h2: Array | np.ndarray) -> float:
    """Linear centred kernel alignment of features (m, …) on the same rows: ⟨G1, G2⟩/(‖G1‖‖G2‖) of the centred
    Gram matrices. 1 for features that are the same up to rotation and scale."""
    grams = []
    for h in (h1, h2):
        flat = np.asarray(h).reshape(len(h), -1)
        flat = flat - flat.mean(0, dtype=float).astype(flat.dtype if flat.dtype.kind == "f" else float)
        grams.append((flat @ flat.T).astype(float))
    size = norm(grams[0]) * norm(grams[1])
    return float(np.sum(grams[0] * grams[1]) / size) if size > 0 else float("nan")


def are_classes(y: ArrayLike | None, f: np.ndarray) -> bool:
    """Whether y holds class numbers for the outputs f (m, O)."""
    y = np.asarray(y)
    return y.ndim == 1 and f.shape[1] > 1 and bool((y == np.round(y)).all())


def target_of(y: ArrayLike, f: np.ndarray) -> np.ndarray:
    """y of the shape of f (m, O); class numbers become unit vectors, less their mean."""
    values = finite("y", y)
    if are_classes(values, f):
        if len(values) != len(f) or values.min() < 0 or values.max() >= f.shape[1]:
            raise ValueError(
                f"y must hold one class number 0…{f.shape[1] - 1} for each of the {len(f)} rows, got shape "
                f"{values.shape} with values from {values.min()} to {values.max()}."
            )
        return np.eye(f.shape[1])[values.astype(int)] - 1 / f.shape[1]
    if values.size != f.size or len(values) != len(f):
        raise ValueError(
            f"y must have the shape of f(x), {f.shape[:1] if f.shape[1] == 1 else f.shape}, got "
            f"{values.shape}."
        )
    return values.reshape(f.shape).astype(float)
