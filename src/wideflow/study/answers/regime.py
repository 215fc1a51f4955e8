"""Is the network lazy, or does it learn features?"""

from ...page.numbers import estimate, short
from ...verdicts import FEATURES, LAZY, REGIMES, TRIVIAL, UNDECIDED, UNSTABLE
from ...vocabulary.methods import METHODS
from .base import Answer, Row, between, network, percent, picked, sentence

_ORDER = (FEATURES, LAZY, TRIVIAL, UNSTABLE, UNDECIDED)


def regime(rows: list[Row]) -> Answer:
    """The widest network of each method and scale, by what it did."""
    judged = widest(rows)
    if not judged:
        return Answer("There is no verdict: the states of these runs have no kernel to judge by.")
    clauses = []
    for word in _ORDER:
        mine = [row for row in judged if row["verdict"] == word]
        if len(mine) == 1:
            clauses.append(f"{network(mine[0])} {REGIMES[word].phrase}{_kernel(mine[0])}")
        elif mine:
            every = "all" if len(mine) == len(judged) else f"{len(mine)} of"
            clauses.append(f"{every} {len(judged)} networks {REGIMES[word].plural}{_kernels(mine)}")
    told, more = picked(judged)
    points = [sentence(_point(row)) for row in told]
    return Answer(sentence("; ".join(clauses)), (*points, *([more] if more else [])))


def widest(rows: list[Row]) -> list[Row]:
    """Of all widths of one method and scale with a verdict the largest, in the order of the spec."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row["verdict"] and row["width"] is not None:
            key = (row["method name"], row["scaling"])
            if key not in best or row["width"] > best[key]["width"]:
                best[key] = row
    return list(best.values())


def _kernel(row: Row) -> str:
    moved = row["kernel movement"]
    return f" (its kernel moved by {percent(moved)})" if moved else ""


def _kernels(rows: list[Row]) -> str:
    moved = [100 * row["kernel movement"]["value"] for row in rows if row["kernel movement"]]
    return f" (their kernels moved by {between(moved)} %)" if moved else ""


def _point(row: Row) -> str:
    """One network, with all that is known about it."""
    numbers = []
    if moved := row["kernel movement"]:
        numbers.append(f"its kernel moved by {percent(moved)}")
    gap = row["risk gap to limit"]
    if gap and row["same scale as limit"]:
        flows = METHODS[row["method"]].descends  # type: ignore[attr-defined]
        which = "the infinite-width limit" if flows else "the limit of plain gradient flow"
        numbers.append(f"its risk stays within {estimate(gap, 2)} of {which}")
    elif gap and row["risk"] and row["risk of limit"] is not None:
        ends, limit = estimate(row["risk"], 2), short(row["risk of limit"], 2)
        numbers.append(f"its risk ends at {ends}, that of the mean-field limit at {limit}")
    if gap := row["risk gap to frozen kernel"]:
        numbers.append(f"its risk stays within {estimate(gap, 2)} of that of its own frozen kernel")
    said = f"{network(row)} {REGIMES[row['verdict']].phrase}"
    return f"{said}: {', '.join(numbers)}" if numbers else said
