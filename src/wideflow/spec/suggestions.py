"""The nearest known word to a misspelt one.

Nearness is the Damerau–Levenshtein distance: the least number of letters put in, left out, replaced, or
exchanged with their neighbour. Ties go to words not used yet, then to the longer common beginning.
"""

from collections.abc import Collection, Iterable


def distance(a: str, b: str) -> int:
    """Edits from `a` to `b` (no letter edited twice)."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def nearest(text: str, known: Iterable[str], used: Collection[str] = ()) -> str | None:
    """The word of `known` that was meant by `given`, or None if none is near: at most a third of the letters
    may be wrong, and one always. Capitals and - for _ do not count."""
    plain = _plain(text)
    allowed = max(1, len(plain) // 3)
    ranked = sorted(
        (distance(plain, other), word in used, -_common(plain, other), place, word)
        for place, word in enumerate(known)
        if abs(len(plain) - len(other := _plain(word))) <= allowed  # at least as many edits are needed
    )
    return ranked[0][-1] if ranked and ranked[0][0] <= allowed else None


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").strip()


def _common(a: str, b: str) -> int:
    """Length of the common beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
