"""Σ_t A_t ⊗ B_t of every row against those of all rows, by the host's products of matrices: the compiler's
own for a product per row are many times slower there."""

import math
from itertools import pairwise

import numpy as np

_BYTES = 2**27  # of gradients, or of pairs of positions, that are held at once


def position_kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """K_ij = ⟨G_i, G_j⟩ (m, m) with G_i = Σ_t a_it ⊗ b_it, of a (m, T, fan) and b (m, T, units)."""
    (m, positions, fan), units = a.shape, b.shape[2]
    pairs = (m * positions) ** 2 * (fan + units)
    if pairs < (m * m / 2 + 3 * m * positions) * fan * units:  # forming G is bound by memory
        return by_positions(a, b)
    return by_weights(a, b)


def by_positions(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ_tt' (a_it·a_jt')(b_it·b_jt'), blocks of rows against all rows from them on."""
    m, positions = b.shape[:2]
    out = np.zeros((m, m), b.dtype)
    flat = [v.reshape(m * positions, -1) for v in (a, b)]
    size = max(1, min(m, _BYTES // (2 * positions * positions * m * b.dtype.itemsize)))
    for i in range(0, m, size):
        j = min(m, i + size)
        pairs, other = (v[i * positions : j * positions] @ v[i * positions :].T for v in flat)
        pairs *= other
        tile = pairs.reshape(j - i, positions, m - i, positions).sum((1, 3))
        out[i:j, i:], out[i:, i:j] = tile, tile.T
    return out


def by_weights(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """With G formed, some units at a time, in one buffer."""
    (m, _, fan), units = a.shape, b.shape[2]
    most = max(1, _BYTES // (m * fan * b.dtype.itemsize))
    size = math.ceil(units / math.ceil(units / most))
    buffer, out = np.empty((m, size, fan), b.dtype), np.zeros((m, m), b.dtype)
    for k in range(0, units, size):
        part = b[:, :, k : k + size].swapaxes(1, 2)
        g = (
            buffer[:, : part.shape[1]]
            if part.shape[1] == size
            else np.empty((m, part.shape[1], fan), b.dtype)
        )
        np.matmul(part, a, out=g)
        flat = g.reshape(m, -1)
        out += flat @ flat.T  # NumPy sees that it is symmetric, and takes half of the operations
    return out


def lookup_kernel(ids: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ_tt' [id_it = id_jt'] b_it·b_jt' (m, m) of ids (m, T) and b (m, T, units): what came back to an id
    is summed in each row, then the rows in which it occurs are multiplied with each other."""
    m, units = len(ids), b.shape[2]
    rows = np.broadcast_to(np.arange(m)[:, None], ids.shape)
    order = np.lexsort((rows.ravel(), ids.ravel()))
    ids, rows = ids.ravel()[order], rows.ravel()[order]
    new = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1) | np.diff(rows, prepend=-1))
    sums = np.add.reduceat(b.reshape(-1, units)[order], new, axis=0)
    ids, rows = ids[new], rows[new]
    first = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
    out = np.zeros((m, m), b.dtype)
    for i, j in pairwise([*first, len(ids)]):
        out[np.ix_(rows[i:j], rows[i:j])] += sums[i:j] @ sums[i:j].T
    return out
