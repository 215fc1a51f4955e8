"""Which runs of a study can go together: replicas of one compiled program, for seeds and for widths.

Seeds of one network always can. Widths can where particles are moved in discrete steps: narrow networks are
filled up with particles of weight 0, as long as that costs less than another compilation."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._checks import available_memory
from .._tracing import on_device
from ..states.replicas import stack
from ..states.starts import Law
from ..vocabulary.methods import Moves
from .build import Study, start_spec
from .cases import Case
from .questions import ENERGIES, FEWEST, question

_COMPILATION = 2e10  # floating-point operations that take as long as compiling once more
_SHARE = 0.25  # of the free memory, for the replicas of one program


def together(study: Study) -> list[tuple[Case, ...]]:
    """The cases of a study in groups that run as one, in their order."""
    groups: list[list[Case]] = []
    for case in study.cases:
        last = groups[-1] if groups else []
        if last and _joins(study, last, case):
            last.append(case)
        else:
            groups.append([case])
    return [tuple(group) for group in groups]


def _joins(study: Study, group: Sequence[Case], case: Case) -> bool:
    first = group[0]
    alike = (first.where, first.parametrisation) == (case.where, case.parametrisation)
    if not alike or case.is_limit or case.method.word.moves is not Moves.NETWORK:
        return False
    every = [*group, case]
    widths = [one.width or 0 for one in every]
    if len(set(widths)) > 1 and not _is_cheaper_padded(study, case, widths):
        return False
    return len(every) * max(widths) * _bytes_a_neuron(study) < _SHARE * available_memory()


def _bytes_a_neuron(study: Study) -> float:
    """Of a neuron in all snapshots and a step."""
    return 8.0 * (study.whole.d + 2) * (len(study.ts) + 12) if math.isfinite(study.whole.d) else math.inf


def _is_cheaper_padded(study: Study, case: Case, widths: list[int]) -> bool:
    """Whether particles that only fill up take less time than a program of their own would to compile."""
    if not case.method.word.padded or case.linearised or is_mirrored(study, case):
        return False  # half of a mirrored start is drawn: a narrow one is no part of a wide one
    if question(study.spec) in ENERGIES and min(widths) < FEWEST <= max(widths):
        return False  # the free energy is told of the wide ones alone
    steps = float(study.ts[-1]) / float(case.method.options()["step"])
    rows = getattr(case.method, "batch", None) or 256
    padding = len(widths) * max(widths) - sum(widths)
    return 8.0 * padding * study.whole.d * rows * steps < _COMPILATION * len(set(widths))


def is_mirrored(study: Study, case: Case) -> bool:
    """Whether each neuron of the start has a twin with −a."""
    return bool(getattr(start_spec(study.spec, case.method), "mirrored", False))


def replicas_of(study: Study, cases: Sequence[Case]) -> Any:
    """The starts of all cases along a replica axis. Particle j of a start depends on its key and j alone, so
    that narrow ones are the first of the widest's, which one program draws for all."""
    law, widths = study.start_of(cases[0]), np.array([case.width or 0 for case in cases])
    widest = int(widths.max())
    if len(set(widths)) == 1 or not isinstance(law, Law):
        return stack([study.state(case) for case in cases])
    keys, alphas = jnp.stack([case.key for case in cases]), np.array([case.alpha for case in cases])
    drawn = law.sample(keys, widest, alphas, replicas=len(cases))  # type: ignore[arg-type]
    mass = np.where(np.arange(widest) < widths[:, None], 1 / widths[:, None], 0.0)
    return drawn.with_weights(on_device(mass, drawn.dtype))


def narrowed(state: Any, n: int) -> Any:
    """The state without the particles that fill it up to the widest of its group."""
    return state if state.n == n else state.first(n)
