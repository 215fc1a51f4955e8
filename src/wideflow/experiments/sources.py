"""The text that an experiment's figures depend on: its file, and all of the package that it imports."""

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def text_hash(module: str, package: Path = _PACKAGE) -> str:
    """Hash of `experiments/{module}.py` and of all that it imports from the package, from file to file."""
    digest = hashlib.sha256()
    for path in sorted(_reached(package / "experiments" / f"{module}.py", package)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _reached(start: Path, package: Path) -> set[Path]:
    reached, waiting = {start}, [start]
    while waiting:
        new = _imported(waiting.pop(), package) - reached
        reached |= new
        waiting.extend(new)
    return reached


def _imported(path: Path, package: Path) -> frozenset[Path]:
    return _parsed(path, path.stat().st_mtime_ns, package)


@functools.cache
def _parsed(path: Path, changed: int, package: Path) -> frozenset[Path]:
    """The files of the package that one of its files imports, inside its functions too."""
    files: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            for target in _targets(node, path, package):
                folders = [p for p in (target, *target.parents) if p == package or package in p.parents]
                files.update((target.with_suffix(".py"), *(folder / "__init__.py" for folder in folders)))
    return frozenset(file for file in files if file.is_file() and package in file.parents)


def _targets(node: ast.ImportFrom, path: Path, package: Path) -> Iterator[Path]:
    """What may be meant by `from module import name`: a module, a folder, or a module in the folder."""
    names = (node.module or "").split(".") if node.module else []
    if node.level == 0 and names[:1] != [package.name]:
        return
    base = path.parents[node.level - 1] if node.level else package.parent
    target = base.joinpath(*names)
    yield target
    yield from (target / alias.name for alias in node.names)
