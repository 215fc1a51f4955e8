"""Kernel classification: ridge regression on centred codes of the classes."""

from collections.abc import Hashable, Iterable

import equinox as eqx
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from ..._data import Data
from ..._shown import shown
from .gram import Kernel
from .regression import KernelRegressor, kernel_regression


class KernelClassifier(eqx.Module):
    """argmax_c f_c(x), made by `kernel_classifier`; of two classes the second where f(x) > 0.

    `fit.regressor` is the `KernelRegressor` of the codes, `fit.info` its info, `fit.classes` the labels."""

    regressor: KernelRegressor
    classes: tuple[Hashable, ...] = eqx.field(static=True)
    codes: np.ndarray

    @property
    def info(self) -> Data:
        return self.regressor.info

    def scores(self, x: ArrayLike) -> Array:
        """f(x): (k,) for two classes, (k, C) for more."""
        return self.regressor(x)

    def predict(self, x: ArrayLike) -> np.ndarray:
        """Labels (k,); an array of objects, unless all are whole numbers or all are strings."""
        return self._labels(np.asarray(self.scores(x)))

    __call__ = predict

    def accuracy(self, x: ArrayLike, labels: Iterable[Hashable]) -> float:
        """The fraction of the rows x whose predicted label is the given one."""
        actual, predicted = _listed(labels), self.predict(x).tolist()
        if len(actual) != len(predicted):
            raise ValueError(
                f"accuracy(x, labels) needs one label per row: {len(predicted)} rows, {len(actual)} labels."
            )
        return float(np.mean([a == b for a, b in zip(predicted, actual, strict=True)]))

    def leave_one_out(self) -> tuple[np.ndarray, float]:
        """The label of each row by the fit without it (m,), and the weight of the rows that it has right."""
        residuals, _ = self.regressor.leave_one_out()
        predicted, own = self._numbers(self.codes - residuals), self._numbers(self.codes)
        weights = self.regressor.weights
        return self._array()[predicted], float(weights[predicted == own].sum() / weights.sum())

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        return self._array()[self._numbers(scores)]

    def _numbers(self, scores: np.ndarray) -> np.ndarray:
        return (scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)

    def _array(self) -> np.ndarray:
        for kind in (int, str):
            if all(type(c) is kind for c in self.classes):
                return np.array(self.classes)
        out = np.empty(len(self.classes), object)
        out[:] = self.classes
        return out

    def __repr__(self) -> str:
        return f"KernelClassifier({len(self.classes)} classes, {self.regressor!r})"


def kernel_classifier(
    kernel: Kernel | None,
    x: ArrayLike,
    labels: Iterable[Hashable],
    *,
    weights: ArrayLike | None = None,
    ridge: float = 0.0,
    jitter: float | None = None,
    memory: float | None = None,
    gram: ArrayLike | None = None,
) -> KernelClassifier:
    """Ridge regression on codes: −1 and 1 for two classes, 1[label = c] − 1/C for C > 2.

    Labels are whole numbers or anything hashable, in the order of their values (of first appearance, if they
    have no order). The other arguments are those of `kernel_regression`."""
    values = _listed(labels)
    classes = _classes(values)
    numbers = {c: i for i, c in enumerate(classes)}
    index = np.array([numbers[label] for label in values])
    codes = 2.0 * index - 1 if len(classes) == 2 else np.eye(len(classes))[index] - 1 / len(classes)
    data = (x, codes) if weights is None else (x, codes, weights)
    regressor = kernel_regression(kernel, data, ridge=ridge, jitter=jitter, memory=memory, gram=gram)
    kept = slice(None) if weights is None else np.asarray(weights) > 0
    return KernelClassifier(regressor, classes, codes[kept])


def _listed(labels: Iterable[Hashable]) -> list[Hashable]:
    """Labels as plain Python values."""
    try:
        values = np.asarray(labels).tolist() if hasattr(labels, "dtype") else list(labels)
    except TypeError:
        values = None
    if not isinstance(values, list):
        raise ValueError(f"labels must be a sequence with one label per row, got {shown(labels)}.")
    values = [label.item() if isinstance(label, np.generic) else label for label in values]
    for i, label in enumerate(values):
        if not isinstance(label, Hashable):
            raise ValueError(f"labels must be whole numbers or hashable, got {shown(label)} in row {i}.")
        if label != label:
            raise ValueError(f"labels must not be NaN, as the one in row {i} is. Remove those rows.")
    return values


def _classes(labels: list[Hashable]) -> tuple[Hashable, ...]:
    distinct = list(dict.fromkeys(labels))
    if len(distinct) < 2:
        raise ValueError(f"labels must have two classes or more, got {shown(distinct)} only.")
    try:
        return tuple(sorted(distinct))  # type: ignore[type-var]
    except TypeError:
        return tuple(distinct)
