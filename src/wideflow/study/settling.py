"""Where a group has settled: free energy, regularised risk and risk over the last quarter of its runs."""

import json
import math
from typing import Any

import numpy as np

from .build import Study
from .groups import Group, replicas

# What stands for F: recorded where it is known, estimated for particles; without noise it is R_λ itself.
_NOISY = ("free_energy", "free_energy_estimate")
_QUIET = ("free_energy", "energy", "risk")


def settled(study: Study, group: Group) -> dict[str, Any]:
    """What the answers on convergence and noise are made of."""
    heat = temperature(group.case.method)
    free = next((name for name in (_NOISY if heat else _QUIET) if _has(group, name)), None)
    error = group.settled("free_energy_error") if _has(group, "free_energy_error") else None
    coordinates = study.problem.D
    return {
        "temperature": heat,
        "family": _family(group),
        "coordinates": None if math.isinf(coordinates) else int(coordinates),
        "settled": {
            "free energy": None if free is None else _value(group, free),
            "energy": _value(group, "energy"),
            "risk": _value(group, "risk"),
        },
        "free energy error": None if error is None else error.value,
    }


def temperature(method: Any) -> float:
    """1/β: 0 for a method without noise; that at the end of a schedule."""
    beta = getattr(method, "beta", None)
    end = getattr(beta, "end", beta)
    return 0.0 if end is None or math.isinf(end) else 1.0 / float(end)


def _has(group: Group, name: str) -> bool:
    return bool(group.whole) and all(name in run for run in group.whole)


def _value(group: Group, name: str) -> dict[str, float] | None:
    """Value, error, drift, and the length of the way that the quantity came."""
    end = group.settled(name) if _has(group, name) else None
    if end is None:
        return None
    ways = [np.ptp(row[np.isfinite(row)]) for run in group.whole for row in replicas(run, name)]
    return {"value": end.value, "error": end.error, "drift": end.drift, "way": float(max(ways))}


def _family(group: Group) -> str:
    """All of the dynamics but its name, start and number of seeds."""
    shared = group.case.method.model_dump(mode="json", exclude={"name", "start", "seeds", "width", "alpha"})
    return json.dumps(shared | {"width": group.case.width, "scaling": group.case.scaling}, sort_keys=True)
