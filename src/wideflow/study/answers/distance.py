"""How far is the network from its limit?"""

import numpy as np

from ...diagnostics.scaling import fit_slope
from ...page.numbers import estimate, plus_minus, short
from .base import Answer, Row, network, picked, sentence

_LIMIT = ("limit", "the infinite-width limit")
_FROZEN = ("frozen kernel", "its own frozen kernel, the lazy limit")


def distance(rows: list[Row]) -> Answer:
    """Gaps to the mean-field limit where there is one of the same scale, else to the frozen kernel."""
    for which, told in (_LIMIT, _FROZEN):
        measured = [row for row in rows if _measured(row, which)]
        if measured:
            return _answer(measured, which, told)
    return Answer(
        'There is no limit to compare with: add an entry with method = "limit", or linearised = true, to '
        "`dynamics`, at the scale of the networks."
    )


def _measured(row: Row, which: str) -> bool:
    gap, alike = row[f"risk gap to {which}"], which != "limit" or row["same scale as limit"]
    return bool(gap and alike and row["width"] is not None and not row["linearised"])


def _answer(rows: list[Row], which: str, told: str) -> Answer:
    best = min(rows, key=lambda row: row[f"risk gap to {which}"]["value"])
    lead = f"{network(best)} stays within {estimate(best[f'risk gap to {which}'], 2)} of {told} in risk"
    if gap := best[f"function gap to {which}"]:
        lead += f", and ends {estimate(gap, 2)} from it in f (root mean square)"
    family = [row for row in rows if _sweep(row) == _sweep(best)]
    lead += _trend(sorted(family, key=lambda row: row["width"]), which)
    chosen, more = picked(rows)
    points = []
    for row in chosen:
        at_end = row[f"function gap to {which}"]
        f = f", f ends {estimate(at_end, 2)} from it" if at_end else ""
        points.append(f"{network(row)}: risk within {estimate(row[f'risk gap to {which}'], 2)}{f}.")
    return Answer(sentence(lead), (*points, *([more] if more else [])))


def _sweep(row: Row) -> tuple[str, str]:
    return row["method name"], row["scaling"]


def _trend(family: list[Row], which: str) -> str:
    """How the gap falls with the width: a power law with its error, or a ratio."""
    gaps = [(row["width"], row[f"function gap to {which}"] or row[f"risk gap to {which}"]) for row in family]
    gaps = [(n, gap) for n, gap in gaps if gap["value"] > 0]
    if len(gaps) >= 3 and all(gap["error"] for _, gap in gaps):
        rows = [(n, gap["value"], gap["error"]) for n, gap in gaps]
        n, value, error = (np.array(column, float) for column in zip(*rows, strict=True))
        pooled = value * np.sqrt(np.mean((error / value) ** 2))  # a few seeds know their own spread too badly
        slope = fit_slope(n, value, pooled)
        return f"; the gap goes with the width as n^({plus_minus(slope.value, slope.error)})"
    if len(gaps) < 2:
        return ""
    (small, far), (large, near) = gaps[0], gaps[-1]
    ratio = far["value"] / near["value"]
    return f"; at n = {large} the gap is {short(1 / ratio, 2)} of that at n = {small}"
