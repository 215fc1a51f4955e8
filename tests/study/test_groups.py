"""Means, errors and gaps of runs made by hand, against sums done by hand."""

import math

import numpy as np
import pytest

from study.specs import spec
from wideflow.run import Row, Run
from wideflow.study.cases import Case, cases
from wideflow.study.groups import Estimate, Group, grouped
from wideflow.study.reference_runs import frozen_for, limit_for
from wideflow.study.regimes import majority

T = [0.0, 1.0, 2.0]


def run(risk, f=None, t=T, status="ok", **more):
    """A run with these values at its times, cut where there are fewer."""
    seen = {"risk": risk} | ({} if f is None else {"f": f}) | more
    rows = [
        Row(float(s), {name: np.asarray(values[i]) for name, values in seen.items()}, None)
        for i, s in enumerate(t[: len(risk)])
    ]
    return Run(tuple(rows), None, status)


def group(runs, name="net", width=4, alpha=1.0, first_seed=0, linearised=False):
    fields = {"width": width, "alpha": alpha, "seeds": max(2, len(runs)), "linearised": linearised}
    method = spec(dynamics=[{"method": "sgd", "step": 0.1, "name": name} | fields]).dynamics[0]
    listed = tuple(Case(method, "0", name, width, alpha, None, first_seed + i) for i in range(len(runs)))
    return Group(name, listed, tuple(runs))


def limit(the_run, alpha=1.0):
    method = spec(dynamics=[{"method": "limit", "alpha": alpha}]).dynamics[0]
    return Group("limit", tuple(cases(method, "0", None, 0)), (the_run,))


def test_mean_and_standard_error():
    """Of 1, 2, 6: mean 3, variance (4 + 1 + 9)/2 = 7, error √(7/3)."""
    found = Estimate.of([1.0, 2.0, 6.0])
    assert found.value == 3.0
    assert found.error == pytest.approx(math.sqrt(7 / 3), rel=1e-15)
    assert Estimate.of([5.0]) == Estimate(5.0, None)
    assert Estimate.of([5.0, None]) == Estimate(5.0, None)
    for nothing in ([], [None], [1.0, math.nan], [math.inf]):
        assert Estimate.of(nothing) is None


def test_the_end_is_that_of_the_runs_that_came_to_it():
    net = group([run([4.0, 2.0, 1.0]), run([4.0, 3.0, 2.0]), run([4.0, 99.0], status="diverged")])
    assert net.end("risk") == Estimate(1.5, 0.5)
    assert net.end("kernel movement") is None
    assert net.status == "diverged"
    np.testing.assert_array_equal(net.values("risk"), [[4, 2, 1], [4, 3, 2]])  # only these are drawn
    none = group([run([4.0, 2.0, 9.0], status="diverged"), run([4.0, 99.0], status="diverged")])
    np.testing.assert_array_equal(none.times(), [0, 1])
    np.testing.assert_array_equal(none.values("risk"), [[4, 2], [4, 99]])


def test_the_largest_gap_to_a_limit_over_all_times():
    """Gaps 0, 2, 1 and 0, 1, 3 at the three times: their largest are 2 and 3."""
    net = group([run([8.0, 6.0, 3.0]), run([8.0, 3.0, 5.0])])
    found = net.risk_gap(limit(run([8.0, 4.0, 2.0])))
    assert found == Estimate(2.5, pytest.approx(0.5, rel=1e-15))


def test_a_reference_is_interpolated_and_not_carried_beyond_its_end():
    net = group([run([1.0, 1.0, 1.0])])
    assert net.risk_gap(limit(run([1.0, 3.0], t=[0.0, 2.0]))).value == 2.0
    assert net.risk_gap(limit(run([1.0, 1.5], t=[0.0, 1.0]))).value == 0.5
    # Steps may snap a single time to two sides: then there is nothing to compare.
    alone = group([run([1.0], t=[0.5])])
    assert alone.risk_gap(limit(run([3.0], t=[0.4]))) is None


def test_networks_are_compared_seed_by_seed():
    """Pairing takes away the chance that they share: here all of it."""
    net = group([run([1.0, 1.0, 1.0], [[1.0, 0.0]] * 3), run([1.0, 5.0, 5.0], [[0.0, 7.0]] * 3)])
    frozen = group(
        [run([1.0, 1.25, 1.25], [[4.0, 4.0]] * 3), run([1.0, 5.25, 5.25], [[3.0, 11.0]] * 3)],
        linearised=True,
    )
    assert net.risk_gap(frozen) == Estimate(0.25, 0.0)
    # f differs by (3, 4) and (3, 4): √((9 + 16)/2)
    assert net.function_gap(frozen).value == pytest.approx(math.sqrt(12.5), rel=1e-15)
    assert net.function_gap(frozen).error == 0.0


def test_seeds_that_the_other_does_not_have_are_left_out():
    net = group([run([1.0, 1.0, 1.0]), run([1.0, 2.0, 2.0])])
    other = group([run([1.0, 4.0, 4.0])], first_seed=1)
    assert net.risk_gap(other) == Estimate(2.0, None)
    assert net.risk_gap(group([run([1.0, 1.0, 1.0])], first_seed=7)) is None
    stopped = group([run([1.0, 4.0, 4.0], status="diverged")] * 2)
    assert net.risk_gap(stopped) is None and stopped.risk_gap(net) is None


def test_times_that_steps_snapped_apart_are_not_compared():
    """A run that ends at 9 where the limit was seen at 0 and 10: a chord there is no reference."""
    net = group([run([1.0, 1.0], [[1.0], [1.0]], t=[0.0, 9.0])])
    reference = limit(run([1.0, 5.0], [[1.0], [2.0]], t=[0.0, 10.0]))
    assert net.risk_gap(reference).value == 0.0  # at t = 0
    assert net.function_gap(reference) is None
    near = group([run([1.0, 1.0], [[1.0], [1.0]], t=[0.0, 9.9])])
    assert near.function_gap(reference).value == 1.0


def test_functions_on_other_points_are_not_compared():
    net = group([run([1.0], [[1.0, 2.0]])])
    assert net.function_gap(limit(run([1.0]))) is None
    assert net.function_gap(limit(run([1.0], [[1.0, 2.0, 3.0]]))) is None
    assert net.function_gap(limit(run([1.0], [[1.0, 2.0]]))).value == 0.0


def test_groups_are_the_seeds_of_one_width_and_scale():
    method = spec(
        dynamics=[{"method": "sgd", "step": 0.1, "name": "net", "width": [4, 9], "seeds": 2}]
    ).dynamics[0]
    listed = tuple(cases(method, "0", None, 0))
    made = {case.slug: run([float(i)]) for i, case in enumerate(listed)}
    found = grouped(listed, made)
    assert [g.name for g in found] == ["net, n = 4", "net, n = 9"]
    assert [[float(r["risk"][0]) for r in g.runs] for g in found] == [[0, 1], [2, 3]]
    del made[listed[0].slug]
    assert [len(g.runs) for g in grouped(listed, made)] == [1, 2]


def test_the_reference_has_the_same_scale():
    ones, threes = limit(run([1.0])), limit(run([1.0]), alpha=3.0)
    assert limit_for(group([run([1.0])], alpha=3.0), [ones, threes]) is threes
    assert limit_for(group([run([1.0])], alpha=7.0), [ones, threes]) is None
    assert limit_for(group([run([1.0])], alpha=7.0), [ones]) is ones
    assert limit_for(group([run([1.0])]), []) is None
    frozen = [group([run([1.0])], width=n, alpha=a, linearised=True) for n in (4, 9) for a in (1.0, 3.0)]
    assert frozen_for(group([run([1.0])], width=9, alpha=3.0), frozen) is frozen[3]
    assert frozen_for(group([run([1.0])], width=5), frozen) is None


def test_the_verdict_is_that_of_most_seeds():
    lazy, feature = {"verdict": "lazy"}, {"verdict": "feature-learning"}
    assert majority([lazy, feature, feature]) == "feature-learning"
    assert majority([None, lazy]) == "lazy"
    assert majority([lazy, feature]) == "not decided"
    assert majority([None, None]) == ""


def test_where_a_group_has_settled():
    """The last quarter of 8 times; over seeds with means 2 and 4 the error is 1, in time the deviation."""
    falls = [9.0, 8.0, 7.0, 6.0, 5.0, 5.0, 1.0, 3.0]
    alone = group([run(falls, t=range(8))]).settled("risk")
    assert (alone.value, alone.error, alone.drift) == (2.0, 1.0, -3.0)
    two = group([run(falls, t=range(8)), run([v + 2 for v in falls], t=range(8))]).settled("risk")
    assert (two.value, two.error) == (3.0, pytest.approx(1.0, rel=1e-15))
    assert group([run([1.0, math.inf])]).settled("risk") is None
    assert group([run([1.0], status="diverged")]).settled("risk") is None


def test_each_replica_of_a_run_counts_as_a_seed():
    """Gaps to 8, 4, 2 are (0, 2, 1) and (0, 1, 3): their largest 2 and 3, the mean 2.5."""
    both = group([run([[8.0, 8.0], [6.0, 3.0], [3.0, 5.0]])])
    np.testing.assert_array_equal(both.values("risk"), [[8, 6, 3], [8, 3, 5]])
    assert both.end("risk") == Estimate(4.0, 1.0)
    assert both.risk_gap(limit(run([8.0, 4.0, 2.0]))).value == 2.5
