"""Outputs and hidden layers of a model on all of its rows, before and after training, in one pass each."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..alignment import cka
from .model import AbstractModel, pieces

_AT_ONCE = 2**16


@dataclass(frozen=True)
class FeatureMove:
    """Of one hidden layer: rms over rows and units of Δh = h_t − h_0 and of h_0, their ratio, the rms of h_t,
    and the alignment (linear CKA) of h_0 with h_t."""

    dh: float
    h0: float
    ht: float
    relative: float
    cka: float


class Seen(NamedTuple):
    """f before and after (m, O), what moved in hidden layers (None where they are not known), and the seconds
    that a pass over all rows took."""

    f0: np.ndarray
    ft: np.ndarray
    features: dict[str, FeatureMove] | None
    seconds: float


def seen(model: AbstractModel, chosen: np.ndarray) -> Seen:
    """Of all rows, some at a time; CKA is that of the chosen ones."""
    outputs: tuple[list, list] = ([], [])
    sums: dict[str, np.ndarray] = {}
    kept: tuple[dict[str, list], dict[str, list]] = ({}, {})
    seconds = 0.0
    for rows in pieces(np.arange(model.m)):
        f0, before = model.seen(0, rows)
        begun = time.perf_counter()
        ft, after = model.seen(1, rows)
        seconds += time.perf_counter() - begun
        outputs[0].append(f0)
        outputs[1].append(ft)
        here = np.flatnonzero(np.isin(rows, chosen))
        for name, h0 in (before or {}).items():
            ht = (after or {})[name]
            for of, h in zip(kept, (h0, ht), strict=True):
                of.setdefault(name, []).append(h if len(here) == len(h) else h[here])
            sums[name] = sums.get(name, 0) + _squares(np.ravel(h0), np.ravel(ht))
    joined = lambda parts: parts[0] if len(parts) == 1 else np.concatenate(parts)
    cka_of = lambda name: cka(*(joined(of[name]) for of in kept))
    features = {name: _moved(squares, cka_of(name)) for name, squares in sums.items()}
    f0, ft = (np.concatenate(f) for f in outputs)
    return Seen(f0, ft, features or None, seconds)


def _squares(h0: np.ndarray, ht: np.ndarray) -> np.ndarray:
    """Of Δh, h_0 and h_t Σ v², and how many there are; as many at a time as stay in cache."""
    sums = np.zeros(3)
    for i in range(0, h0.size, _AT_ONCE):
        one, other = h0[i : i + _AT_ONCE], ht[i : i + _AT_ONCE]
        sums += [np.dot(v, v) for v in (other - one, one, other)]
    return np.array([*sums, h0.size])


def _moved(squares: np.ndarray, aligned: float) -> FeatureMove:
    dh, h0, ht = np.sqrt(squares[:3] / max(squares[3], 1))
    relative = dh / h0 if h0 > 0 else (0.0 if dh == 0 else np.inf)
    return FeatureMove(float(dh), float(h0), float(ht), float(relative), aligned)
