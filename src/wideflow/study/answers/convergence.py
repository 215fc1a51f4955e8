"""Do all starts come to the same free energy?"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...page.numbers import plus_minus, short
from ...verdicts import AGREE, AGREE_SHARE, AGREE_SIGMAS, DIFFER, RESOLVED_SHARE, UNDECIDED, Agreement
from .base import Answer, Row, picked, sentence, value

_QUANTITIES = {"free energy": "free energy F", "energy": "regularised risk R_λ", "risk": "risk R"}


class Comparison(NamedTuple):
    """Several starts of one dynamics: whether they agree, by how much they differ, and on which value."""

    word: Agreement
    mean: float
    error: float
    spread: float
    sigma: float
    share: float  # of the longest way that one of them came, which they differ by
    moving: int  # of them still on their way


def convergence(rows: list[Row]) -> Answer:
    """Starts of the same dynamics, compared where they have settled."""
    families = {key: members for key, members in _families(rows).items() if len(members) > 1}
    if not families:
        return Answer(
            "There is nothing to compare: no dynamics came to its end from two starts or more (give entries "
            "of `dynamics` a `start` of their own)."
        )
    clauses: list[str] = []
    points: list[str] = []
    ordered = sorted(families.values(), key=lambda members: -members[0]["temperature"])
    for members in ordered:
        clauses.append(_clause(members, _condition(members[0], ordered), bool(clauses)))
    told, more = picked(ordered[0])
    name = _QUANTITIES[_quantity(ordered[0])].split()[-1]
    for row in told:
        settled = row["settled"][_quantity(ordered[0])]
        points.append(f"{row['name']}: {name} settles at {value(settled)}.")
    rest = sum(map(len, ordered[1:]))
    points += [more] if more else []
    points += [f"{rest} runs of the other dynamics are in the table of results."] if rest else []
    if errors := [row["free energy error"] for row in ordered[0] if row["free energy error"]]:
        points.append(
            f"The entropy in F is estimated from nearest neighbours, to ± {short(max(errors), 2)} in F, in "
            "much the same way for all starts."
        )
    return Answer(sentence("; ".join(clauses)), tuple(points))


def compared(settled: Sequence[Row]) -> Comparison:
    """Whether values with errors are the same, as far as that matters on the longest way that one came."""
    way = max(one["way"] for one in settled)
    low, high = (pick(settled, key=lambda one: one["value"]) for pick in (min, max))
    spread, sigma = high["value"] - low["value"], math.hypot(low["error"], high["error"])
    small = spread <= AGREE_SHARE * way or spread <= AGREE_SIGMAS * sigma
    known = AGREE_SIGMAS * sigma <= RESOLVED_SHARE * way or spread == sigma == 0
    word: Agreement = DIFFER if not small else AGREE if known else UNDECIDED
    still = [abs(one["drift"]) > max(AGREE_SIGMAS * one["error"], AGREE_SHARE * way) for one in settled]
    mean = sum(one["value"] for one in settled) / len(settled)
    error = math.sqrt(sum(one["error"] ** 2 for one in settled)) / len(settled)
    share = spread / way if way else 0.0
    return Comparison(word, mean, error, spread, sigma, share, sum(still))


def _families(rows: list[Row]) -> dict[str, list[Row]]:
    """Groups that came to their end, by all that they share but the start."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        if row["status"] == "ok" and row["width"] is not None and row["settled"]["risk"]:
            families.setdefault(row["family"], []).append(row)
    return families


def _quantity(members: list[Row]) -> str:
    """The first of F, R_λ and R that all of them have."""
    return next(name for name in _QUANTITIES if all(row["settled"][name] for row in members))


def _condition(row: Row, families: list[list[Row]]) -> str:
    """What tells a family from the others: its noise, or the method, width and scale."""
    temperatures = [members[0]["temperature"] for members in families]
    noise = f"with noise (β = {short(1 / row['temperature'])})" if row["temperature"] else "without noise"
    if len(set(temperatures)) == len(temperatures) and len(temperatures) > 1:
        return noise
    if len(families) == 1:
        return noise if row["temperature"] else f"under {row['method'].replace('_', ' ')}"
    return f"for {row['method'].replace('_', ' ')}, n = {row['width']}, {row['scaling']}, {noise}"


def _clause(members: list[Row], condition: str, again: bool) -> str:
    quantity = _quantity(members)
    settled = [row["settled"][quantity] for row in members]
    comparison = compared(settled)
    name, count = _QUANTITIES[quantity], len(members)
    letter = name.split()[-1]
    who = "they" if again else f"the {count} starts"
    moving = f", {comparison.moving} of {count} still moving" if comparison.moving else ""
    if comparison.word == AGREE:
        ends = f"all {count} starts" if not again else "they all"
        share = f"{short(100 * comparison.share, 2)} % of the way they came"
        value_there = plus_minus(comparison.mean, comparison.error)
        return (
            f"{condition} {ends} end at the same {name}, {letter} = {value_there} "
            f"(largest difference {plus_minus(comparison.spread, comparison.sigma)}, {share}{moving})"
        )
    if comparison.word == UNDECIDED:
        return (
            f"{condition} it is not decided whether {who} end at the same {name}: they differ by up to "
            f"{plus_minus(comparison.spread, comparison.sigma)}{moving}"
        )
    values = [one["value"] for one in settled]
    return (
        f"{condition} {who} do not come to the same {name}: {letter} ends between {short(min(values))} and "
        f"{short(max(values))}{moving}"
    )
