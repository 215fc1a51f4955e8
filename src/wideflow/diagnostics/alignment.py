"""How two arrays, two sets of features, or a kernel and a target lie to each other."""

from typing import Any

import numpy as np


def rms(values: Any) -> float:
    """√(mean of squares)."""
    values = np.asarray(values, float)
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def relative_movement(before: Any, after: Any) -> float:
    """‖after − before‖/‖before‖; inf for what starts at 0 and moves."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    moved, size = np.linalg.norm(after - before), np.linalg.norm(before)
    if size == 0:
        return 0.0 if moved == 0 else float("inf")
    return float(moved / size)


def alignment(kernel: Any, target: Any) -> float:
    """⟨K, T⟩/(‖K‖‖T‖) with T = Σ_o t_o t_oᵀ for a target t (m,) or (m, O): 1 where K sees
    the target alone."""
    target = np.asarray(target, float).reshape(len(target), -1)
    kernel, outer = np.asarray(kernel, float), target @ target.T
    size = np.linalg.norm(kernel) * np.linalg.norm(outer)
    return float(np.sum(kernel * outer) / size) if size > 0 else float("nan")


def cka(h1: Any, h2: Any) -> float:
    """Linear centred kernel alignment of features (m, …) on the same rows: ⟨G1, G2⟩/(‖G1‖‖G2‖) of the centred
    Gram matrices. 1 for features that are the same up to rotation and scale."""
    grams = []
    for h in (h1, h2):
        flat = np.asarray(h, float).reshape(len(h), -1)
        flat = flat - flat.mean(0)
        grams.append(flat @ flat.T)
    size = np.linalg.norm(grams[0]) * np.linalg.norm(grams[1])
    return float(np.sum(grams[0] * grams[1]) / size) if size > 0 else float("nan")
