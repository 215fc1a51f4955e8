"""Finding the symmetry of (law of x, target): R^d = signal ⊕ blocks in which only a radius matters."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._shown import shown
from .laws import AbstractLaw, Gaussian, Mixture, Sphere, _cast
from .neurons import AbstractNeuron, is_ridge
from .radial import RadialGaussian, RadialSphere
from .targets import AbstractTarget, MultiIndex, Ridges

_SAME = 1e-6  # relative: eigenvalues closer than this are one, as covariances may come in float32


class NoSymmetryError(ValueError):
    """There is no reduction: the message says why."""


class Symmetry(eqx.Module):
    """R^d = span(signal) ⊕ block_1 ⊕ … ⊕ block_p, with a symmetry O(d_i) in each block: the law of x
    and the target do not change when a block is turned.

    `signal` has orthonormal rows (None for d = ∞, where it is the first k axes); `spaces_i` is the
    eigenspace that block i lies in, as a mask of axes (d,), a projector (d, d), or None for all of R^d."""

    signal: Float[Array, "k d"] | None
    spaces: tuple[Array | None, ...]
    k: int = eqx.field(static=True)
    blocks: tuple[float, ...] = eqx.field(static=True)

    def component(self, i: int, w: Float[Array, "*r n d"]) -> Float[Array, "*r n d"]:
        """The part of the rows of w that lies in block i."""
        assert self.signal is not None
        signal = self.signal.astype(w.dtype)
        return _project(self.spaces[i], w - (w @ signal.T) @ signal)

    def weights(self, w: Float[Array, "*r n d"]) -> Float[Array, "*r n k_and_p"]:
        """(s, r): the rows of w along the signal, and their lengths in each block."""
        assert self.signal is not None
        xp = w.__array_namespace__()  # of JAX, or on the host of NumPy
        lengths = [xp.linalg.norm(self.component(i, w), axis=-1) for i in range(len(self.blocks))]
        return xp.concat([w @ self.signal.astype(w.dtype).T, xp.stack(lengths, axis=-1)], axis=-1)

    def rows(self, x: Float[Array, "m d"]) -> Float[Array, "m k_and_p"]:
        """x̄ = (x_S, q), q_i = |x_i|/√d_i: rows of x as a reduced problem has them."""
        scales = [1.0] * self.k + [1 / math.sqrt(dim) for dim in self.blocks]
        return self.weights(x) * jnp.asarray(scales, x.dtype)


def _project(space: Array | None, w: Array) -> Array:
    if space is None:
        return w
    return w * space.astype(w.dtype) if space.ndim == 1 else w @ space.astype(w.dtype)


def find(law: AbstractLaw, target: AbstractTarget | None, neuron: AbstractNeuron) -> Symmetry:
    """The symmetry, or a `NoSymmetryError` that says why there is none."""
    if isinstance(law, RadialGaussian | RadialSphere):
        raise NoSymmetryError("The problem is a reduced one already; pass the problem that it was made from.")
    if not is_ridge(neuron):
        raise NoSymmetryError(f"A reduction needs neurons a φ(⟨w, x⟩ + b), got {shown(neuron)}.")
    if not isinstance(law, Gaussian | Sphere | Mixture):
        raise NoSymmetryError(
            f"x ~ {type(law).__name__} has no known symmetry; Gaussian, Sphere and Mixture laws have one. "
            "Use the problem as it is, with many particles."
        )
    if isinstance(target, AbstractTarget) and not isinstance(target, Ridges | MultiIndex):
        raise NoSymmetryError(
            "The target is any function of x, so nothing is known about its symmetry. If it depends on a few "
            "directions alone, say so: wf.multi_index(fn, k, directions)."
        )
    if math.isinf(law.d):
        k = 0 if target is None else target.k if isinstance(target, MultiIndex) else 1
        return Symmetry(None, (None,), k, (math.inf,))
    return _in_finite_dimension(law, target)


def _in_finite_dimension(law: AbstractLaw, target: AbstractTarget | None) -> Symmetry:
    directions, d = _directions(target, law.d), law.d
    signal, spaces, blocks = [], [], []
    for space, dim in _eigenspaces(law):
        own = _rows(np.asarray(_project(space, jnp.asarray(directions))))
        rest = dim - len(own)
        if rest == 1:  # a block of one dimension is a coordinate of its own, but for a sign
            signal.append(_rows(np.concatenate([own, _one_axis(space, own, d)])))
            continue
        signal.append(own)
        if rest:
            spaces.append(space)
            blocks.append(float(rest))
    k = sum(len(rows) for rows in signal)
    if not blocks:
        raise NoSymmetryError(
            f"There is no symmetry: beside the signal, in {len(_rows(directions))} of {d} dimensions, x "
            "must be isotropic in a block of two or more (one eigenvalue of its covariance). Use the problem "
            "as it is: a wide network and wf.GradientFlow."
        )
    rows = _cast(np.concatenate(signal).reshape(k, d))
    return Symmetry(rows, tuple(spaces), k, tuple(blocks))


def _directions(target: Any, d: int) -> np.ndarray:
    if target is None:
        return np.zeros((0, d))
    if isinstance(target, Ridges):
        return np.asarray(target.directions(d, jnp.result_type(float)), float)
    return np.eye(target.k, d) if target.directions is None else np.asarray(target.directions, float)


def _rows(vectors: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of the rows; the rows themselves where they form one."""
    size = np.linalg.norm(vectors, axis=1)
    vectors = vectors[size > _SAME * size.max(initial=1e-300)]
    if len(vectors) == 0:
        return vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    if np.allclose(unit @ unit.T, np.eye(len(unit)), atol=_SAME):
        q, r = np.linalg.qr(unit.T)
        return (q * np.sign(np.diag(r))).T  # the same rows, orthogonal to all digits
    _, values, basis = np.linalg.svd(unit, full_matrices=False)
    return basis[values > _SAME * values[0]]


def _one_axis(space: Array | None, own: np.ndarray, d: int) -> np.ndarray:
    """The one direction of an eigenspace that is left beside its rows `own`."""
    left = np.asarray(_project(space, jnp.eye(d)))
    left = left - (left @ own.T) @ own
    return left[[np.argmax(np.linalg.norm(left, axis=1))]]


def _eigenspaces(law: AbstractLaw) -> list[tuple[Array | None, int]]:
    """Spaces on which every component of the law is isotropic, with their dimensions."""
    d = law.d
    if isinstance(law, Sphere):
        return [(None, d)]
    roots = [np.asarray(1.0 if g.root is None else g.root, float) for _, g, _ in law.gaussians() or ()]
    if all(root.ndim == 0 for root in roots):
        return [(None, d)]
    if all(root.ndim < 2 for root in roots):
        values = np.stack([np.broadcast_to(root, d) for root in roots])
        return [(_cast(mask), int(mask.sum())) for mask in _groups(values)]
    squares = [_matrix(root, d) for root in roots]
    weights = np.random.default_rng(0).uniform(1, 2, len(squares))
    _, basis = np.linalg.eigh(sum(w * s for w, s in zip(weights, squares, strict=True)))
    rotated = [basis.T @ s @ basis for s in squares]
    off = max(np.abs(s - np.diag(np.diag(s))).max() / np.abs(s).max() for s in rotated)
    if off > _SAME:
        raise NoSymmetryError(
            "The covariances of the components have no common eigenvectors, so no symmetry is shared by all."
        )
    groups = _groups(np.stack([np.sqrt(np.maximum(np.diag(s), 0)) for s in rotated]))
    return [(_cast((basis * mask) @ basis.T), int(mask.sum())) for mask in groups]


def _matrix(root: np.ndarray, d: int) -> np.ndarray:
    return np.eye(d) * root**2 if root.ndim < 2 else root @ root.T


def _groups(values: np.ndarray) -> list[np.ndarray]:
    """Masks of the columns of `values` that are the same, widest values first."""
    scale, left, masks = np.abs(values).max(), np.ones(values.shape[1], bool), []
    while left.any():
        first = values[:, [int(np.argmax(left))]]
        mask = left & (np.abs(values - first) <= _SAME * scale).all(axis=0)
        masks.append(mask)
        left = left & ~mask
    return masks


def reduced_law(symmetry: Symmetry, law: AbstractLaw, target: AbstractTarget | None) -> AbstractLaw:
    """The law of (x_S, q), q_i = |x_i|/√d_i."""
    cuts = _cuts(reduced_target(symmetry, target))
    if isinstance(law, Sphere) and not math.isinf(law.d):
        return RadialSphere(symmetry.k, int(symmetry.blocks[0]), cuts)
    components: PyTree = ((1.0, None, None),) if isinstance(law, Sphere) else law.gaussians()
    deviations = [_deviations(symmetry, gaussian) for _, gaussian, _ in components]
    signal, radii = (_cast(np.stack(rows)) for rows in zip(*deviations, strict=True))
    labels = None if components[0][2] is None else _cast(np.array([float(y) for *_, y in components]))
    weights = _cast(np.array([float(p) for p, *_ in components]))
    return RadialGaussian(weights, labels, signal, radii, symmetry.blocks, cuts)


def _deviations(symmetry: Symmetry, gaussian: Gaussian | None) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of x along the signal, and in each block."""
    k, p = symmetry.k, len(symmetry.blocks)
    if gaussian is None or gaussian.root is None:
        return np.ones(k), np.ones(p)
    if gaussian.root.ndim == 0:
        return np.full(k, float(gaussian.root)), np.full(p, float(gaussian.root))
    assert symmetry.signal is not None
    size = lambda rows: np.asarray(jnp.linalg.norm(gaussian.adjoint(rows), axis=1))
    probe = jnp.asarray(np.random.default_rng(0).standard_normal((1, gaussian.d)))
    inside = [symmetry.component(i, probe) for i in range(p)]
    radii = [size(v)[0] / float(jnp.linalg.norm(v)) for v in inside]
    return size(symmetry.signal) if k else np.ones(0), np.array(radii)


def reduced_target(symmetry: Symmetry, target: Any) -> AbstractTarget | None:
    """The target as a function of (x_S, q)."""
    if target is None:
        return None
    k, p = symmetry.k, len(symmetry.blocks)
    if symmetry.signal is None:
        inside = np.eye(k)
    else:
        inside = _directions(target, symmetry.signal.shape[1]) @ np.asarray(symmetry.signal, float).T
    rows = _cast(np.concatenate([inside, np.zeros((len(inside), p))], axis=1))
    if isinstance(target, Ridges):
        return Ridges(target.link, target.a, rows, target.b)
    return MultiIndex(target.fn, target.k, rows)


def _cuts(target: AbstractTarget | None) -> tuple[float, ...]:
    """Where a sum of ridges in one direction has kinks."""
    if not isinstance(target, Ridges) or not target.link.kinks:
        return ()
    slopes = np.asarray(target.w, float)[:, 0]
    shifts = np.zeros(len(slopes)) if target.b is None else np.asarray(target.b, float)
    cuts = [(kink - b) / w for kink in target.link.kinks for w, b in zip(slopes, shifts, strict=True) if w]
    return tuple(sorted({float(c) for c in cuts}))
