"""One-pass SGD with batch 1 as numba loops, W kept as (d, n): float32, fastmath, one thread."""

import math
from collections.abc import Callable

import numpy as np
from numba import njit

_ZERO, _ONE = np.float32(0), np.float32(1)
_TWO_OVER_ROOT_PI = np.float32(2 / math.sqrt(math.pi))


@njit(fastmath=True)
def _relu(h):
    return max(h, _ZERO), (_ONE if h > _ZERO else _ZERO)


@njit(fastmath=True)
def _tanh(h):
    t = math.tanh(h)
    return t, _ONE - t * t


@njit(fastmath=True)
def _erf(h):
    return math.erf(h), _TWO_OVER_ROOT_PI * math.exp(-h * h)


@njit(fastmath=True)
def _fast_tanh(h):
    """A rational approximation, as in Eigen and XLA: unlike `math.tanh`, LLVM can vectorise it."""
    f = np.float32
    h = min(max(h, f(-7.9988)), f(7.9988))
    q = h * h
    p = f(-8.60467152213735e-11) + q * (f(2.00018790482477e-13) + q * f(-2.76076847742355e-16))
    p = f(6.37261928875436e-04) + q * (f(1.48572235717979e-05) + q * (f(5.12229709037114e-08) + q * p))
    p = h * (f(4.89352455891786e-03) + q * p)
    r = f(2.26843463243900e-03) + q * (f(1.18534705686654e-04) + q * f(1.19825839466702e-06))
    t = p / (f(4.89352518554385e-03) + q * r)
    return t, _ONE - t * t


PLAIN = {"relu": _relu, "tanh": _tanh, "erf": _erf}
TUNED = {"relu": _relu, "tanh": _fast_tanh}


def plain_step(phi: Callable) -> Callable:
    """Straight loops along neurons, which LLVM vectorises."""

    @njit(fastmath=True)
    def step(a, w, x, y, eta, h, g):
        d, n = w.shape
        for j in range(n):
            h[j] = _ZERO
        for i in range(d):
            for j in range(n):
                h[j] += w[i, j] * x[i]
        f = _ZERO
        for j in range(n):
            h[j], g[j] = phi(h[j])
            f += a[j] * h[j]
        e = eta * (y - f / np.float32(n))
        for j in range(n):
            g[j] *= e * a[j]
            a[j] += e * h[j]
        for i in range(d):
            for j in range(n):
                w[i, j] += g[j] * x[i]

    return step


def tuned_step(phi: Callable) -> Callable:
    """The first product unrolled by hand over eight rows of W, so that h is read and written an
    eighth as often; d a multiple of 8."""

    @njit(fastmath=True)
    def step(a, w, x, y, eta, h, g):
        d, n = w.shape
        for j in range(n):
            h[j] = _ZERO
        for i in range(0, d, 8):
            x0, x1, x2, x3, x4, x5, x6, x7 = (
                x[i],
                x[i + 1],
                x[i + 2],
                x[i + 3],
                x[i + 4],
                x[i + 5],
                x[i + 6],
                x[i + 7],
            )
            w0, w1, w2, w3, w4, w5, w6, w7 = (
                w[i],
                w[i + 1],
                w[i + 2],
                w[i + 3],
                w[i + 4],
                w[i + 5],
                w[i + 6],
                w[i + 7],
            )
            for j in range(n):
                s = w0[j] * x0 + w1[j] * x1 + w2[j] * x2 + w3[j] * x3
                h[j] += s + w4[j] * x4 + w5[j] * x5 + w6[j] * x6 + w7[j] * x7
        f = _ZERO
        for j in range(n):
            h[j], g[j] = phi(h[j])
            f += a[j] * h[j]
        e = eta * (y - f / np.float32(n))
        for j in range(n):
            g[j] *= e * a[j]
            a[j] += e * h[j]
        for i in range(d):
            wi, xi = w[i], x[i]
            for j in range(n):
                wi[j] += g[j] * xi

    return step


def plain_loop(step: Callable) -> Callable:
    """Steps on fresh Gaussian x and y = tanh(x₁), drawn by numba's own `np.random`."""

    @njit(fastmath=True)
    def run(a, w, steps, eta):
        d, n = w.shape
        x, h, g = np.empty(d, np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
        for _ in range(steps):
            for i in range(d):
                x[i] = np.random.standard_normal()
            step(a, w, x, np.float32(math.tanh(x[0])), eta, h, g)

    return run


def tuned_loop(step: Callable) -> Callable:
    """The same with NumPy's fastest generator, a microsecond a step faster than `np.random`."""
    rng = np.random.Generator(np.random.SFC64(0))

    @njit(fastmath=True)
    def compiled(a, w, steps, eta, rng):
        d, n = w.shape
        x, h, g = np.empty(d, np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
        for _ in range(steps):
            for i in range(d):
                x[i] = rng.standard_normal()
            step(a, w, x, np.float32(math.tanh(x[0])), eta, h, g)

    return lambda a, w, steps, eta: compiled(a, w, steps, eta, rng)
