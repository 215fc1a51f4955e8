"""The single runs that a list of dynamics stands for: one for each width, scale and seed."""

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array

from ..parametrisations import Parametrisation, named
from ..spec.dynamics import MOST_RUNS, Dynamics, Exponents
from ..spec.start import Start
from ..states.family import Family, is_family
from ..states.gridding import on_grid
from ..states.starts import Law, is_law
from ..states.state import AbstractState
from ..vocabulary.methods import Moves

_LONGEST = 60  # letters of a folder's name: systems take 255 bytes, and a letter has up to 4
_PARTICLES = {"mean_field": 1.0, "ntk": "sqrt(n)"}


@dataclass(frozen=True)
class Case:
    """One run: a method at one width n (None for infinitely many: a limit, or a density), scale and seed.

    `group` names all its seeds; of the scale, α is kept as it was written ("sqrt(n)" or a number)."""

    method: Dynamics
    where: str
    group: str
    width: int | None
    scale: float | str | None
    parametrisation: str | Parametrisation | None
    seed: int

    @property
    def label(self) -> str:
        """The name of this run, seed and all."""
        several = self.method.repeats > 1
        return f"{self.group}, seed {self.seed}" if several else self.group

    @property
    def slug(self) -> str:
        """A name for its folder: letters and digits of any script, short, and never one of the system's."""
        plain = self.label.replace("√", "sqrt").replace("α", "alpha").replace("=", "")
        safe = re.sub(r"[^\w.]+", "-", plain).strip("-.") or f"run-{self.where}"
        if len(safe) <= _LONGEST:
            return safe
        return f"{safe[: _LONGEST - 9]}-{hashlib.sha256(self.label.encode()).hexdigest()[:8]}"

    @property
    def key(self) -> Array:
        """Start and noise of seed i are those of `jax.random.key(seed + i)`."""
        return jax.random.key(self.seed)

    @property
    def is_limit(self) -> bool:
        """Whether it is the limit of infinitely many neurons."""
        return self.method.word.moves is Moves.LAW

    @property
    def neurons(self) -> int:
        """How many are moved: the width, or the cells of a grid."""
        if self.width is not None:
            return self.width
        box = self.method.box
        axes = 0 if box is None else max(len(box.low), len(box.high), len(box.cells))
        return math.prod(axes * box.cells if len(box.cells) == 1 else box.cells) if box is not None else 0

    @property
    def linearised(self) -> bool:
        return bool(getattr(self.method, "linearised", False)) or self.method.word.frozen

    @property
    def noisy(self) -> bool:
        """Whether it has noise of a finite β."""
        beta = getattr(self.method, "beta", None)
        return beta is not None and beta != math.inf

    @property
    def alpha(self) -> float:
        """α as a number."""
        if self.scale == "sqrt(n)":
            return math.sqrt(self.width or math.inf)
        return 1.0 if self.scale is None else float(self.scale)

    @property
    def scaling(self) -> str:
        """The scale in words."""
        alpha = f"α = {'√n' if self.scale == 'sqrt(n)' else f'{self.alpha:g}'}"
        if self.parametrisation is None:
            return alpha
        by_name = isinstance(self.parametrisation, str)
        said = self.parametrisation if by_name else _exponents(self.parametrisation)
        return str(said) if self.scale is None else f"{said}, {alpha}"

    def state(self, start: Law | Family, spec: Start) -> AbstractState:
        """The network at time 0."""
        box = self.method.box
        if box is not None:
            return on_grid(start, box.low, box.high, box.cells, alpha=self.alpha)
        assert self.width is not None
        if is_law(start):
            return start.sample(self.key, self.width, self.alpha, mirrored=getattr(spec, "mirrored", False))
        scaling, optimiser = _scaling(self.parametrisation), _optimiser(self.method)
        centred = getattr(spec, "centred", False)
        return start.sample(
            self.key, self.width, scaling, alpha=self.alpha, centred=centred, optimiser=optimiser
        )


def most_runs(entries: Sequence[Dynamics]) -> tuple[str | int, ...]:
    """The field that makes most of the runs: the longest one of the entry with the most."""
    i = max(range(len(entries)), key=lambda i: entries[i].runs)
    return ("dynamics", i, max(entries[i].axes.items(), key=lambda axis: axis[1])[0])


def check_runs(entries: Sequence[Dynamics]) -> None:
    """Raise if a list of dynamics stands for more runs than one study may have."""
    runs = sum(entry.runs for entry in entries)
    if runs > MOST_RUNS:
        raise ValueError(
            f"{runs} runs are too many for one study: at most {MOST_RUNS}, counted over the widths, scales "
            "and seeds of all entries"
        )


def cases(method: Dynamics, where: str, start: Law | Family | None, seed: int) -> Iterator[Case]:
    """All runs of one entry of `dynamics`, which stands at `where` in the spec."""
    name = method.called
    if method.word.moves is Moves.LAW:
        yield Case(method, where, name, None, method.options()["alpha"], None, seed)
        return
    scales, several = _scales(method, is_law(start)), len(method.widths) > 1
    if is_family(start):
        for _, parametrisation in scales:
            named(_scaling(parametrisation), start.depth, _optimiser(method))
    for scale, parametrisation in scales:
        for n in method.widths:
            case = Case(method, where, name, n, scale, parametrisation, seed)
            told = [f"n = {n}"] if several else []
            told += [case.scaling] if len(scales) > 1 else []
            group = ", ".join([name, *told])
            for i in range(method.repeats):
                yield Case(method, where, group, n, scale, parametrisation, seed + i)


def _exponents(given: Any) -> str:
    rows = (f"{letter} = ({', '.join(f'{v:g}' for v in getattr(given, letter))})" for letter in "abc")
    return ", ".join(rows)


def _scaling(given: str | Parametrisation | None) -> str | Parametrisation:
    return "ntk" if given is None else given


def _optimiser(method: Dynamics) -> str:
    return "adam" if method.method == "adam" else "sgd"


def _scales(method: Any, particles: bool) -> list[tuple[Any, Any]]:
    """Pairs (α, parametrisation), each None where it was not given."""
    if getattr(method, "parametrisation", None) is None:
        return [(scale, None) for scale in method.alpha or [None]]
    if method.alpha is not None and particles:
        raise ValueError("give alpha or parametrisation, not both: neurons have α alone")
    listed = [_parametrisation(one) for one in method.parametrisation]
    if not particles:
        return [(scale, one) for scale in method.alpha or [None] for one in listed]
    for one in listed:
        if one not in _PARTICLES:
            given = repr(one) if isinstance(one, str) else "exponents"
            raise ValueError(
                f'neurons (start.kind = "particles") know the parametrisations {", ".join(_PARTICLES)}, got '
                f'{given}; with start.kind = "mlp" all of them can be had'
            )
    return [(_PARTICLES[one], None) for one in listed]  # type: ignore[index]


def _parametrisation(given: str | Exponents) -> str | Parametrisation:
    return (
        given if isinstance(given, str) else Parametrisation(tuple(given.a), tuple(given.b), tuple(given.c))
    )
