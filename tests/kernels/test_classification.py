"""Kernel classification on rings, against regression on signs and brute-force refits."""

import numpy as np
import pytest

from kernel_cases import EXACT, data, gaussian, laplace, linear
from wideflow.kernels.machines.classification import kernel_classifier
from wideflow.kernels.machines.regression import kernel_regression


def circles(labels, m=60, seed=0):
    """Rings of radius 1, 2, …: no line separates them, a Gaussian kernel does."""
    rng = np.random.default_rng(seed)
    index = np.arange(m) % len(labels)
    angle = rng.uniform(0, 2 * np.pi, m)
    radius = 1 + index + rng.uniform(-0.2, 0.2, m)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1), [labels[i] for i in index]


@pytest.mark.parametrize(
    "labels", [[3, 7], ["b", "a", "c"], [("x", 1), None], [0.5, 1.5, 2.5], [True, False]]
)
def test_classes_that_can_be_separated(labels):
    x, given = circles(labels)
    fit = kernel_classifier(gaussian, x, given, ridge=1e-4)
    assert fit.accuracy(x, given) == 1
    assert list(fit.predict(x)) == given
    new, truth = circles(labels, m=300, seed=1)
    # gaps of 0.6 between rings at unit width: errors only where a ring has a hole in its 20 samples or more
    assert fit.accuracy(new, truth) > 0.9
    assert fit.accuracy(new, ["none of them"] * 300) == 0
    assert set(fit.classes) == set(labels)


def test_two_classes_are_regression_on_signs():
    x, given = circles([5, 2])
    fit = kernel_classifier(laplace, x, np.array(given), ridge=0.01)
    signs = np.where(np.array(given) == 5, 1.0, -1.0)
    np.testing.assert_allclose(fit.scores(x), kernel_regression(laplace, (x, signs), ridge=0.01)(x), **EXACT)
    assert fit.predict(x).dtype.kind == "i"


def test_three_classes_have_scores_that_sum_to_zero():
    x, given = circles("abc")
    scores = kernel_classifier(laplace, x, given, ridge=0.1).scores(x)
    np.testing.assert_allclose(np.sum(scores, axis=1), 0, **EXACT)


def test_a_kernel_of_lines_cannot_separate_rings():
    """The other way round: accuracy is not 1 by construction."""
    x, given = circles([0, 1])
    assert kernel_classifier(linear, x, given).accuracy(x, given) < 0.75


@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_leave_one_out_labels(labels):
    x, given = circles(labels, m=18)
    ridge = 0.02
    found, right = kernel_classifier(gaussian, x, given, ridge=ridge).leave_one_out()
    brute = []
    for i in range(18):
        rest = [k for k in range(18) if k != i]
        fit = kernel_classifier(gaussian, x[rest], [given[k] for k in rest], ridge=ridge * 18 / 17)
        brute.append(fit.predict(x[i : i + 1])[0])
    assert list(found) == brute
    np.testing.assert_allclose(right, np.mean([a == b for a, b in zip(brute, given, strict=True)]))


X = data(4)[0]
BAD = {
    "one class": (lambda: kernel_classifier(laplace, X, [1, 1, 1, 1]), "two classes"),
    "labels that are lists": (lambda: kernel_classifier(laplace, X, [[1], [2], [1], [2]]), "hashable"),
    "labels NaN": (lambda: kernel_classifier(laplace, X, [0.0, 1.0, 1.0, np.nan]), "NaN"),
    "a label": (lambda: kernel_classifier(laplace, X, 3), "one label per row"),
    "labels of another length": (
        lambda: kernel_classifier(laplace, X, [0, 1, 0, 1]).accuracy(X, [0]),
        "one label per row",
    ),
}


@pytest.mark.parametrize("call, said", BAD.values(), ids=BAD.keys())
def test_bad_input(call, said):
    with pytest.raises(ValueError, match=said):
        call()
