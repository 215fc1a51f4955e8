"""Random damage to runs, studies and records of reproductions: each is noticed with a file's name, or changes
nothing. Half of the damage has its hashes made right again.

An edit that makes another whole run or record out of one, with all hashes right, *is* another one (see
`tests/store/test_schema.py`); here are those that break what belongs together."""

import copy
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from reliability.targets import Claims, Store, Study, Target, made
from store.edits import edited, variants
from wideflow.store import folder

# What a run, a study or a record tells in its own words: no part of its numbers, and of no form.
_FREE = ("info", "provenance", "fingerprint", "message", "versions", "warnings", "reasons")
_REGIME = ("kernel", "linearisation gap")  # to measure them again would take a compilation
_RECORD = ("seconds", "version", "date")


def attack(count: int, seed: int) -> dict[str, int]:
    """Damage `count` times: how often it was noticed with a file's name, harmless (the same numbers), silent
    (others), or another error."""
    draw, counts = random.Random(seed), dict.fromkeys(("noticed", "harmless", "silent", "wrong"), 0)
    with tempfile.TemporaryDirectory() as path, jax.enable_x64(True):
        targets = made(Path(path))
        expected = [target.opened() for target in targets]
        for i in range(count):
            which = draw.choices(range(3), (4, 2, 4))[0]
            target = targets[which]
            what, touched = (_resealed if i % 2 else _damaged)(target, draw)
            outcome = _outcome(target, expected[which], touched)
            counts[outcome] += 1
            if outcome in ("silent", "wrong"):
                print(f"{outcome}: {type(target).__name__} {what} {touched}", file=sys.stderr)
            target.restore()
        assert [target.opened() for target in targets] == expected  # nothing of it was left
    return {"damages": count} | counts


def _outcome(target: Target, expected: list, touched: list[str]) -> str:
    names = {part for name in touched for part in (Path(name).name, Path(name).parent.name)} - {""}
    try:
        same = target.opened() == expected
    except (ValueError, FileNotFoundError) as error:  # what the command turns into code 2
        text = str(error)
        ours = "Error" in type(error).__name__ and type(error).__module__.startswith("wideflow")
        told = (ours or isinstance(error, FileNotFoundError)) and any(name in text for name in names)
        if not told:
            print(f"{type(error)}: {text}", file=sys.stderr)
        return "noticed" if told else "wrong"
    except Exception as error:
        print(f"{type(error)}: {error}", file=sys.stderr)
        return "wrong"
    return "harmless" if same else "silent"


def _damaged(target: Target, draw: random.Random) -> tuple[str, list[str]]:
    """Damage with the hashes as they were."""
    name = draw.choice(sorted(target.original))
    path, content = target.root / name, bytearray(target.original[name])
    how = draw.choice(sorted(_KINDS))
    other = draw.choice([n for n in sorted(target.original) if n != name])
    _KINDS[how](path, content, target.root / other, draw)
    return how, [name, other] if how == "swap" else [name]


def _flip(path: Path, content: bytearray, other: Path, draw: random.Random) -> None:
    for _ in range(draw.choice((1, 1, 3))):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def _digit(path: Path, content: bytearray, other: Path, draw: random.Random) -> None:
    digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57] or [0]
    i = draw.choice(digits)
    content[i] = 48 + (content[i] - 47) % 10
    path.write_bytes(content)


def _swap(path: Path, content: bytearray, other: Path, draw: random.Random) -> None:
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def _replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def _link(path: Path, content: bytearray, other: Path, draw: random.Random) -> None:
    """To the very same content, but outside of the folder."""
    outside = Path(tempfile.gettempdir()) / f"outside-{os.getpid()}"
    outside.write_bytes(content)
    _replaced(path, lambda p: p.symlink_to(outside))


def _remove_folder(path: Path, content: bytearray, other: Path, draw: random.Random) -> None:
    if path.parent.parent.name == "runs":
        shutil.rmtree(path.parent)
    else:
        path.unlink()


_KINDS: dict[str, Callable] = {
    "flip": _flip,
    "digit": _digit,
    "swap": _swap,
    "link": _link,
    "remove": _remove_folder,
    "delete": lambda path, content, other, draw: path.unlink(),
    "cut": lambda path, content, other, draw: path.write_bytes(content[: draw.randrange(len(content))]),
    "append": lambda path, content, other, draw: path.write_bytes(content + draw.randbytes(3)),
    "zeros": lambda path, content, other, draw: path.write_bytes(bytes(len(content))),
    "not utf-8": lambda path, content, other, draw: path.write_bytes(b"\xff\xfe" + content),
    "folder": lambda path, content, other, draw: _replaced(path, Path.mkdir),
    "pipe": lambda path, content, other, draw: _replaced(path, os.mkfifo),
}


def _resealed(target: Target, draw: random.Random) -> tuple[str, list[str]]:
    """An edit of JSON or of arrays that breaks what belongs together, with all hashes right again."""
    choices = [n for n in sorted(target.original) if n.endswith((".json", ".npz")) and "carry" not in n]
    name = draw.choice(choices)
    path = target.root / name
    if name.endswith(".npz"):
        what = _rewritten(path, draw)
    elif isinstance(target, Claims):
        what = _edited_record(path, draw)
    elif isinstance(target, Study) and path.name == "results.json":
        what = _edited_json(path, draw, json.loads(path.read_bytes()))
    else:
        what = _edited_json(path, draw, folder.read(path.parent))
    target.reseal(name)
    touched = [name, str(Path(name).with_name(folder.MANIFEST))]
    return what, touched if isinstance(target, Store) else [*touched, "study/results.json"]


def _edited_json(path: Path, draw: random.Random, data: dict) -> str:
    """A number of another size, or a value of another kind."""
    while True:
        if path.name == "results.json" and draw.random() < 0.5:
            changed, what = _other_number(data, draw)
        else:
            changed, what = edited(data, draw)
        if not (set(what) & set(_FREE)) and what[-1] not in _REGIME and what[1] != "hashes":
            path.write_text(json.dumps(changed))
            return str(what)


def _other_number(data: dict, draw: random.Random) -> tuple[dict, tuple]:
    data = copy.deepcopy(data)
    every = [p for p in _numbers(data) if not set(p) & {*_FREE, *_REGIME}]
    *before, last = draw.choice(every)
    inside = data
    for key in before:
        inside = inside[key]
    inside[last] = inside[last] * 1.001 + 1e-3 if type(inside[last]) is float else inside[last] + 1
    return data, ("number", *before, last)


def _numbers(data: object, at: tuple = ()) -> list[tuple]:
    if type(data) in (int, float):
        return [at]
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, value in items for place in _numbers(value, (*at, key))]


def _edited_record(path: Path, draw: random.Random) -> str:
    """A figure that turns a verdict, or a value of another kind."""
    data = json.loads(path.read_bytes())
    if draw.random() < 0.5:
        check = draw.choice(data["checks"])
        check["measured"] = 1.5 if check["measured"] < 1 else 0.5
        if check["high"] is not None:
            check["measured"] = 7.0
        path.write_text(json.dumps(data))
        return "measured"
    while True:
        changed, what = edited(data, draw)
        if not set(what) & {*_FREE, *_RECORD}:
            path.write_text(json.dumps(changed))
            return str(what)


def _rewritten(path: Path, draw: random.Random) -> str:
    """Arrays that are not those that the manifest lists, or no numbers."""
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    key = draw.choice(sorted(arrays))
    how, changed = draw.choice(list(variants(arrays, key, draw)))
    if how == "nan" and not key.startswith(("t", "observed/risk", "state", "parts", "theta")):
        how, changed = "removed", {name: value for name, value in arrays.items() if name != key}
    entry = folder.put(path.parent / "new", "x", changed)
    shutil.move(path.parent / "new" / entry["file"], path)
    (path.parent / "new").rmdir()
    return f"{how} {key}"
