"""Tangent kernels against neural-tangents and torch.func: the same numbers, faster, in less memory."""

import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import peer
from .rows import MATMUL_FLOPS, Row, large_matmul, ratios, seconds
from .worker import Worker, WorkerFailedError, results

SIZES, WIDE = (784, 1024, 1024, 1024, 10), (784, 4096, 4096, 4096, 10)
N, N_INFINITE = 300, 2000
SECONDS, GIGABYTES = 60.0, 8.0  # what a peer may take before its N is called too large
OURS = "ntk_ours"
ACTIVATIONS: dict[str, dict[str, Any]] = {
    "relu": {"w_std": 2**0.5},
    "erf": {"w_std": 1.5},
    "gelu": {"w_std": 1.5},
    "leaky_relu": {"w_std": 1.3, "options": {"alpha": 0.2}},
    "sin": {"w_std": 1.5},
    "cos": {"w_std": 1.5},
}
DEPTHS = (1, 2, 3, 5)


class Method(NamedTuple):
    """A peer's way to the kernel at given weights."""

    name: str
    module: str
    job: dict[str, Any]
    ours: bool = False  # the interpreter: that of this process, or that of neural-tangents

    @property
    def python(self) -> Path | str:
        return sys.executable if self.ours else peer.python()


def _nt(implementation: str) -> Method:
    return Method(implementation, "neural_tangents.empirical", {"implementation": implementation})


FASTEST = _nt("STRUCTURED_DERIVATIVES")
DEFAULT = _nt("JACOBIAN_CONTRACTION")
PRODUCTS = _nt("NTK_VECTOR_PRODUCTS")
RECIPE = Method("torch.func's recipe", "torch_ntk", {}, ours=True)


def measure(quick: bool) -> list[Row]:
    """Agreement in float64 on small problems; then speed, peer and wideflow taking turns in processes
    of their own, the MLP 784-1024-1024-1024-10 in float32 with full 10×10 blocks, and the infinite relu MLP
    in float64. A peer that cannot do N = 300 within a minute and 8 GB is measured at the largest N it can."""
    trials = 2 if quick else 7
    speeds = ((FASTEST, 3.0), (PRODUCTS, None), (DEFAULT, 100.0), (RECIPE, 100.0))
    rows = [*_infinite_agreement(), *_empirical_agreement()]
    rows += [_speed(method, asked, trials) for method, asked in speeds]
    return [*rows, _memory(SIZES, 0.5), _memory(WIDE, 2.0), _infinite_speed(trials)]


def cases() -> dict[str, dict[str, Any]]:
    """Every infinite network that both sides know; "x" are rows, "images" are images."""
    found = {
        f"{name} depth {depth}": {"activation": name, "depth": depth, "x": "x", **options}
        for name, options in ACTIVATIONS.items()
        for depth in DEPTHS
    }
    found["relu depth 3, biases"] = {"activation": "relu", "depth": 3, "x": "x", "b_std": 1.0}
    found["relu depth 3, x and x'"] = {"activation": "relu", "depth": 3, "x": "x", "x2": "others"}
    for readout in ("flatten", "gap"):
        conv = {"activation": "relu", "depth": 2, "x": "images", "w_std": 2**0.5, "readout": readout}
        found[f"CNN {readout}"] = conv
        found[f"CNN {readout}, pooled"] = conv | {"pool_after": 1}
    return found


def inputs(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


def weights(sizes: tuple[int, ...], dtype: str = "float32") -> dict[str, np.ndarray]:
    """W_l ~ N(0, 1) of shape (fan_in, fan_out): the scale is in front."""
    draw = np.random.default_rng(1)
    shapes = enumerate(pairwise(sizes))
    return {f"W{layer}": draw.normal(size=shape).astype(dtype) for layer, shape in shapes}


def _gap(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference over the largest entry."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def _infinite_agreement() -> Iterator[Row]:
    draw = np.random.default_rng(2)
    arrays = {"x": draw.normal(size=(12, 7)), "others": draw.normal(size=(9, 7))}
    arrays["images"] = draw.normal(size=(6, 8, 8, 3))
    job = {"cases": cases()}
    ours = results(OURS, job, arrays)
    theirs = results("neural_tangents.infinite", job, arrays, python=peer.python())
    for which in ("nngp", "ntk"):
        gaps = {name: _gap(ours[f"{name}/{which}"], theirs[f"{name}/{which}"]) for name in job["cases"]}
        worst = max(gaps, key=gaps.__getitem__)
        what = f"infinite {which} of {len(gaps)} networks, from neural-tangents'"
        # No aim below: neural-tangents itself is off by 1e-8 on the diagonal of relu's NTK.
        yield Row(what, (gaps[worst],), 1e-6, at_most=True, note=f"worst: {worst}")


def _empirical_agreement() -> Iterator[Row]:
    arrays = weights((7, 16, 16, 3), "float64") | {"x": inputs(9, 7), "x2": inputs(5, 7) + 0.5}
    for method in (FASTEST, DEFAULT, PRODUCTS, RECIPE):
        gaps = {}
        for activation in ("relu", "erf", "tanh"):
            job = {"activation": activation, "w_std": 1.3, "dtype": "float64"}
            theirs = results(method.module, job | method.job, arrays, python=method.python)["ntk"]
            gaps[activation] = _gap(results(OURS, job, arrays)["ntk"], theirs)
        note = ", ".join(f"{name} {gap:.1e}" for name, gap in gaps.items())
        what = f"kernel at given weights, from {method.name}"
        yield Row(what, (max(gaps.values()),), 1e-6, 1e-12, at_most=True, note=note)


JOB = {"activation": "relu", "w_std": 2**0.5, "dtype": "float32"}


def _arrays(n: int, sizes: tuple[int, ...] = SIZES) -> dict[str, np.ndarray]:
    return weights(sizes) | {"x": inputs(n, sizes[0]).astype("float32")}


@contextmanager
def _largest(method: Method) -> Iterator[tuple[int, Worker, str]]:
    """A worker at the largest of N = 300, 150, 75, … that it can do, and why not more."""
    n, why = N, ""
    limits = {"python": method.python, "timeout": SECONDS, "memory_gb": GIGABYTES}
    while True:
        try:
            worker = Worker(method.module, JOB | method.job, _arrays(n), **limits).__enter__()
            break
        except WorkerFailedError as failed:
            why = f"N = {n}: {failed}"
            n //= 2
            if n < 2:
                raise
    try:
        yield n, worker, why
    finally:
        worker.__exit__()


def operations(n: int, sizes: tuple[int, ...] = SIZES) -> tuple[float, float]:
    """Of the blocks by K = Σ_l A_l A_lᵀ ∘ B_l B_lᵀ, products of matrices alone: with the half of every B Bᵀ
    that its symmetry leaves, the least there is in this form, and with all of it. For O outputs and units u_l
    the products B_l B_lᵀ take 2 (nO)² u_l, the ways forward and back 2 n u_l u_l+1 and O times as many."""
    outputs = sizes[-1]
    grams = sum(2.0 * (n * outputs) ** 2 * units for units in sizes[1:-1])
    forward = sum(2.0 * n * one * other for one, other in pairwise(sizes))
    back = sum(2.0 * n * outputs * one * other for one, other in pairwise(sizes[1:-1]))
    return grams / 2 + forward + back, grams + forward + back


def _bound(turns: list[dict[str, float]], n: int) -> str:
    """What could be gained at most: all products at the rate of the machine's large ones, taken here."""
    least, whole = operations(n)
    product = large_matmul()
    rate = MATMUL_FLOPS / min(seconds(product) for _ in range(4))
    ours, theirs = (statistics.median(turn[name] for turn in turns) for name in ("ours", "peer"))
    shares = f"ours {least / ours / rate:.0%} and theirs {whole / theirs / rate:.0%} of the matmul rate"
    return (
        f"{least / 1e9:.0f} Gflop at least, {whole / 1e9:.0f} without symmetry: {whole / least:.2g} at one "
        f"rate, {theirs * rate / least:.2g} at the full one ({shares})"
    )


def _speed(method: Method, asked: float | None, trials: int) -> Row:
    with _largest(method) as (n, theirs, why), Worker(OURS, JOB, _arrays(n)) as ours:
        turns = _turns({"ours": ours, "peer": theirs}, trials)
        gap = _gap(ours.arrays["ntk"], theirs.arrays["ntk"])
        note = f"their peak {theirs.gigabytes:.2g} GB, ours {ours.gigabytes:.2g}; apart {gap:.0e}"
    note = f"{note}; {_bound(turns, n)}" if method == FASTEST else note
    what = f"NTK blocks 784-3×1024-10, N = {n}, times faster than {method.name}"
    return Row(what, ratios(turns, "peer"), asked, note=f"{note}; {why}" if why else note)


def _turns(workers: dict[str, Worker], trials: int) -> list[dict[str, float]]:
    """Seconds of every worker in every trial, by its own clock; the first run was the compiling one."""
    return [{name: worker.turn() for name, worker in workers.items()} for _ in range(trials)]


def _memory(sizes: tuple[int, ...], asked: float) -> Row:
    with Worker(OURS, JOB, _arrays(N, sizes)) as ours:
        what = f"NTK blocks {sizes[0]}-3×{sizes[1]}-{sizes[-1]}, N = {N}, GB above imports"
        return Row(what, (ours.gigabytes,), asked, at_most=True)


def _infinite_speed(trials: int) -> Row:
    case = {"activation": "relu", "depth": 3, "w_std": 2**0.5, "x": "x"}
    job = {"cases": {"relu": case}, "get": ["ntk"]}
    arrays = {"x": inputs(N_INFINITE, SIZES[0])}
    peers = Worker("neural_tangents.infinite", job, arrays, python=peer.python())
    with peers as theirs, Worker(OURS, job, arrays) as ours:
        turns = _turns({"ours": ours, "peer": theirs}, trials)
        exact = 8 * (arrays["x"] ** 2).mean(1)  # K(x, x) = (L+1) w_std²|x|²/d
        off = [_gap(np.diag(worker.arrays["relu/ntk"]), exact) for worker in (ours, theirs)]
        gap = _gap(ours.arrays["relu/ntk"], theirs.arrays["relu/ntk"])
    note = f"apart {gap:.0e}; diagonal from the exact one: ours {off[0]:.0e}, theirs {off[1]:.0e}"
    what = f"infinite relu NTK depth 3, N = {N_INFINITE}, times faster than neural-tangents"
    return Row(what, ratios(turns, "peer"), 1.5, note=note)
