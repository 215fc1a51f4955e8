"""A spec as a study that can be run: every part built by the library, every objection kept with its field."""

import collections
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Array

from .._checks import fits
from .._checks import times as checked_times
from .._shown import shown
from ..dynamics.base import AbstractDynamics
from ..functionals.base import AbstractFunctional
from ..functionals.risk import Risk
from ..problems.problem import Problem
from ..spec.study import Spec
from ..states.family import Family, is_family
from ..states.starts import Law, is_law
from ..vocabulary.methods import Moves
from . import parts
from .cases import Case, cases, check_runs, most_runs
from .coordinates import Coordinates, coordinates
from .memory import kept
from .methods import dynamics
from .points import KERNEL, TEST, VERDICT, labelled, points

Place = tuple[str | int, ...]
_LONGEST = 400  # letters of an objection
_MOST_DIMENSIONS = 1_000_000


class NotBuiltError(ValueError):
    """The library's objections to a spec whose form is right: `found` are pairs (place, message)."""

    def __init__(self, found: list[tuple[Place, str]]):
        self.found = found
        super().__init__("\n".join(f"{'.'.join(map(str, place))}: {message}" for place, message in found))


_ROWS = 256  # points that a verdict is given on


@dataclass(frozen=True)
class Study:
    """What a spec stands for."""

    spec: Spec
    whole: Problem  # before its reduction, if it is reduced
    problem: Problem
    start: Law | Family
    risk: Risk
    penalty: AbstractFunctional | None
    ts: np.ndarray
    cases: tuple[Case, ...]
    coordinates: Coordinates | None
    own: dict[str, Law]  # starts of single entries of the dynamics, by where they stand

    def start_of(self, case: Case) -> Law | Family:
        """Where a case starts: its entry's own law, or that of the study."""
        return self.own.get(case.where, self.start)

    def state(self, case: Case) -> Any:
        """The network of a case at time 0."""
        return case.state(self.start_of(case), start_spec(self.spec, case.method))

    @cached_property
    def kernel_points(self) -> Array | None:
        """The points x that the kernel is watched on."""
        return points(self.whole, self.spec.observe.kernel, KERNEL)

    @cached_property
    def test_points(self) -> Array | None:
        """The points x that f is compared on."""
        return points(self.whole, self.spec.observe.test, TEST)

    @cached_property
    def verdict_points(self) -> tuple[Array, Array] | None:
        """The points (x, y) that a verdict is given on; None in d = ∞."""
        return labelled(self.whole, _ROWS, VERDICT)

    @property
    def cloud(self) -> tuple[str, str] | None:
        """The two coordinates that neurons are drawn at."""
        given = self.spec.observe.cloud
        if given is not None:
            return given[0], given[1]
        return None if self.coordinates is None else self.coordinates.default()

    @property
    def feature(self) -> str | None:
        """The coordinate whose distribution is drawn."""
        default = None if self.coordinates is None else self.coordinates.default()[0]
        return self.spec.observe.feature or default

    def dynamics(self, case: Case) -> AbstractDynamics:
        """The dynamics of a case that is not a limit."""
        return dynamics(case.method, descended(self.risk, self.penalty))


def start_spec(spec: Spec, method: Any) -> Any:
    """What the spec says of the start of an entry of its dynamics."""
    return spec.start if method.start is None else method.start


def descended(risk: Risk, penalty: AbstractFunctional | None) -> AbstractFunctional:
    """What is descended: the risk, and the penalty if there is one."""
    return risk if penalty is None else risk + penalty


class _Builder:
    """Builds parts one by one and keeps what goes wrong."""

    def __init__(self) -> None:
        self.found: list[tuple[Place, str]] = []

    def part(self, place: Place, make: Callable[..., Any], *given: Any) -> Any:
        """make(*given), or _MISSING, also where something that it needs is missing."""
        if any(value is _MISSING for value in given):
            return _MISSING
        try:
            return make(*given)
        except MemoryError as error:
            self.found.append((place, str(error) or "this does not fit into memory"))
        except Exception as error:  # whatever a constructor says to a user's numbers is the user's to read
            said = " ".join(str(error).split()) or type(error).__name__
            self.found.append((place, said if len(said) <= _LONGEST else f"{said[:_LONGEST]} …"))
        return _MISSING


_MISSING = object()


def build(spec: Spec, folder: Path) -> Study:
    """The study of a spec; data files are relative to `folder`. All objections come at once."""
    make = _Builder()
    given = spec.problem
    d = make.part(("problem", "x", "d"), _dimension, given.x)
    x = make.part(("problem", "x"), lambda law, _: parts.law_of_x(law, folder), given.x, d)
    target = make.part(("problem", "target"), parts.target, given.target)
    neuron = make.part(("problem", "neuron"), parts.neuron, given.neuron)
    loss = make.part(("problem", "loss"), parts.loss, given.loss)
    whole = make.part(("problem",), _problem, x, target, neuron, loss, given.noise)
    problem = make.part(("problem", "reduced"), lambda p: p.reduced(), whole) if given.reduced else whole
    start = make.part(("start",), parts.start, spec.start, whole, given.reduced)
    pair = make.part(("risk",), parts.risk, spec.risk, problem)
    risk, penalty = (_MISSING, _MISSING) if pair is _MISSING else pair
    ts = make.part(("times",), lambda t: checked_times(parts.times(t)), spec.times)
    own = {
        str(i): make.part(("dynamics", i, "start"), _own_start, method.start, whole, spec)
        for i, method in enumerate(spec.dynamics)
        if method.start is not None
    }
    listed = (
        [
            case
            for i, method in enumerate(spec.dynamics)
            for case in _cases(make, i, method, own.get(str(i), start), pair, ts, spec)
        ]
        if make.part(most_runs(spec.dynamics), check_runs, spec.dynamics) is not _MISSING
        else []
    )
    named = make.part(("observe",), coordinates, problem)
    for i, name in enumerate(spec.observe.cloud or ()):
        make.part(("observe", "cloud", i), _named, named, name)
    if spec.observe.feature is not None:
        make.part(("observe", "feature"), _named, named, spec.observe.feature)
    _distinct(make, listed)
    make.part(("observe",), _check_kept, spec, listed, start, problem, ts)
    if make.found:
        raise NotBuiltError(make.found)
    return Study(spec, whole, problem, start, risk, penalty, ts, tuple(listed), named, own)


def located(spec: Spec, folder: Path) -> Spec:
    """The same spec with its data file by the full path, so that it can be read from anywhere."""
    x: Any = spec.problem.x
    if x.law != "dataset" or Path(x.file).is_absolute():
        return spec
    full = x.model_copy(update={"file": str((folder / x.file).resolve())})
    return spec.model_copy(update={"problem": spec.problem.model_copy(update={"x": full})})


def _dimension(x: Any) -> float | None:
    """d, where the law has it; building and naming coordinates takes time and memory for each of them."""
    d = getattr(x, "d", None)
    if d is not None and _MOST_DIMENSIONS < d < math.inf:
        raise ValueError(f"d must be at most {_MOST_DIMENSIONS}, or inf, got {d}")
    return d


def _problem(x: Any, target: Any, neuron: Any, loss: Any, noise: float) -> Problem:
    return Problem(x=x, target=target, neuron=neuron, loss=loss, noise=noise)


def _own_start(given: Any, whole: Problem, spec: Spec) -> Law | Family:
    """A start of one entry alone. All runs of a study are networks of one kind, as a report tells one."""
    if given.kind != "particles" or spec.start.kind != given.kind:
        raise ValueError(
            'a start of its own is a law of neurons in a study of neurons, kind = "particles" in both, got '
            f'"{given.kind}" and start.kind = "{spec.start.kind}"'
        )
    return parts.start(given, whole, spec.problem.reduced)


def _named(named: Coordinates | None, name: str) -> None:
    if named is None:
        raise ValueError("neurons of this kind have no named coordinates")
    named.check(name)


def _cases(make: _Builder, i: int, method: Any, start: Any, pair: Any, ts: Any, spec: Spec) -> list[Case]:
    """The runs of entry i, checked as far as they can be without running them."""
    here: Place = ("dynamics", i)
    given = start_spec(spec, method)
    if method.word.moves is Moves.LAW:
        if spec.start.kind != "particles":
            make.found.append((here, 'the limit starts from a law of neurons: start.kind = "particles"'))
        _check_infinite_mirror(make, here, method, given)
        return list(cases(method, str(i), None, spec.seed))
    if make.part((*here, "method"), _check_kind, method, start) is _MISSING:
        return []
    which = (*here, "parametrisation")
    listed = make.part(which, lambda s: list(cases(method, str(i), s, spec.seed)), start)
    if listed is _MISSING:
        return []
    made = make.part(here, lambda both: dynamics(method, descended(*both)), pair)
    make.part(here, lambda d, t: d.check_times(t), made, ts)
    if method.box is not None:
        make.part((*here, "grid"), _check_grid, listed, start, given, made)
        _check_infinite_mirror(make, here, method, given)
        return listed
    make.part((*here, "width"), _check_size, listed, start, spec)
    make.part((*here, "batch"), _check_batch, method, start, spec)
    make.part((*here, "linearised"), _check_frozen, method, start, spec)
    make.part((*here, "noise_on"), _check_noise, method, start)
    if is_law(start) and getattr(given, "mirrored", False):
        make.part((*here, "width"), _check_mirror, listed, start)
    return listed


def _check_kind(method: Any, start: Law | Family) -> None:
    """What a method moves is what the study starts from."""
    if method.word.moves is not Moves.NETWORK and is_family(start):
        raise ValueError(
            f'{method.method} moves {method.word.moves.value}: it takes start.kind = "particles" and no '
            "deeper network"
        )


def _check_noise(method: Any, start: Law | Family) -> None:
    if getattr(method, "noise_on", None) is not None and is_family(start):
        raise ValueError('these are coordinates of neurons: they take start.kind = "particles"')


def _check_grid(listed: list[Case], start: Law, given: Any, made: AbstractDynamics) -> None:
    """The density at time 0, and whether it can be moved; what is only worth a warning is told in the run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in listed:
            made.check_state(case.state(start, given))


def _check_infinite_mirror(make: _Builder, here: Place, method: Any, given: Any) -> None:
    if getattr(given, "mirrored", False) and not _symmetric(getattr(given, "a", None)):
        what = "the limit" if method.box is None else "the density"
        said = f"{what} of a mirrored start needs a law of a that is symmetric about 0"
        where: Place = ("start",) if method.start is None else (*here, "start")
        make.found.append(((*where, "mirrored"), said))


def _check_size(listed: list[Case], start: Law | Family, spec: Spec) -> None:
    itemsize = 8 if spec.precision == "float64" else 4
    for case in listed:
        assert case.width is not None
        n = case.width
        if is_law(start) and math.isinf(start.D):
            raise ValueError("in d = inf there are no networks of finite width: set problem.reduced = true")
        if is_law(start):
            size = float(n) * start.D
        else:
            size = float(sum(math.prod(map(float, shape)) for shape in start.weight_shapes(n)))
        fits(f"A network of width {n}", 8 * size * itemsize, "Use a smaller width.")


def _check_kept(spec: Spec, listed: list[Case], start: Any, problem: Problem, ts: np.ndarray) -> None:
    """What the runs keep must fit into memory together: a report has them all."""
    size = sum(kept(spec, case, start, problem, len(ts)) for case in listed)
    what = f"What {len(listed)} run{'s keep' if len(listed) > 1 else ' keeps'} at {len(ts)} times"
    fits(what, size, "Save fewer times, set observe.snapshots = false, or make test and particles smaller.")


def _check_batch(method: Any, start: Law | Family, spec: Spec) -> None:
    batch, d = getattr(method, "batch", None), start.problem.d if is_law(start) else start.d
    if batch is not None and math.isfinite(d):
        itemsize = 8 if spec.precision == "float64" else 4
        fits(f"A batch of {batch} rows", 4.0 * batch * (d + 2) * itemsize, "Use a smaller batch.")


def _check_frozen(method: Any, start: Law | Family, spec: Spec) -> None:
    """What needs neurons that move."""
    linearised = getattr(method, "linearised", False)
    if spec.risk.path_norm and (linearised or is_family(start)):
        raise ValueError("risk.path_norm is of neurons that move: not of a linearised or a deeper network")
    if linearised and method.method == "langevin" and spec.problem.reduced:
        raise ValueError("noise in reduced coordinates needs neurons that move: set linearised = false")


def _check_mirror(listed: list[Case], start: Law) -> None:
    if "a" not in start.names:
        raise ValueError("a mirrored start needs output weights a to mirror, and these neurons have a = 1")
    odd = [case.width for case in listed if (case.width or 0) % 2]
    if odd:
        raise ValueError(f"a mirrored start has an even number of neurons, got {odd[0]}")


def _symmetric(law: Any) -> bool:
    """Whether a and −a have the same law, so that mirroring changes nothing at infinite width."""
    kind = getattr(law, "law", "number")
    middle = {"normal": "mean", "constant": "value"}.get(kind)
    if kind == "uniform":
        return law.low == -law.high
    return middle is None or getattr(law, middle) == 0


def _distinct(make: _Builder, listed: list[Case]) -> None:
    slugs = collections.Counter(case.slug for case in listed)
    for case in listed:
        if slugs[case.slug] > 1:
            message = f"two of its runs would share the folder {shown(case.slug)}: use other names or values"
            make.found.append((("dynamics", int(case.where), "name"), message))
            return
