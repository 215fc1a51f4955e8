"""Changed functions: none may be taken for the old one, and one that only looks different for another.

Every kind of the tables in `tests/store` is tried, and functions of our own sources, changed in one place at
random: `make reliability ATTACKS=functions` prints the counts."""

import ast
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import wideflow
from store import changes
from store.alike import PAIRS, READABLE
from store.outside import OUTSIDE
from store.ways import WAYS
from wideflow.store.fingerprints import fingerprint

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def attack(count: int, seed: int) -> dict[str, int]:
    """Counts over all kinds, and over `count` functions changed at random."""
    counts = Counter(
        dict.fromkeys(("taken for another", "same, but not recognised", "readable, but refused"), 0)
    )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that are tried
        for way in changes.possible(WAYS | OUTSIDE):
            counts["kinds"] += 1
            counts[_tried(way, Path(folder))] += 1
        for way in changes.possible(READABLE):
            refused = changes.mark(way, 3, Path(folder)) == "refused"
            counts["readable, but refused" if refused else "readable and read"] += 1
        for pair in PAIRS:
            if changes.is_possible(f"{pair}, 1"):
                one, other = (changes.mark(f"{pair}, {i}", 3, Path(folder)) for i in (0, 1))
                counts[_same(one, other)] += 1
    counts.update(_mutated(count, random.Random(seed)))
    return dict(counts)


def _tried(way: str, folder: Path) -> str:
    """What becomes of an observer with another number in it. The same one from another folder is the same."""
    one, other, again = (changes.mark(way, v, folder / str(i)) for i, v in enumerate((3, 5, 3)))
    if (one == "refused") != changes.must_be_refused(way):
        return "readable, but refused" if one == "refused" else "taken for another"
    if one == other == again == "refused":
        return "refused"
    if one == other:
        return "taken for another"
    return "told apart" if one == again else "same, but not recognised"


def _same(one: str, other: str) -> str:
    return "same and recognised" if one == other != "refused" else "same, but not recognised"


def _mutated(count: int, random: random.Random) -> Counter:
    """Functions of our own sources, each written anew by `ast.unparse` (the same) and with one number,
    operator or comparison changed (another one)."""
    counts: Counter = Counter()
    functions = list(_functions())
    for text, function in random.choices(functions, k=count):
        mutant = ast.parse(ast.unparse(function))
        _change(random.choice(list(_places(mutant))), random)
        before, written, changed = (
            _mark(code) for code in (text, ast.unparse(function), ast.unparse(mutant))
        )
        counts["mutants told apart" if before != changed else "taken for another"] += 1
        counts["rewritten and recognised" if before == written else "same, but not recognised"] += 1
    return counts


def _functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """The source and tree of every function that has something to change."""
    for file in sorted(Path(wideflow.__file__).parent.rglob("*.py")):
        text = file.read_text("utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and any(_places(node)):
                lines = text.splitlines()[_first(node) - 1 : node.end_lineno]
                yield "\n".join(lines), node


def _first(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _places(tree: ast.AST) -> Iterator[ast.AST]:
    """Numbers, operators and comparisons: not in annotations, which are not computed with."""
    for node in ast.iter_child_nodes(tree):
        annotations = (getattr(tree, "annotation", None), getattr(tree, "returns", None))
        if node in annotations:
            continue
        number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        if number or isinstance(node, (*_OPERATORS, *_COMPARISONS)):
            yield tree if not number else node
        yield from _places(node)


def _change(node: ast.AST, random: random.Random) -> None:
    if isinstance(node, ast.Constant):
        other = node.value + random.choice([1, -1, 0.5, 1000])
        node.value = other if other != node.value else node.value / 2  # 1e30 + 1 is 1e30
    elif isinstance(node, ast.Compare):
        i = random.choice([i for i, op in enumerate(node.ops) if isinstance(op, _COMPARISONS)])
        node.ops[i] = random.choice([op for op in _COMPARISONS if not isinstance(node.ops[i], op)])()
    else:
        node.op = random.choice([op for op in _OPERATORS if not isinstance(node.op, op)])()


def _mark(text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SyntaxWarning: what is changed at random need not make sense
        return fingerprint(compile(text, "<text>", "exec", dont_inherit=True))
