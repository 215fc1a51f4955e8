"""What a study will take, before it is run: operations, seconds, memory. Rough: within a factor of three."""

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..spec.study import Spec
from ..states.family import is_family
from .build import Study
from .cases import Case
from .memory import itemsize, kept, weights

_PASSES = 6  # products a weight and row takes: two forward, four back
_PAIR = 120  # operations for one pair of neurons in closed form, beside its inner product
_FLOW = 150  # velocities that an adaptive flow takes from a smooth start to its end
_STEP = 8e-6  # seconds that a step takes at least
_COMPILE = 4.0  # seconds to compile the programs of one width
_LIMIT = 25.0  # seconds of a limit to 1e-4, compilation and all
_SHARE = 0.4  # of the rate of matrix products that networks reach


@dataclass(frozen=True)
class Cost:
    """The estimate for one run; `kept` of its bytes stay until the report has been written."""

    label: str
    steps: int | None
    operations: float | None
    seconds: float
    bytes: float
    kept: float


def estimates(study: Study) -> list[Cost]:
    """One line a run."""
    rate, seen, found = _rate(study.spec), set(), []
    for case in study.cases:
        saved = kept(study.spec, case, study.start, study.problem, len(study.ts))
        if case.is_limit:
            found.append(Cost(case.label, None, None, _LIMIT * _digits(case), 2e8 + saved, saved))
            continue
        steps, operations = _work(study, case)
        compiled = (case.method.method, case.width, case.linearised)
        waits = 0.0 if compiled in seen else _COMPILE
        seen.add(compiled)
        seconds = waits + steps * _STEP + operations / (_SHARE * rate)
        found.append(Cost(case.label, steps, operations, seconds, _memory(study, case) + saved, saved))
    return found


def _digits(case: Case) -> float:
    """How much longer than to 1e-4 a limit takes: half as long again for each digit."""
    tol: Any = getattr(case.method, "tol", 1e-4)
    return float(1.5 ** max(-2.0, np.log10(1e-4 / tol)))


def _work(study: Study, case: Case) -> tuple[int, float]:
    """(steps, operations) of one run, with what is looked at on the way."""
    spec: Any = case.method
    size, rows = weights(case, study.start, study.problem), _rows(study, case)
    pairs = _paired(study, case)
    full = pairs if pairs is not None else _PASSES * size * rows
    looks = len(study.ts) * (full / 2 + _PASSES * size * study.spec.observe.kernel)
    step = getattr(spec, "step", None)
    if case.method.word.frozen:
        return 0, looks + rows**3 + size * rows**2
    if step is None:
        return _FLOW, _FLOW * full + looks
    steps = round(float(study.ts[-1]) / step)
    batch = getattr(spec, "batch", None)
    each = full if batch is None else _PASSES * size * batch
    return steps, steps * each + looks


def _rows(study: Study, case: Case) -> float:
    """Points that E over x is a sum of."""
    sample = study.risk.sample
    if sample is not None:
        return float(sample.m)
    nodes = getattr(study.risk.ways[-1], "nodes", None)
    return float(nodes.m) if nodes is not None else 0.0


def _paired(study: Study, case: Case) -> float | None:
    """Operations of one velocity in closed form, where the risk is taken so."""
    first = study.risk.ways[0]
    in_pairs = hasattr(first, "pairs") and not is_family(study.start) and not case.linearised
    if not in_pairs or case.width is None or case.width > 8192:
        return None
    return case.width**2 * (4.0 * study.problem.d + _PAIR)


def memory(costs: list[Cost]) -> float:
    """Bytes of all runs, one after the other: what each keeps, and what the largest needs beside."""
    return sum(cost.kept for cost in costs) + max(cost.bytes - cost.kept for cost in costs)


def _memory(study: Study, case: Case) -> float:
    """Bytes while it runs, beside what it keeps."""
    item = itemsize(study.spec)
    state = weights(case, study.start, study.problem) * item
    pairs = 6.0 * (case.width or 0) ** 2 * item if _paired(study, case) is not None else 0.0
    batch = float(getattr(case.method, "batch", None) or 0)
    rows = max(_rows(study, case), batch) * (study.problem.d + 2) * item
    return 8 * state + pairs + 2 * rows


def _rate(spec: Spec) -> float:
    """Operations a second in a matrix product of this precision, measured now."""
    a = jnp.ones((1024, 1024), jnp.float64 if spec.precision == "float64" else jnp.float32)
    product = jax.jit(lambda a: a @ a)
    product(a).block_until_ready()
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        product(a).block_until_ready()
        times.append(time.perf_counter() - begun)
    return 2 * 1024**3 / min(times)
