"""Which samples, or patches of images, are equal to the last bit: equal things have equal labels.

Rounding makes the correlation of x with itself 1 − 1e-16, and relu's angle of that is 1e-8; a pair with equal
labels has correlation 1."""

import numpy as np


def labels_of(things: np.ndarray) -> np.ndarray:
    """For things (…, k) an integer (…): the flat index of the first one that is equal."""
    rows = things.reshape(-1, things.shape[-1])
    rows = rows + 0.0 if rows.dtype.kind == "f" else np.ascontiguousarray(rows)  # −0 is 0
    first: dict[bytes, int] = {}
    labels = (first.setdefault(row.tobytes(), i) for i, row in enumerate(rows))
    return np.fromiter(labels, np.int64, len(rows)).reshape(things.shape[:-1])


def window_labels(label: np.ndarray, window: int, stride: int, pads: list[tuple[int, int]]) -> np.ndarray:
    """Labels (m, height, width) behind a layer that sees windows: equal where the whole window is."""
    padded = np.pad(label, [(0, 0), *pads], constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), axis=(1, 2))
    windows = windows[:, ::stride, ::stride]
    return labels_of(windows.reshape(*windows.shape[:3], -1))
