"""A model before and after training, as every measurement of its movement sees it."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ..._checks import function
from ..._data import Data
from ..._tracing import jit
from ...kernels.empirical.ntk import empirical_ntk
from ...kernels.empirical.sites import Structure, hidden, site_kernels, structure
from ...kernels.function import Batch, Model, model, model_by_shape, samples
from ...kernels.parameters import check_finite, rates_of, same_tree, split
from .plan import Groups, Layer
from .tiles import Kernels

_GENERIC = 2**30  # bytes of gradients of leaves without a structure, up to which all rows are taken at once
_ROWS = 512  # of x at a time: enough for products at the full rate, few enough for hidden layers in memory


class BufferMove(NamedTuple):
    """Buffers that moved (running statistics), and are held: their `share` ‖Δ − Δf‖/‖Δ‖ of the change Δ of
    the model with its own buffers at each end, Δf being that with weights alone; and the rms of f with
    its own buffers after training."""

    names: tuple[str, ...]
    share: float
    ft: float


class AbstractModel(abc.ABC):
    """f(x; W) on m rows of x with weights W before (`when` = 0) and after (1) training, in NumPy."""

    m: int
    outputs: int  # O

    @abc.abstractmethod
    def weights(self, when: int) -> dict[str, np.ndarray]:
        """The weights that train, by name."""

    @abc.abstractmethod
    def seen(self, when: int, rows: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray] | None]:
        """f on those rows, (k, O), and h of every hidden layer, (k, …), by name, None where they are not
        known."""

    @abc.abstractmethod
    def linear(self, rows: np.ndarray) -> np.ndarray:
        """f_lin(x; W_t) = f(x; W_0) + ⟨∇f(x; W_0), W_t − W_0⟩, (k, O)."""

    @abc.abstractmethod
    def kernels(self, when: int, rows: np.ndarray, groups: Groups, done: Callable[[], None]) -> Kernels:
        """Σ_k (J v_k)(J v_k)ᵀ over vectors v_k of outputs, of each of the weights: the mean over outputs of
        the tangent kernel for those of `plan.projected`. `done` is called after each vector."""

    def layers(self) -> list[Layer]:
        """Sizes of the products with weights, from which the cost is known; none where it is small."""
        return []

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return 4

    def buffers(self, rows: np.ndarray, f0: np.ndarray, ft: np.ndarray) -> "BufferMove | None":
        """What moved besides weights, where f0 and ft are the outputs on those rows with it held."""
        return None

    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers should know."""
        return ()


class JaxModel(AbstractModel):
    """Any JAX function f(params, x) that acts row by row; leaves that are not real arrays are held fixed.

    `names` says what the leaves are called; those that share a name count as one. `kernels(params, x)` gives
    the kernels by those names, where there is a better way than the general one. `kept` says which entries
    of the last axis of weights and features count, all by default."""

    def __init__(
        self, f, before, after, x, *, features=None, rates=None, names=None, kernels=None, kept=None
    ):
        self._kept = kept
        self.x = samples("x", x)
        self.m = len(self.x)
        same_tree("params_before", before, "params_after", after)
        _runs(function("f", f), before, self.x, "f(params, x)" if names is None else "The state")
        # A model of others may be random, or mix rows, and is then refused; states do neither.
        self._before = (model if names is None else model_by_shape)(f, before, self.x)
        check_finite("params_before", before, "Take the weights of the start of training.")
        self.outputs = self._before.outputs
        self._params = before, after
        self._f, self._features, self._kernels = f, features, kernels
        self._found: Structure | None = None
        if features is not None:
            function("features", features)
        self._rates = rates
        rates_of(rates, self._before.moving)
        self._names = names or _paths(self._before.moving)

    def weights(self, when):
        leaves = [self._counted(leaf) for leaf in jax.tree.leaves(split(self._params[when])[0])]
        return {name: _joined(name, self._names, leaves) for name in dict.fromkeys(self._names)}

    def seen(self, when, rows):
        f = self._over(rows, lambda x: _value(self._f, self._params[when], x))
        return f, self._hidden(when, rows)

    def linear(self, rows):
        return self._over(rows, lambda x: _linear(self._f, *self._params, x))

    def _hidden(self, when: int, rows: np.ndarray) -> dict[str, np.ndarray] | None:
        x = jnp.asarray(self.x[rows])
        if self._features is not None:
            named = by_name(_value(self._features, self._params[when], x), len(rows))
            return {name: self._counted(h) for name, h in named.items()}
        found = self._structure()
        if found is None or len(found.sites) < 2:
            return None
        values = hidden(self._model(when), found, x)[:-1]
        return dict(zip(_site_names(found, self._names), map(np.asarray, values), strict=False))

    def _counted(self, values: Any) -> np.ndarray:
        return np.asarray(values) if self._kept is None else np.asarray(values)[..., self._kept]

    @property
    def itemsize(self):
        return self._before.dtype.itemsize

    def layers(self):
        found = self._structure()
        if found is None:
            return []
        products = [Layer(s.positions, s.fan, s.units) for s in found.sites if not s.lookup]
        return products + [Layer(1, self._before.leaves[i].size, 1) for i in found.generic]

    def kernels(self, when, rows, groups, done):
        params, x, found = self._params[when], self.x[rows], self._structure()
        if self._kernels is not None:
            parts = self._kernels(params, x)
            return Kernels(parts, np.sum([np.asarray(K, float) for K in parts.values()], 0)[None])
        assert found is not None
        rates = np.asarray(rates_of(self._rates, self._before.moving), float)
        if sum(self._before.leaves[i].size for i in found.generic) * len(x) * self.itemsize > _GENERIC:
            return self._generic(params, x, groups, done)
        kernels = site_kernels(self._model(when), found, np.asarray(x), groups, rates, done)
        return Kernels(dict(zip(self._names, kernels.parts, strict=True)), kernels.terms)

    def _generic(self, params: PyTree, x: Batch, groups: Groups, done: Callable) -> Kernels:
        """By Jacobians of tiles of rows, where the program hides its products (in a loop, for example)."""
        parts = {name: np.zeros((len(x), len(x))) for name in self._names}
        terms = []
        for group in groups:
            f = Projected(self._f, jnp.asarray(group, self._before.dtype))
            tree = empirical_ntk(f, params, x, form="trace", rates=self._rates, per_leaf=True)
            each = [len(group) * np.asarray(K, float) for K in jax.tree.leaves(tree)]
            parts = {name: parts[name] + K for name, K in zip(self._names, each, strict=True)}
            terms.append(sum(each))
            for _ in group:
                done()
        return Kernels(parts, np.stack(terms))

    def _model(self, when: int) -> Model:
        return Model(self._f, *split(self._params[when]), self._before.outputs)

    def _structure(self) -> Structure | None:
        if self._kernels is not None:
            return None
        if self._found is None:
            self._found = structure(self._before, self.x)
        return self._found

    def _over(self, rows: np.ndarray, call: Callable[[Array], Array]) -> np.ndarray:
        parts = [np.asarray(call(jnp.asarray(self.x[part]))) for part in pieces(rows)]
        return np.concatenate(parts).reshape(len(rows), -1)


def _runs(f: Callable, params: PyTree, x: Batch, name: str) -> None:
    """An error inside f says what it was called on: most often x is of another dimension."""
    params = eqx.combine(*split(params))
    try:
        eqx.filter_eval_shape(f, params, x)
    except Exception as error:
        raise ValueError(f"{name} failed on x of shape {x.shape}: {error}") from error


def _joined(name: str, names: list[str], leaves: list) -> np.ndarray:
    """All weights of one name in one array."""
    return np.concatenate(
        [np.ravel(leaf) for other, leaf in zip(names, leaves, strict=True) if other == name]
    )


def pieces(rows: np.ndarray) -> list[np.ndarray]:
    """Rows in pieces that fit in memory with their hidden layers."""
    return [rows[i : i + _ROWS] for i in range(0, len(rows), _ROWS)]


class Projected(eqx.Module):
    """v_k·f for vectors (k, O) of outputs."""

    f: Callable
    vectors: Array

    def __call__(self, params: PyTree, x: Array) -> Array:
        return self.f(params, x).reshape(x.shape[0], -1) @ self.vectors.T


def _site_names(found: Structure, names: list[str]) -> list[str]:
    """Of the layers in front of each site: the path of its leaf without the last part."""
    out: list[str] = []
    for site in found.sites:
        name = names[site.leaf].rpartition(".")[0] or names[site.leaf]
        again = sum(other.partition("#")[0] == name for other in out)
        out.append(f"{name}#{again + 1}" if again else name)
    return out


@jit
def _value(f: Callable, params: PyTree, x: Array) -> Array:
    return f(params, x)


@jit
def _linear(f: Callable, before: PyTree, after: PyTree, x: Array) -> Array:
    (start, fixed), end = split(before), split(after)[0]
    moved = jax.tree.map(lambda a, b: b - a, start, end)
    f0, change = jax.jvp(lambda moving: f(eqx.combine(moving, fixed), x), (start,), (moved,))
    return f0 + change


def _paths(tree: PyTree) -> list[str]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") or "weights" for path, _ in leaves]
    return names if len(set(names)) == len(names) else [jax.tree_util.keystr(path) for path, _ in leaves]


def by_name(features: object, m: int, array: Callable = np.asarray) -> Data:
    """Features by name: those of a dictionary, or h1, h2, …"""
    if not isinstance(features, dict):
        listed = features if isinstance(features, list | tuple) else [features]
        features = {f"h{i}": h for i, h in enumerate(listed, 1)}
    arrays = {str(name): array(h) for name, h in features.items()}
    for name, h in arrays.items():
        if h.ndim < 1 or h.shape[0] != m:
            raise ValueError(
                "features(params, x) must return a dictionary or list of arrays with a row for each "
                f"of the {m} samples, got {name} of shape {h.shape}."
            )
    return arrays
