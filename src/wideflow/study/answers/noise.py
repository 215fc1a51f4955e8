"""What does the noise cost?"""

import math

from ...page.numbers import plus_minus, short
from .base import Answer, Row, listed, picked, sentence, value


def noise(rows: list[Row]) -> Answer:
    """Risks where they have settled, at every temperature, against that without noise (or the coldest)."""
    known = [row for row in rows if row["temperature"] is not None and row["settled"]["risk"]]
    hot = sorted((row for row in known if row["temperature"] > 0), key=lambda row: -row["temperature"])
    if not hot:
        return Answer("There is no noise to weigh: no dynamics with a finite beta came to its end.")
    if len(known) < 2:
        only = f"{_at(hot[0])} the risk settles at {value(hot[0]['settled']['risk'])}"
        return Answer(sentence(f"{only}; there is no run without noise to compare it with"))
    cold = min(known, key=lambda row: row["temperature"])
    others = [row for row in hot if row is not cold]
    steps = [f"to {_risk(row)} {_at(row)} ({_extra(row, cold, 'risk')})" for row in others[:2]]
    lead = f"noise raises the risk from {_risk(cold)} {_at(cold)} {listed(steps)}"
    told, more = picked(others)
    points = [point for row in told if (point := _regularised(row, cold))]
    return Answer(sentence(lead), (*points, *([more] if more else [])))


def _risk(row: Row) -> str:
    return value(row["settled"]["risk"])


def _at(row: Row) -> str:
    return f"at β = {short(1 / row['temperature'])}" if row["temperature"] else "without noise"


def _extra(row: Row, cold: Row, name: str) -> str:
    one, other = row["settled"][name], cold["settled"][name]
    error = math.hypot(one["error"], other["error"])
    more = one["value"] - other["value"]
    return f"{plus_minus(abs(more), error)} {'more' if more >= 0 else 'less'}"


def _regularised(row: Row, cold: Row) -> str:
    """R_λ beside what equipartition gives: D coordinates of a neuron in a well cost D/(2β)."""
    if not (row["settled"]["energy"] and cold["settled"]["energy"]):
        return f"{row['name']}: the risk is {_extra(row, cold, 'risk')} than {_at(cold)}."
    share = row["coordinates"] * (row["temperature"] - cold["temperature"]) / 2
    more = _extra(row, cold, "energy")
    return (
        f"{row['name']}: R_λ settles at {value(row['settled']['energy'])}, {more} than "
        f"{_at(cold)}; at equilibrium in a quadratic well it would be D/(2β) = {short(share)} more, "
        f"D = {row['coordinates']} being the coordinates of a neuron."
    )
