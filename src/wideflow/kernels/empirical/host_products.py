"""Σ_t A_t ⊗ B_t of every row against those of all rows, by the host's products of matrices: the compiler's
own for a product per row are many times slower there."""

import math

import numpy as np

_BYTES = 2**27  # of gradients, or of pairs of positions, that are held at once
_LEAST = 64  # rows below which the half of a symmetric product that is saved is lost to its overhead


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
        _add_symmetric(out, g.reshape(m, -1))
    return out


def _add_symmetric(out: np.ndarray, g: np.ndarray) -> None:
    """g gᵀ: one half of the rows against the other, then each half in the same way."""
    m = len(g)
    if m < 2 * _LEAST:
        out += g @ g.T
        return
    half = m // 2
    block = g[:half] @ g[half:].T
    out[:half, half:] += block
    out[half:, :half] += block.T
    _add_symmetric(out[:half, :half], g[:half])
    _add_symmetric(out[half:, half:], g[half:])
