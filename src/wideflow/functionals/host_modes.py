"""The risk by modes in NumPy: for single looks at states of many sizes, each of which would compile."""

import math
from typing import Any

import jax
import numpy as np
from jaxtyping import Float


def _signals(way: Any, state: Any, terms: int | None) -> list[Float[np.ndarray, "n m"]]:
    """(y − f)_{n,m} of each parity, as `functionals/modes.py` has it, by the first `terms` of the series."""
    s, r = state.parts.w * way.scale[:, None]
    rho = np.hypot(s, r)
    top = way.reach / math.sqrt(way.kappa + way.reach**2)
    chi = np.arccos(np.minimum(rho / np.sqrt(way.kappa + rho**2) / top, 1.0))
    theta = np.arctan2(r, s)
    mass = state.alpha * state.weights * (1.0 if state.parts.a is None else state.parts.a)
    found = []
    for parity in way.parities:
        waves = lambda size, angle, first=parity.first: np.cos(np.outer(first + 2 * np.arange(size), angle))
        series = parity.series[:, :terms]
        moments = (waves(series.shape[1], chi) * mass) @ waves(parity.turns.shape[2], theta).T
        signal = -np.einsum("nk,nmk->nm", series @ moments, parity.turns)
        signal[:, 0] += parity.y
        found.append(signal)
    return found


def host_risk(way: Any, state: Any) -> float:
    """½Σ(y − f)²_{n,m} and what is beyond the modes."""
    return host_risks(way, state)[0]


def host_risks(way: Any, state: Any) -> tuple[float, float, float]:
    """The risk, that of two thirds of the degrees and of the series, and the size of what it is a sum of."""
    here, at = jax.device_get((way, state))
    beyond = float(here.rest) + 0.5 * float(here.problem.noise) ** 2
    degree, terms = 2 * (int(here.degree) // 3), int(here.order) // 3  # each parity has half of the terms
    risk = coarse = size = 0.0
    both = (_signals(here, at, None), _signals(here, at, terms))
    for parity, signal, short in zip(here.parities, *both, strict=True):
        kept = parity.first + 2 * np.arange(len(signal)) < degree
        risk += 0.5 * float(np.sum(signal**2))
        coarse += 0.5 * float(np.sum(short[kept] ** 2) + np.sum(parity.y[~kept] ** 2))
        size += float(np.sum(parity.y**2) + np.sum(signal**2))
    return beyond + risk, beyond + coarse, size + float(here.rest)
