"""Laws of x: what the inputs are drawn from. A law may bring labels y of its own."""

import abc
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from .._checks import count, finite, fits, function, positive
from .._random import normal
from .._shown import shown
from .._tracing import on_device
from .._typing import Abstract, Dimension, TypeIs
from .gauss import gaussian_rule, sphere_rule

# A product rule is called affordable up to this many points: (order)^d with d ≤ 3.
MOST_NODES = 2**17


class AbstractLaw(eqx.Module):
    """Law of x ∈ R^d, possibly with labels: (x, y) ~ law."""

    d: Abstract[Dimension]

    @property
    @abc.abstractmethod
    def labelled(self) -> bool:
        """Whether draws come with a label y, so that no target is needed."""

    @abc.abstractmethod
    def sample(self, key: Array, m: int) -> tuple[Float[Array, "m d"], Array | None]:
        """m independent draws (x, y), y = None without labels; draw i depends on key and i only."""

    def rule(self, order: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray] | None:
        """Quadrature points (x, y, weights) of this law, or None where none is affordable."""
        return None

    def default_order(self) -> int | None:
        """The order to take when none is asked for; None where there is no rule."""
        return None

    def gaussians(self) -> "tuple[tuple[float, Gaussian, float | None], ...] | None":
        """(probability, centred Gaussian, label) of each component if that is what this law is."""
        return None


def _cast(x: np.ndarray | np.floating) -> Array:
    return on_device(np.asarray(x), jnp.result_type(float))


def affordable(order: int, d: int, points: int) -> int:
    """`order`, if a product rule of that many points fits."""
    if d > 3 or points > MOST_NODES:
        raise ValueError(
            f"A product rule of order {order} in d = {d} is too large: allowed are d <= 3 and at most "
            f"{MOST_NODES} points, this one would have {points:.3g}. Try a lower order, or "
            "expectation=wf.Sample(m)."
        )
    return order


def _product_order(d: int) -> int | None:
    """The order that about 10⁴ points allow: ten digits on smooth functions for d = 1 and 2, five
    for d = 3."""
    return {1: 256, 2: 96, 3: 24}.get(d)


def _dimension(name: str, d: object, least: int = 1) -> Dimension:
    """A whole number, or ∞ for laws that are only ever used through their symmetry."""
    return math.inf if d == math.inf else count(name, d, least=least)  # type: ignore[return-value]


def _finite_dimension(d: int) -> None:
    if math.isinf(d):
        raise ValueError(
            "x in d = inf cannot be drawn; it is seen through its symmetry alone: take problem.reduced(), or "
            "wf.limit(problem, …)."
        )


def _root(sigma: np.ndarray) -> np.ndarray:
    """R with Σ = RRᵀ; of numbers on a diagonal, their roots."""
    if sigma.ndim < 2:
        return np.asarray(np.sqrt(_not_negative(sigma)))
    if not np.allclose(sigma, sigma.T, rtol=1e-6, atol=1e-12):
        gap = np.abs(sigma - sigma.T).max()
        raise ValueError(
            f"Gaussian(covariance) must be symmetric, got entries that differ by {gap:.3g} "
            "from their mirror images. Try (C + C.T) / 2."
        )
    from scipy.linalg.lapack import dpstrf

    # With pivots, also of a singular Σ. Eigenvectors take seven times the work (d = 2000), and where threads
    # of BLAS share a busy machine 25 times as long: they wait for each other at every column.
    # Of correlations, so that small units of a coordinate are not taken for 0.
    sd = np.sqrt(np.maximum(np.diag(sigma), 0.0))
    unit = np.where(sd > 0, sd, 1.0)
    correlations = sigma / unit[:, None] / unit
    tolerance = len(sigma) * np.finfo(float).eps
    factor, pivots, rank, _ = dpstrf(correlations, lower=1, tol=tolerance)
    factor = np.tril(factor)
    factor[:, rank:] = 0.0
    root = np.empty_like(factor)
    root[np.ix_(pivots - 1, pivots - 1)] = factor
    if rank and np.abs(root @ root.T - correlations).max() <= 1e3 * tolerance:
        return unit[:, None] * root
    values, vectors = np.linalg.eigh(sigma)  # rounding has left a small negative one, or it is no covariance
    return (vectors * np.sqrt(_not_negative(values))) @ vectors.T


def _not_negative(values: np.ndarray) -> np.ndarray:
    """Eigenvalues of a covariance, with what rounding has left below 0 taken for 0."""
    if values.min() < -1e-6 * max(values.max(), 0.0) or values.max() <= 0:
        raise ValueError(
            f"Gaussian(covariance) must be positive semi-definite and not 0; its smallest "
            f"eigenvalue is {values.min():.3g}."
        )
    return np.asarray(np.maximum(values, 0.0))


class Gaussian(AbstractLaw):
    """x ~ N(0, Σ); Σ = I by default, else `covariance`: one number (Σ = number · I), (d,) (a diagonal)
    or (d, d). d = inf is legal where only the symmetry of x is used (`problem.reduced()`).

    >>> wf.Gaussian(3, covariance=[1.0, 1.0, 4.0]).d
    3"""

    d: Dimension = eqx.field(static=True)
    root: Array | None = eqx.field(default=None)  # R with Σ = RRᵀ, (d, d), or its diagonal (d,) or ()

    def __init__(self, d: float, covariance: ArrayLike | None = None):
        if np.ndim(d):
            raise ValueError(
                f"Gaussian(d) must be the dimension, got an array of shape {np.shape(d)}. Give Σ by name: "
                "wf.Gaussian(d, covariance=C)."
            )
        self.d = d = _dimension("Gaussian(d)", d)
        if covariance is None:
            self.root = None
            return
        sigma = finite("Gaussian(covariance)", covariance).astype(float)
        if sigma.shape not in ((), (d,), (d, d)):
            raise ValueError(
                f"Gaussian(covariance) must be one number or have shape ({d},) or ({d}, {d}), got "
                f"{sigma.shape}."
            )
        self.root = _cast(_root(sigma))

    @property
    def labelled(self):
        return False

    def colour(self, z: Array) -> Array:
        """R z for the rows of z: white noise to this law."""
        if self.root is None:
            return z
        root = self.root.astype(z.dtype)
        return z * root if root.ndim < 2 else z @ root.T

    def adjoint(self, w: Array) -> Array:
        """Rᵀ w for the rows of w: ⟨w, x⟩ = ⟨Rᵀw, z⟩ with white z."""
        if self.root is None:
            return w
        root = self.root.astype(w.dtype)
        return w * root if root.ndim < 2 else w @ root

    def at(self, d: int) -> "Gaussian":
        """The same law in another dimension, for Σ = number · I."""
        return Gaussian(d, None if self.root is None else self.root**2)

    def sample(self, key, m):
        _finite_dimension(self.d)
        return self.colour(normal(key, (m, self.d))), None

    def rule(self, order):
        z, weights = gaussian_rule(self.d, affordable(order, self.d, order**self.d))
        return np.asarray(self.colour(_cast(z))), None, weights

    def default_order(self):
        return _product_order(self.d)

    def gaussians(self):
        return ((1.0, self, None),)


class Sphere(AbstractLaw):
    """x ~ Unif(√d · S^{d−1}); d = inf is legal where only the symmetry of x is used.

    >>> x, _ = wf.Sphere(3).sample(key, 2)
    >>> jnp.sum(x**2, axis=1).round(6)
    Array([3., 3.], dtype=float64)"""

    d: Dimension = eqx.field(static=True)

    def __init__(self, d: float):
        self.d = _dimension("Sphere(d)", d, least=2)

    def at(self, d: int) -> "Sphere":
        """The same law in another dimension."""
        return Sphere(d)

    @property
    def labelled(self):
        return False

    def sample(self, key, m):
        _finite_dimension(self.d)
        z = normal(key, (m, self.d))
        return z * (math.sqrt(self.d) / jnp.linalg.norm(z, axis=1, keepdims=True)), None

    def rule(self, order):
        size = order if self.d == 2 else order * ((order + 1) // 2)
        points, weights = sphere_rule(self.d, affordable(order, self.d, size))
        return math.sqrt(self.d) * points, None, weights

    def default_order(self):
        return {2: 512, 3: 160}.get(self.d)


class Mixture(AbstractLaw):
    """Classes of centred Gaussians: y = labels_c and x ~ components_c with probability weights_c.

    >>> law = wf.Mixture((wf.Gaussian(3), wf.Gaussian(3, 4.0)), labels=(1.0, -1.0))
    >>> nodes = wf.Problem(x=law, neuron=wf.Neuron("relu")).sample(key, 4)
    >>> nodes.x.shape, nodes.y.shape
    ((4, 3), (4,))"""

    components: tuple[Gaussian, ...]
    labels: Float[Array, " c"]
    weights: Float[Array, " c"]
    d: Dimension = eqx.field(static=True)

    def __init__(self, components, labels, weights=None):
        listed = isinstance(components, list | tuple)
        if not listed or not components or not all(isinstance(c, Gaussian) for c in components):
            raise ValueError(
                f"Mixture(components) must be a list of one or more wf.Gaussian laws, got "
                f"{shown(components)}."
            )
        components = tuple(components)
        if len({c.d for c in components}) > 1:
            raise ValueError(
                f"Mixture(components) must live in one R^d, got d = {[c.d for c in components]}."
            )
        k = len(components)
        labels = finite("Mixture(labels)", labels)
        weights = finite("Mixture(weights)", np.full(k, 1 / k) if weights is None else weights)
        if labels.shape != (k,) or weights.shape != (k,):
            raise ValueError(
                f"Mixture(labels) and Mixture(weights) must have shape ({k},), one entry per component, got "
                f"{labels.shape} and {weights.shape}."
            )
        if (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
            raise ValueError(f"Mixture(weights) must be >= 0 and sum to 1, got {weights}.")
        self.components, self.d = components, components[0].d
        self.labels, self.weights = _cast(labels), _cast(weights)

    @property
    def labelled(self):
        return True

    def at(self, d: int) -> "Mixture":
        """The same classes in another dimension, for covariances number · I."""
        return Mixture([c.at(d) for c in self.components], self.labels, self.weights)

    def sample(self, key, m):
        _finite_dimension(self.d)
        of_class, of_x = jax.random.split(key)
        which = jax.random.categorical(of_class, jnp.log(self.weights), shape=(m,))
        z = normal(of_x, (m, self.d))
        x = jnp.zeros_like(z)
        for c, component in enumerate(self.components):
            x = jnp.where((which == c)[:, None], component.colour(z), x)
        return x, self.labels[which]

    def rule(self, order):
        affordable(order, self.d, len(self.components) * order**self.d)
        parts = [component.rule(order) for component in self.components]
        x = np.concatenate([p[0] for p in parts])
        y = np.concatenate([np.full(len(p[2]), float(v)) for p, v in zip(parts, self.labels, strict=True)])
        weights = np.concatenate([p[2] * float(w) for p, w in zip(parts, self.weights, strict=True)])
        return x, y, weights

    def default_order(self):
        return _product_order(self.d)

    def gaussians(self):
        return tuple(
            (self.weights[c], component, self.labels[c]) for c, component in enumerate(self.components)
        )


def two_gaussians(d: float, delta: float, subspace: int | None = None) -> Mixture:
    """y = ±1 with equal probability, x ~ N(0, (1 ± Δ)² I_d), as in Mei–Montanari–Nguyen 2018; with
    `subspace`, the two differ only in the first `subspace` coordinates, the others being N(0, I).

    >>> classes = wf.Problem(x=wf.two_gaussians(3, 0.8), neuron=wf.Neuron("relu"))
    >>> classes.sample(key, 4).y.shape
    (4,)"""
    d = _dimension("two_gaussians(d)", d)
    delta = positive("two_gaussians(delta)", delta, zero=True)
    if delta >= 1:
        raise ValueError(f"two_gaussians(delta) must be in [0, 1), got {delta}.")
    variances = [(1 + s * delta) ** 2 for s in (1, -1)]
    if subspace is not None:
        least = count("two_gaussians(subspace)", subspace)
        if not least < d < math.inf:
            raise ValueError(f"two_gaussians(subspace) must be below a finite d, got {subspace} and d = {d}.")
        fits(f"The variances of two Gaussians in R^{d}", 64.0 * d, "Use a smaller d.")
        variances = [np.where(np.arange(d) < least, v, 1.0) for v in variances]
    wide, narrow = (Gaussian(d, v) for v in variances)
    return Mixture([wide, narrow], [1.0, -1.0])


class Dataset(AbstractLaw):
    """A finite data set: rows of X with labels y, and weights (equal by default), which are scaled to
    sum to 1. `classes` are the names of the labels 0 … k − 1, if any; `notes` say what was done
    to the rows when they were read from a file.

    >>> data = wf.Dataset([[0.0, 1.0], [1.0, 0.0]], [1.0, -1.0], weights=[3.0, 1.0])
    >>> data.d, data.weights
    (2, Array([0.75, 0.25], dtype=float64))"""

    x: Float[Array, "m d"]
    y: Array
    weights: Float[Array, " m"]
    d: Dimension = eqx.field(static=True)
    equal: bool = eqx.field(static=True)
    classes: tuple[str, ...] = eqx.field(static=True)
    notes: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, X, y, weights=None, *, classes=(), notes=()):  # noqa: N803 (the usual name of a data matrix)
        x = finite("Dataset(X)", X)
        y = finite("Dataset(y)", y)
        if x.ndim != 2 or 0 in x.shape:
            hint = {1: " Try X[:, None].", 2: ""}.get(x.ndim, " Try X.reshape(len(X), -1).")
            raise ValueError(f"Dataset(X) must have shape (m, d), m, d >= 1, got {x.shape}.{hint}")
        if y.shape[:1] != x.shape[:1] or y.ndim > 2:
            raise ValueError(
                f"Dataset(y) must have one label or one row of labels for each of the {x.shape[0]} rows "
                f"of X, got shape {y.shape}."
            )
        m = x.shape[0]
        self.equal, self.classes, self.notes = weights is None, tuple(classes), tuple(notes)
        omega = np.full(m, 1 / m) if weights is None else finite("Dataset(weights)", weights)
        if omega.shape != (m,) or (omega < 0).any() or not omega.sum() > 0:
            raise ValueError(
                f"Dataset(weights) must be {m} numbers >= 0, not all 0, got shape {omega.shape} with "
                f"sum {omega.sum()} and least entry {omega.min(initial=np.inf)}."
            )
        float_type = x.dtype if x.dtype.kind == "f" else np.dtype(float)
        dtype = jax.dtypes.canonicalize_dtype(float_type)
        self.x = jnp.asarray(x, dtype)
        # labels 0…255 as integers with a sign, so that −y is minus y; those too large for JAX as floats
        largest = np.iinfo(jax.dtypes.canonicalize_dtype(int)).max
        whole = y.dtype.kind != "f" and np.abs(y.astype(float)).max() <= largest
        self.y = jnp.asarray(y, int if whole else dtype)
        self.weights = jnp.asarray(omega / omega.sum(), dtype)
        self.d = x.shape[1]

    @property
    def m(self) -> int:
        return self.x.shape[0]

    @property
    def labelled(self):
        return True

    def sample(self, key, m):
        """Rows drawn with replacement, with probability equal to their weights."""
        if self.equal:
            rows = jax.random.randint(key, (m,), 0, self.m)
        else:
            rows = jax.random.choice(key, self.m, (m,), p=self.weights)
        return self.x[rows], self.y[rows]


class Sampler(AbstractLaw):
    """Any law: `fn(key, m)` returns x (m, d), or (x, y) if `labelled`. Row i of `fn(key, m)` should
    depend on key and i alone, as draws by `jax.random` do."""

    fn: Callable = eqx.field(static=True)
    d: Dimension = eqx.field(static=True)
    brings_labels: bool = eqx.field(static=True)

    def __init__(self, fn, d: int, labelled: bool = False):
        self.fn, self.d = function("Sampler(fn)", fn), count("Sampler(d)", d)
        self.brings_labels = bool(labelled)
        try:
            drawn = jax.eval_shape(lambda k: fn(k, 3), jax.random.key(0))
        except Exception as error:
            raise ValueError(f"Sampler(fn) cannot be traced by JAX as fn(key, 3): {error}") from error
        expected = f"x of shape (3, {d})" + (" and y of 3 rows, as a tuple" if labelled else "")
        pair = drawn if isinstance(drawn, tuple) else (drawn,)
        shapes = [getattr(v, "shape", None) for v in pair]
        good = isinstance(drawn, tuple) == self.brings_labels and len(pair) == 1 + self.brings_labels
        if not good or shapes[0] != (3, d) or (labelled and (shapes[1] or ())[:1] != (3,)):
            hint = "" if labelled else " Set labelled=True if fn returns (x, y)."
            raise ValueError(f"Sampler(fn): fn(key, 3) must return {expected}, got {drawn}.{hint}")

    @property
    def labelled(self):
        return self.brings_labels

    def sample(self, key, m):
        drawn = self.fn(key, m)
        return drawn if self.brings_labels else (drawn, None)


def check_sample_fits(d: int, m: int) -> None:
    """Refuse a fixed sample of m points in R^d that memory cannot hold."""
    _finite_dimension(d)
    size = m * (d + 2) * jnp.result_type(float).itemsize
    fits(f"A sample of {m} points in R^{d}", 2 * size, "Use a smaller m, or one-pass wf.SGD.")


def is_dataset(value: object) -> TypeIs[Dataset]:
    """Whether a law of x is that of finitely many rows."""
    return isinstance(value, Dataset)
