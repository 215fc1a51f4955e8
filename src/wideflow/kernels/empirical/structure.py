"""Where a JAX function multiplies by its parameters: found in its program, whatever library wrote it.

A *site* is a product of an activation with a matrix of parameters (`dot_general`, a convolution, rows of a
table). The gradient of that leaf is then Σ_t A_t ⊗ B_t, of what enters (A) and what comes back (B = ∂f/∂h),
and need not be formed. Parameters may be transposed, reshaped and cast on the way: that moves the entries of
the gradient about and changes no inner product of two of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core
from jaxtyping import Array

_VIEWS = ("transpose", "reshape", "convert_element_type", "squeeze", "copy")
_CALLS = ("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2")


class Site(NamedTuple):
    """One product: the leaf, how it is read there, whether `a` holds indices of rows of a table, and the
    shapes of a (T, fan) and h (T, units)."""

    leaf: int
    view: tuple
    lookup: bool
    positions: int
    fan: int
    units: int


class _View(NamedTuple):
    """A variable that is a leaf with its entries moved about."""

    leaf: int
    steps: tuple


class Entry(NamedTuple):
    """A site as it is met: a (T, fan) or (T,), and the way of h to (T, units) and back."""

    site: Site
    a: Array
    flat: Callable[[Array], Array]
    back: Callable[[Array], Array]


Nudge = Callable[[Entry, Array], Array]


class Walk:
    """Evaluates a program f(leaves, x), calling `at(entry, h)` at each site, whose value goes on in place of
    h; `spoiled` are the leaves that are used in any other way."""

    def __init__(self, at: Nudge):
        self._at = at
        self.spoiled: set[int] = set()

    def run(self, closed: Any, leaves: list, x: Array) -> list:
        views = {i: _View(i, ()) for i in range(len(leaves))}
        return self._evaluate(closed.jaxpr, closed.consts, [*leaves, x], views)

    def _evaluate(self, jaxpr: Any, consts: list, args: list, given: dict[int, _View]) -> list:
        values = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, args, strict=True))
        views = {jaxpr.invars[i]: view for i, view in given.items()}
        read = lambda v: v.val if isinstance(v, core.Literal) else values[v]
        for eqn in jaxpr.eqns:
            inputs = [read(v) for v in eqn.invars]
            seen = {
                i: views[v]
                for i, v in enumerate(eqn.invars)
                if not isinstance(v, core.Literal) and v in views
            }
            outputs = self._equation(eqn, inputs, seen, views)
            values.update(zip(eqn.outvars, outputs, strict=True))
        self.spoiled |= {
            views[v].leaf for v in jaxpr.outvars if not isinstance(v, core.Literal) and v in views
        }
        return [read(v) for v in jaxpr.outvars]

    def _equation(self, eqn: Any, inputs: list, seen: dict[int, _View], views: dict) -> list:
        name = eqn.primitive.name
        if seen and name in _CALLS:
            inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
            closed = inner if hasattr(inner, "consts") else core.ClosedJaxpr(inner, [])
            return self._evaluate(closed.jaxpr, closed.consts, inputs, seen)
        outputs = bound(eqn, inputs)
        if not seen:
            return outputs
        if name in _VIEWS:
            view = seen[0]
            step = (name, *(str(v) for v in eqn.params.values()))
            views[eqn.outvars[0]] = _View(view.leaf, (*view.steps, step))
            return outputs
        entry = _ENTRIES.get(name, _none)(eqn, inputs, seen)
        if entry is None:
            self.spoiled |= {view.leaf for view in seen.values()}
            return outputs
        return [self._at(entry, outputs[0])]


def bound(eqn: Any, inputs: list) -> list:
    """The equation as it stands."""
    params = eqn.primitive.get_bind_params(eqn.params)
    out = eqn.primitive.bind(*inputs, **params)
    return list(out) if eqn.primitive.multiple_results else [out]


def _none(*_: Any) -> None:
    return None


def _dot(eqn: Any, inputs: list, seen: dict[int, _View]) -> Entry | None:
    """h = a · W over any axes, W on either side."""
    (contracted, batch) = eqn.params["dimension_numbers"]
    if len(seen) != 1 or any(batch):
        return None
    ((w, view),) = seen.items()
    a, axes = inputs[1 - w], contracted[1 - w]
    kept = [i for i in range(a.ndim) if i not in axes]
    fan = _size(a.shape[i] for i in axes)
    units = _size(n for i, n in enumerate(inputs[w].shape) if i not in contracted[w])
    flat_a = jnp.transpose(a, (*kept, *axes)).reshape(-1, fan)
    shape = eqn.outvars[0].aval.shape
    flat = lambda h: h.reshape(units, -1).T if w == 0 else h.reshape(-1, units)
    back = lambda b: (b.T if w == 0 else b).reshape(shape)
    read = (*view.steps, ("dot", tuple(contracted[w])))
    return Entry(Site(view.leaf, read, False, len(flat_a), fan, units), flat_a, flat, back)


def _convolution(eqn: Any, inputs: list, seen: dict[int, _View]) -> Entry | None:
    """h_t = W · (the patch at t)."""
    p = eqn.params
    if set(seen) != {1} or p["feature_group_count"] != 1 or p["batch_group_count"] != 1:
        return None
    spec = p["dimension_numbers"]
    sizes = tuple(inputs[1].shape[i] for i in spec.rhs_spec[2:])
    how = {
        k: p[k] for k in ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "dimension_numbers")
    }
    names = how.pop("dimension_numbers")
    patches = jax.lax.conv_general_dilated_patches(
        inputs[0], sizes, *(how.pop(k) for k in ("window_strides", "padding")), dimension_numbers=names, **how
    )
    units, axis = inputs[1].shape[spec.rhs_spec[0]], spec.out_spec[1]
    a = jnp.moveaxis(patches, axis, -1)
    a = a.reshape(-1, a.shape[-1])
    site = Site(seen[1].leaf, (*seen[1].steps, ("conv", str(spec))), False, len(a), a.shape[1], units)
    return Entry(site, a, *_to_last(eqn, axis, units))


def _gather(eqn: Any, inputs: list, seen: dict[int, _View]) -> Entry | None:
    """Rows of a table (V, units), by their numbers."""
    numbers, table = eqn.params["dimension_numbers"], inputs[0]
    if set(seen) != {0} or table.ndim != 2 or eqn.params["slice_sizes"] != (1, table.shape[1]):
        return None
    by_rows = numbers.start_index_map == (0,) and numbers.collapsed_slice_dims == (0,)
    clipped = (
        eqn.params["mode"] == jax.lax.GatherScatterMode.CLIP
    )  # of a whole row the first column is 0 then
    by_corners = clipped and numbers.start_index_map == (0, 1) and numbers.collapsed_slice_dims in ((), (0,))
    if not (by_rows or by_corners):
        return None
    ids = jnp.clip(inputs[1][..., 0].reshape(-1), 0, len(table) - 1)
    units, axis = table.shape[1], numbers.offset_dims[-1]
    site = Site(seen[0].leaf, (*seen[0].steps, ("rows",)), True, len(ids), len(table), units)
    return Entry(site, ids, *_to_last(eqn, axis, units))


def _to_last(eqn: Any, axis: int, units: int) -> tuple[Callable, Callable]:
    """The units of h, on this axis, last; and back."""
    shape = eqn.outvars[0].aval.shape
    others = tuple(n for i, n in enumerate(shape) if i != axis)
    flat = lambda h: jnp.moveaxis(h, axis, -1).reshape(-1, units)
    return flat, lambda b: jnp.moveaxis(b.reshape(*others, units), -1, axis)


def _size(sizes: Any) -> int:
    total = 1
    for n in sizes:
        total *= n
    return total


_ENTRIES: dict[str, Callable] = {"dot_general": _dot, "conv_general_dilated": _convolution, "gather": _gather}
