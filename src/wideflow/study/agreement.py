"""Whether results say what their runs say: behind right hashes, numbers that somebody has changed."""

import json
import math
from typing import Any

from .._data import Data
from ..run import Run
from ..verdicts import REGIMES
from .build import Study
from .results import told

# Other machines sum in another order.
_ROUNDING = {"float64": 1e-9, "float32": 1e-4}
_NUMBER = int | float
_PROVENANCE = {
    "seed": int,
    "precision": str,
    "versions": dict,
    "device": str | None,
    "platform": str | None,
    "finished": str,
    "seconds": _NUMBER,
}
_REGIME = {"verdict": str, "reasons": list, "kernel": _NUMBER | None, "linearisation gap": _NUMBER | None}


def disagreement(saved: Data, study: Study, runs: dict[str, Run]) -> str | None:
    """The first field of saved results that is not what their runs tell, or None. The regimes are taken as
    they are, if they have their form: to measure them again would take a compilation for each width."""
    listed = saved["runs"]
    if len(listed) != len(study.cases) or not all(isinstance(row, dict) for row in listed):
        return "runs"
    for i, row in enumerate(listed):
        if "regime" not in row or not _is_regime(row["regime"]):
            return f"runs[{i}].regime"
        if not _is_list(row.get("warnings"), str):
            return f"runs[{i}].warnings"
    by_slug = {case.slug: row for case, row in zip(study.cases, listed, strict=True)}
    regimes = {slug: row["regime"] for slug, row in by_slug.items()}
    warned = {slug: row["warnings"] for slug, row in by_slug.items()}
    again = json.loads(json.dumps(told(study, runs, regimes, warned)))
    rest = {name: value for name, value in saved.items() if name not in ("hashes", "provenance")}
    tolerance = _ROUNDING[study.spec.precision]
    return _difference(again, rest, tolerance, "") or _provenance(saved["provenance"], study)


def _difference(one: Any, other: Any, tolerance: float, at: str) -> str | None:
    """Where two JSON data differ by more than rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        if set(one) != set(other):
            return f"{at}.{min(set(one) ^ set(other))}".lstrip(".")
        pairs = ((one[name], other[name], f"{at}.{name}".lstrip(".")) for name in one)
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return at
        pairs = ((a, b, f"{at}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True)))
    else:
        return None if _same(one, other, tolerance) else at
    return next((where for a, b, place in pairs if (where := _difference(a, b, tolerance, place))), None)


def _same(one: Any, other: Any, tolerance: float) -> bool:
    if type(one) is float and type(other) is float:
        close = math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-15)
        return close or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and one == other


def _is_regime(value: Any) -> bool:
    if value is None:
        return True
    return _has(value, _REGIME) and value["verdict"] in REGIMES and _is_list(value["reasons"], str)


def _provenance(value: Data, study: Study) -> str | None:
    if not _has(value, _PROVENANCE) or not all(isinstance(v, str) for v in value["versions"].values()):
        return "provenance"
    same = value["seed"] == study.spec.seed and value["precision"] == study.spec.precision
    return None if same and 0 <= value["seconds"] < math.inf else "provenance"


def _has(value: Any, fields: dict[str, Any]) -> bool:
    """Whether a JSON object has these fields and no others, each of its type."""
    if not isinstance(value, dict) or set(value) != set(fields):
        return False
    return all(isinstance(value[k], kind) and not isinstance(value[k], bool) for k, kind in fields.items())


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)
