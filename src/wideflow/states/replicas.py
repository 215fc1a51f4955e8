"""Many systems in one: pytrees whose moving numbers have a leading replica axis."""

import dataclasses
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._data import Data
from .._threads import cores


class AbstractReplicable(eqx.Module):
    """A pytree that may hold one system, or several along a leading axis of every field but the `shared`
    ones. `jax.vmap(fn, in_axes=(state.axes(),))(state)` calls fn with one system after the other."""

    shared: ClassVar[tuple[str, ...]] = ()  # fields that are the same for all replicas

    def _dynamic(self) -> list[str]:
        """Names of the fields that are not static."""
        return [field.name for field in dataclasses.fields(self) if not field.metadata.get("static", False)]

    def _with(self, **fields: object) -> Self:
        """A copy with other fields; nothing is checked again."""
        other = object.__new__(type(self))
        for field in dataclasses.fields(self):
            value = fields[field.name] if field.name in fields else getattr(self, field.name)
            object.__setattr__(other, field.name, value)
        return other

    def own(self) -> Data:
        """The fields that are a replica's own, by name; `state._with(**own)` puts others in their place."""
        return {name: getattr(self, name) for name in self._dynamic() if name not in self.shared}

    def axes(self) -> Self:
        """Where the replica axis is, as `in_axes` and `out_axes` of `jax.vmap` want it."""
        axis = lambda value: value.axes() if isinstance(value, AbstractReplicable) else 0
        return self._with(
            **{name: None if name in self.shared else axis(getattr(self, name)) for name in self._dynamic()}
        )

    def replica(self, r: int) -> Self:
        """System r alone."""
        pick = lambda value: (
            value.replica(r)
            if isinstance(value, AbstractReplicable)
            else jax.tree.map(lambda leaf: leaf[r], value)
        )
        return self._with(**{name: pick(value) for name, value in self.own().items()})

    def chosen(self, on: Array, other: Self) -> Self:
        """These replicas where `on` (one truth value per replica) holds, those of `other` elsewhere."""
        pick = lambda a, b: jnp.where(jnp.reshape(on, on.shape + (1,) * (jnp.ndim(a) - 1)), a, b)
        both = lambda a, b: a.chosen(on, b) if isinstance(a, AbstractReplicable) else jax.tree.map(pick, a, b)
        return self._with(**{name: both(value, getattr(other, name)) for name, value in self.own().items()})


_System = TypeVar("_System", bound=AbstractReplicable)
_CACHE = 2**18  # bytes of the replicas that are moved together: what stays next to one core
_LARGE = 2 * _CACHE  # bytes of all replicas, from which on cutting them pays


def group_size(system: AbstractReplicable) -> int:
    """How many replicas to move together on a CPU: the largest divisor of their number whose share fits into
    the cache. All of them where they are small, where not even two fit, or where only 1 divides their
    number."""
    size, replicas = _size(system)
    if size <= _LARGE or jax.default_backend() != "cpu":
        return replicas
    fitting = [b for b in range(2, replicas) if replicas % b == 0 and b * size <= _CACHE * replicas]
    return max(fitting, default=replicas)


def shares(system: AbstractReplicable) -> tuple[tuple[int, ...], int]:
    """Where the share of each core of a CPU begins, and how many replicas it has: all in one where they are
    small. Shares have one size, so that one program serves them; the last ones may overlap."""
    size, replicas = _size(system)
    alone = size <= _CACHE or jax.default_backend() != "cpu"
    each = -(-replicas // (1 if alone else cores()))
    return tuple(min(first, replicas - each) for first in range(0, replicas, each)), each


def _size(system: AbstractReplicable) -> tuple[int, int]:
    """Bytes of all replicas, and their number."""
    leaves = jax.tree.leaves(system.own())
    return sum(leaf.nbytes for leaf in leaves if hasattr(leaf, "nbytes")), leaves[0].shape[0]


def in_groups(
    fn: Callable[[_System], tuple[_System, PyTree]], systems: _System, size: int
) -> tuple[_System, PyTree]:
    """fn, which takes one system to another and something beside it, for all replicas: groups of `size` are
    vmapped, one group after the other."""
    axes = systems.axes()
    mapped = jax.vmap(fn, in_axes=(axes,), out_axes=(axes, 0))
    replicas = jax.tree.leaves(systems.own())[0].shape[0]
    if size >= replicas:
        return mapped(systems)
    is_own = _is_own(systems)
    own, shared = eqx.partition(systems, is_own)

    def group(own: _System) -> tuple[_System, _System, PyTree]:
        out, beside = mapped(eqx.combine(own, shared))
        return *eqx.partition(out, is_own), beside

    split = jax.tree.map(lambda v: v.reshape(replicas // size, size, *v.shape[1:]), own)
    own, shared, beside = jax.lax.map(group, split)
    joined = lambda tree: jax.tree.map(lambda v: v.reshape(replicas, *v.shape[2:]), tree)
    return eqx.combine(joined(own), jax.tree.map(lambda v: v[0], shared)), joined(beside)


def share(systems: _System, first: Array, size: int) -> _System:
    """The replicas first, …, first + size − 1."""
    cut = lambda own, leaf: jax.lax.dynamic_slice_in_dim(leaf, first, size) if own else leaf
    return jax.tree.map(cut, _is_own(systems), systems)


def shares_joined(moved: Sequence[tuple[_System, PyTree]], firsts: Sequence[int]) -> tuple[_System, PyTree]:
    """All replicas, and what is beside them, of shares that begin at the given ones; of a replica in two
    shares the first counts."""
    size = _size(moved[0][0])[1]
    skipped = [max(0, before + size - first) for before, first in pairwise((-size, *firsts))]

    def joined(own: bool, *leaves: Array) -> Array:
        if not own:
            return leaves[0]
        return jnp.concatenate([leaf[skip:] for skip, leaf in zip(skipped, leaves, strict=True)])

    is_own = _is_own(moved[0][0]), jax.tree.map(lambda _: True, moved[0][1])
    return jax.tree.map(joined, is_own, *moved)


def _is_own(systems: PyTree) -> PyTree:
    """For each leaf, whether it has a replica axis."""
    owned = lambda axis, value: jax.tree.map(lambda _: axis is not None, value)
    return jax.tree.map(owned, systems.axes(), systems, is_leaf=lambda axis: axis is None)


def stack(systems: Sequence[_System]) -> _System:
    """Single systems as one with a replica axis; what they share is taken from the first. Particles of
    several widths are filled up with particles of weight 0, so that one program serves all.

    >>> wf.stack([rho0.sample(key, 2), rho0.sample(key, 4)]).weights
    Array([[0.5 , 0.5 , 0.  , 0.  ],
           [0.25, 0.25, 0.25, 0.25]], dtype=float64)"""
    widest = max(getattr(one, "n", 0) for one in systems)
    if any(getattr(one, "n", 0) != widest for one in systems):
        systems = [one.padded(widest) for one in systems]  # type: ignore[attr-defined]
    first = systems[0]
    join = lambda *values: (
        stack(values)
        if isinstance(values[0], AbstractReplicable)
        else jax.tree.map(lambda *leaves: jnp.stack(leaves), *values)
    )
    return first._with(**{name: join(*(getattr(one, name) for one in systems)) for name in first.own()})


def replica_keys(key: Array, replicas: int) -> Array:
    """The key of replica r is `fold_in(key, r)`; keys with an axis of their own are taken as they are."""
    if key.ndim:
        if key.shape != (replicas,):
            raise ValueError(f"{replicas} replicas take one key, or {replicas} of them, got {key.shape}.")
        return key
    return jax.vmap(lambda r: jax.random.fold_in(key, r))(np.arange(replicas))
