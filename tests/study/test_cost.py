"""Estimates before a run: finite, growing with the work, and never below the numbers that must be held."""

import math

import numpy as np
import pytest

from study.specs import study
from wideflow.study.cost import estimates, memory

METHODS = {
    "gradient_flow": {},
    "gradient_descent": {"step": 0.1},
    "sgd": {"step": 0.1, "batch": 3},
    "langevin": {"step": 0.1, "beta": 9.0},
    "adam": {"step": 0.1},
    "kernel_flow": {},
}


def costs(*changes, **fields):
    """The estimates of one entry; compiling counts once for a program, so that the second seed has the bare
    work."""
    method = {"method": "gradient_descent", "step": 0.1, "width": 50, "seeds": 2} | fields
    return estimates(study(*changes, dynamics=[method]))


def work(*changes, **fields):
    return costs(*changes, **fields)[1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", ["particles", "mlp"])
def test_every_method_has_an_estimate(method, start):
    fields = {"method": method, "step": None} | METHODS[method]
    given = {k: v for k, v in fields.items() if v is not None} | {"width": 50}
    (cost,) = estimates(study(f"start.kind={start}", dynamics=[given]))
    assert 0 < cost.seconds < math.inf and 0 < cost.operations < math.inf
    assert 0 < cost.bytes < math.inf
    assert (cost.steps == 10) == ("step" in METHODS[method])  # to t = 1 in steps of 0.1


@pytest.mark.parametrize("start", ["particles", "mlp"])
def test_twice_the_width_is_more_work(start):
    first, second = (work(f"start.kind={start}", width=n) for n in (500, 1000))
    # linear in the number of weights, which is linear in n for one hidden layer, beside what does not grow
    assert 1.8 < second.operations / first.operations <= 2.0
    assert second.bytes > first.bytes
    assert second.seconds > 0


def test_more_steps_are_more_work():
    first, second = (work(step=step, width=500) for step in (0.01, 0.001))
    assert (first.steps, second.steps) == (100, 1000)
    assert 5 < second.operations / first.operations < 10  # what is looked at is the same


def test_pairs_of_neurons_are_counted_in_closed_form():
    """n² of them, and as many numbers to hold."""
    closed = "risk.expectation={way='closed_form'}"
    first, second = (work(closed, width=n) for n in (1000, 2000))
    assert 3.8 < second.operations / first.operations <= 4.0
    assert second.bytes > 8 * 2000**2


def test_a_program_is_compiled_once_for_all_seeds():
    first, second = costs()
    assert first.seconds - second.seconds > 1
    assert first.operations == second.operations


def test_a_limit_takes_longer_for_more_digits():
    loose, tight = (
        estimates(study(dynamics=[{"method": "limit", "tol": tol}]))[0].seconds for tol in (1e-3, 1e-8)
    )
    assert 0 < loose < tight < math.inf


def test_memory_holds_the_state_and_all_that_is_kept():
    """Bounds from below: numbers that a run has at its end, in bytes of its precision."""
    weights = 500 * 5  # (a, w) in R⁵
    for precision, item in (("float32", 4), ("float64", 8)):
        cost = work(f"precision={precision}", width=500)
        assert cost.bytes > weights * item
        kept = work(f"precision={precision}", "observe.snapshots=true", "times.count=11", width=500)
        assert kept.bytes > 11 * weights * item
        seen = work(f"precision={precision}", "observe.test=10000", "times.count=11", width=500)
        assert seen.bytes > 11 * 10_000 * item
    deep = work("start={kind='mlp',depth=3}", width=300)
    assert deep.bytes > 8 * (4 * 300 + 2 * 300**2 + 300)
    batch = work(method="sgd", batch=10**6)
    assert batch.bytes > 8 * 10**6 * 4
    sample = work("risk.expectation={way='sample',m=100000}")
    assert sample.bytes > 8 * 10**5 * 4


def test_memory_is_counted_over_all_runs():
    """Two runs hold what one holds, and what the other keeps; bounds from below as above, for 20 seeds by 3
    scales."""
    many = {"seeds": 20, "alpha": [1.0, 2.0, 3.0]}
    fields = ("observe.snapshots=true", "times.count=11")
    one, listed = memory(costs(*fields, seeds=1)), costs(*fields, **many)
    assert len(listed) == 60 and memory(listed) >= one + 59 * 11 * 50 * 5 * 8
    assert memory(costs(*fields)) == one + costs(*fields)[1].kept


def test_one_line_a_run():
    made = study(dynamics=[{"method": "sgd", "step": 0.1, "width": [4, 9], "seeds": 2}, {"method": "limit"}])
    listed = estimates(made)
    assert [c.label for c in listed] == [c.label for c in made.cases]
    assert np.isfinite([c.seconds for c in listed]).all()
