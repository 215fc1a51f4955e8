"""The runs that a list of dynamics stands for: their order, names, scales and seeds."""

import math
from pathlib import Path

import jax
import numpy as np
import pytest

import wideflow as wf
from study.specs import study
from wideflow.store.records import fingerprint

MLP = {"kind": "mlp"}


def runs(start=None, **fields):
    method = {"method": "sgd", "step": 0.1, "width": 4} | fields
    tables = {} if start is None else {"start": start}
    return study(dynamics=[method], **tables).cases


def test_one_entry_without_lists_is_one_run():
    (case,) = runs()
    assert (case.width, case.seed, case.alpha, case.scaling) == (4, 0, 1.0, "α = 1")
    assert (case.label, case.group, case.slug) == ("sgd", "sgd", "sgd")


def test_a_run_for_each_scale_width_and_seed():
    listed = runs(name="net", width=[4, 9], alpha=[2.0, "sqrt(n)"], seeds=3)
    assert [(c.alpha, c.width, c.seed) for c in listed] == [
        (alpha(n), n, i) for alpha in (lambda n: 2.0, math.sqrt) for n in (4, 9) for i in range(3)
    ]
    assert listed[0].label == "net, n = 4, α = 2, seed 0"
    assert listed[-1].label == "net, n = 9, α = √n, seed 2"
    assert listed[-1].group == "net, n = 9, α = √n"
    assert listed[-1].slug == "net-n-9-alpha-sqrtn-seed-2"
    assert len({c.group for c in listed}) == 4


def test_only_what_there_are_several_of_is_told():
    assert [c.label for c in runs(width=[4, 9])] == ["sgd, n = 4", "sgd, n = 9"]
    assert [c.label for c in runs(alpha=[1.0, 3.0])] == ["sgd, α = 1", "sgd, α = 3"]
    assert [c.label for c in runs(seeds=2)] == ["sgd, seed 0", "sgd, seed 1"]


def test_a_limit_is_one_run_of_no_width():
    made = study("seed=7", dynamics=[{"method": "limit", "alpha": 2.0, "tol": 0.1}])
    (case,) = made.cases
    assert (case.width, case.alpha, case.linearised, case.seed) == (None, 2.0, False, 7)


def test_names_of_scales_for_neurons():
    """Neurons have α alone: two of the parametrisations are a name for one."""
    listed = runs(parametrisation=["mean_field", "ntk"], width=9)
    assert [(c.alpha, c.parametrisation, c.scaling) for c in listed] == [
        (1.0, None, "α = 1"),
        (3.0, None, "α = √n"),
    ]


def test_a_network_has_both():
    """Every α with every parametrisation, and each run its own name and folder."""
    exponents = [{"a": [0.0, a], "b": [0.0, 0.0], "c": [0.0, 0.0]} for a in (0.5, 1.0)]
    listed = runs(start=MLP, alpha=[1.0, 5.0], parametrisation=["mup", *exponents])
    assert [c.alpha for c in listed] == [1.0] * 3 + [5.0] * 3
    assert listed[0].scaling == "mup, α = 1"
    assert listed[1].scaling == "a = (0, 0.5), b = (0, 0), c = (0, 0), α = 1"
    assert len({c.slug for c in listed}) == 6
    (alone,) = runs(start=MLP, parametrisation="mup")
    assert (alone.scaling, alone.alpha) == ("mup", 1.0)


@pytest.mark.parametrize("alpha, as_number", [(None, 1.0), (3.0, 3.0), ("sqrt(n)", 2.0)])
def test_the_start_is_the_draw_of_its_seed(alpha, as_number):
    fields = {} if alpha is None else {"alpha": alpha}
    made = study("seed=5", dynamics=[{"method": "sgd", "step": 0.1, "width": 4, "seeds": 2} | fields])
    for i, case in enumerate(made.cases):
        by_hand = made.start.sample(jax.random.key(5 + i), 4, as_number)
        assert fingerprint(case.state(made.start, made.spec.start)) == fingerprint(by_hand)
        assert fingerprint(case.key) == fingerprint(jax.random.key(5 + i))


def test_a_mirrored_start_begins_at_zero():
    made = study(start={"mirrored": True})
    state = made.cases[0].state(made.start, made.spec.start)
    x = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_allclose(state(x), 0, atol=1e-15)  # sums of six numbers of order 1 that cancel


def test_the_network_of_a_family_is_its_sample():
    adam = {"method": "adam", "step": 0.1, "width": 4, "parametrisation": "mup", "alpha": 3.0}
    made = study(start={"kind": "mlp", "centred": True}, dynamics=[adam])
    family = wf.MLP(4, 1, "erf")
    by_hand = family.sample(jax.random.key(0), 4, "mup", alpha=3.0, centred=True, optimiser="adam")
    state = made.cases[0].state(made.start, made.spec.start)
    assert fingerprint(state) == fingerprint(by_hand)
    sgd = study(start=MLP).cases[0].state(family, study(start=MLP).spec.start)
    assert fingerprint(sgd) == fingerprint(family.sample(jax.random.key(0), 6, "ntk"))


def test_which_kernels_are_frozen():
    assert runs(linearised=True)[0].linearised
    assert not runs()[0].linearised
    assert study(dynamics=[{"method": "kernel_flow", "width": 4}]).cases[0].linearised


NAMES = [
    "β = 300",
    "β = 30",
    "λ",
    "γ",
    "..",
    ".",
    "a/b",
    "../c",
    "a\\d",
    "  ",
    "x" * 199,
    "x" * 200,
    "é" * 200,
]
NAMES += ["COM: |?*", "tab\tand\nline", "n = 4", "seed 0"]


def test_a_folder_of_its_own_for_every_run_whatever_it_is_called():
    """Inside the folder of runs, short enough for any system, and another for each."""
    listed = study(
        dynamics=[{"method": "sgd", "step": 0.1, "width": 4, "name": name} for name in NAMES]
    ).cases
    slugs = [case.slug for case in listed]
    assert len(set(slugs)) == len(NAMES)
    for slug in slugs:
        assert (Path("/runs") / slug).resolve().parent == Path("/runs")
        assert 0 < len(slug.encode()) <= 240
        assert not set(slug) & set('/\\:|?*<>"\n\t ')
    assert [c.label for c in listed] == NAMES
