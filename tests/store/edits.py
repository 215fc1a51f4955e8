"""Edits of manifests and arrays that break what belongs together."""

import copy

import numpy as np

OTHER = [
    None,
    True,
    -1,
    10**30,
    1.5,
    "",
    "nan",
    "x" * 40,
    [],
    {},
    [1],
    {"list": []},
    {"number": "nan"},
    {"a": 1},
]


def places(data, at=()):
    """Every place in JSON data."""
    yield at
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*at, key))


def of_another_kind(value, draw):
    """Something else in the place of a value: never of its type, which could be right."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = lambda v: type(v) is type(value) or (number and isinstance(v, int | float))
    return copy.deepcopy(draw.choice([v for v in OTHER if not fits(v)]))


def edited(record, draw):
    """One edit of a manifest: a value replaced, removed, renamed, doubled."""
    record = copy.deepcopy(record)
    *before, last = draw.choice([p for p in places(record) if p and not free(p)])
    inside = record
    for key in before:
        inside = inside[key]
    how = draw.choice(["replace", "replace", "remove", "rename", "double"])
    if how == "replace" or (isinstance(inside, list) and how == "rename"):
        inside[last] = of_another_kind(inside[last], draw)
    elif how == "remove":
        del inside[last]
    elif how == "rename":
        inside[f"{last}x"] = inside.pop(last)
    elif isinstance(inside, list):
        inside.insert(last, copy.deepcopy(inside[last]))
    else:
        inside["more"] = copy.deepcopy(inside[last])
    return record, (how, *before, last)


def free(place):
    """What a run tells in its own words, and whose it is: no part of its numbers."""
    return place[0] in ("info", "provenance", "fingerprint", "message")


def with_nan(value, draw):
    out = np.array(value, copy=True)
    out.reshape(-1)[draw.randrange(out.size)] = draw.choice([np.nan, np.inf])
    return out


ARRAY_EDITS = {
    "float32": lambda v, draw: v.astype(np.float32 if v.dtype != np.float32 else np.float64),
    "complex": lambda v, draw: v.astype(complex),
    "whole": lambda v, draw: v.astype(np.int8) if v.dtype != np.int8 else v.astype(np.int16),
    "swapped bytes": lambda v, draw: v.astype(v.dtype.newbyteorder()),
    "one more axis": lambda v, draw: v[None],
    "flat": lambda v, draw: np.append(v.ravel(), 0).astype(v.dtype),
    "shorter": lambda v, draw: v[:-1] if v.ndim else np.zeros((0,), v.dtype),
    "empty": lambda v, draw: np.zeros((0,), v.dtype),
    "nan": with_nan,
}


def variants(arrays, key, draw):
    """The arrays with one of them edited in every way."""
    floating = arrays[key].dtype.kind == "f"
    edits = {name: fn for name, fn in ARRAY_EDITS.items() if name != "nan" or floating}
    yield from ((name, arrays | {key: fn(arrays[key], draw)}) for name, fn in edits.items())
    yield "removed", {k: v for k, v in arrays.items() if k != key}
    yield "renamed", {f"{k}x" if k == key else k: v for k, v in arrays.items()}
    yield "doubled", arrays | {f"{key}x": arrays[key]}
