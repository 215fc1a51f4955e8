"""Cases that run as one program against the same cases one by one."""

import numpy as np
import pytest

from study.specs import study
from wideflow.study import study as main
from wideflow.study.folder import StudyFolder
from wideflow.study.grouping import together

SGD = {"name": "net", "method": "sgd", "step": 0.01, "width": [6, 12], "seeds": 2}
NOISY = {"name": "net", "method": "langevin", "step": 0.01, "beta": 20.0, "width": [20, 60]}
CASES = {
    "plain": ({}, SGD),
    "mirrored": ({"start.mirrored": "true"}, SGD),
    "linearised": ({}, SGD | {"linearised": True}),
    "free energy of the wide": ({"question": "noise"}, NOISY),
}


def made(name):
    changes, method = CASES[name]
    both = {"times.end": "0.1", "times.count": "3", "observe.kernel": "8", "observe.test": "8"} | changes
    return study(*(f"{key}={value}" for key, value in both.items()), dynamics=[method])


def groups(name):
    return [[case.width for case in group] for group in together(made(name))]


def test_who_goes_together():
    assert groups("plain") == [[6, 6, 12, 12]]
    assert groups("mirrored") == groups("linearised") == [[6, 6], [12, 12]]
    assert groups("free energy of the wide") == [[20], [60]]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "plain" else pytest.mark.slow) for name in CASES]
)
def test_the_same_as_alone(name, tmp_path, monkeypatch):
    joined = main.run_study(made(name), StudyFolder(tmp_path / "joined"), progress=False)
    monkeypatch.setattr(main, "together", lambda study: [(case,) for case in study.cases])
    alone = main.run_study(made(name), StudyFolder(tmp_path / "alone"), progress=False)
    for slug, run in joined.runs.items():
        other = alone.runs[slug]
        assert list(run) == list(other)
        for seen in run:  # the same sums, some in another order, over ten steps
            np.testing.assert_allclose(
                run[seen], other[seen], rtol=1e-9, atol=1e-10, err_msg=f"{slug} {seen}"
            )
        told, own = (one.info["expectation_error"] for one in (run, other))
        assert told == pytest.approx(own, rel=1e-6)  # of an error, at ends that differ by rounding
