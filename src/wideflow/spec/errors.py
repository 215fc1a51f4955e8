"""What is wrong with a spec: every mistake at once, each with its place, one per line as compilers print
them."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST = 50  # mistakes that are told


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong.

    `where` is the field as `--set` names it (`dynamics.sgd.step`), empty where there is none, as in a file
    that is not TOML. `line` is that of the file, None where nothing was written. `source` is the file, or
    the change that brought the mistake (`--set dynamics.sgd.step=0`)."""

    where: str
    line: int | None
    message: str
    source: str = "spec.toml"

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        already_named = f"{self.source}=".startswith(f"--set {self.where}=")
        parts = [place, *([self.where] if self.where and not already_named else []), self.message]
        text = ": ".join(parts).replace("\n", "\\n").replace("\r", "\\r")
        return text.encode("utf-8", "replace").decode()  # a command line may hold bytes that are not text


class SpecError(ValueError):
    """A spec that cannot be run. `mistakes` holds what was found, in the order of the lines: all of it, or so
    many that nobody reads further, and then `more` counts the others."""

    def __init__(self, mistakes: Iterable[Mistake], more: int = 0):
        listed = sorted(mistakes, key=lambda mistake: mistake.line or 0)
        self.mistakes, self.more = listed[:MOST], more + len(listed[MOST:])
        rest = [f"and {self.more:,} more"] if self.more else []
        super().__init__("\n".join([*map(str, self.mistakes), *rest]))
