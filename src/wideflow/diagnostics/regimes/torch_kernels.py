"""Tangent kernels of a PyTorch module, layer by layer where its layers are known, else by `torch.func`."""

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .plan import PASSES, Groups, Layer
from .tiles import Kernels
from .torch_signals import Pass, without_fast_path
from .torch_uses import Product, Scratch, Used, gradients, kernels, reduced

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_BYTES = 2**28  # of one tile of Jacobians
_SPREAD = 2**18  # entries of a bare parameter of which each row may have a copy
_ROWS = 32  # at a time through torch.func, which keeps all that it computes


class TorchKernels:
    """Of one module at given tensors (parameters and buffers by name), those called `moving` being derived.

    A weight is taken layer by layer where on two rows that gives the gradient of the first one which autograd
    gives; so a weight that is used elsewhere too, by another layer or by a formula, is found out."""

    def __init__(self, torch: ModuleType, module: "Module", tensors: dict, moving: list[str], x: "Tensor"):
        self._torch, self._module = torch, module
        self._tensors = {name: t.detach() for name, t in tensors.items()}
        self.moving = moving
        self.axes, self.layers = self._checked(x[:2])
        self.spread = self._spread(x[:2])
        self.generic = [name for name in moving if name not in self.axes and name not in self.spread]

    def kernels(self, x: "Tensor", groups: Groups, done: Callable[[], None]) -> Kernels:
        """K_p = Σ_k (J_p v_k)(J_p v_k)ᵀ of each parameter p, and the terms of Σ_p K_p by groups of vectors
        v_k. `done` is called after each vector."""
        m, first = len(x), self._tensors[self.moving[0]]
        parts = {name: first.new_zeros(m, m) for name in self.moving}
        terms = first.new_zeros(len(groups), m, m)
        forward = None
        if self.axes or self.spread:
            forward = Pass(self._torch, self._module, self._tensors, x, self.axes, self.spread)
        v = [self._torch.as_tensor(group).to(first) for group in groups]
        for which, some in self._batches(v, m):
            for name, terms_of in self._layerwise(forward, some, done).items():
                for g, K in zip(which, terms_of, strict=True):
                    parts[name] += K
                    terms[g] += K
        for g, group in enumerate(v if self.generic else []):
            self._add_generic(x, group, parts, terms[g])
        return Kernels({name: _numpy(K) for name, K in parts.items()}, _numpy(terms))

    def _batches(self, groups: "list[Tensor]", m: int) -> "Iterator[tuple[list[int], list[Tensor]]]":
        """Groups, or parts of them, of whose passes back all b fit in memory, with their numbers."""
        size = m * sum(layer.positions * layer.units for layer in self.layers)
        size += m * sum(self._tensors[name].numel() for name in self.spread)
        most = max(1, PASSES // max(1, size * groups[0].element_size()))
        which: list[int] = []
        some: list[Tensor] = []
        for g, part in ((g, part) for g, group in enumerate(groups) for part in group.split(most)):
            if sum(map(len, some)) + len(part) > most:
                yield which, some
                which, some = [], []
            which.append(g)
            some.append(part)
        yield which, some

    def _layerwise(self, forward: Pass | None, groups: "list[Tensor]", done: Callable) -> dict[str, list]:
        passes: dict[str, list[list]] = {}
        for group in groups:
            here: dict[str, list] = {}
            take = lambda name, used, here=here: here.setdefault(name, []).append(reduced(used))
            for vector in group:
                if forward is not None:
                    with self._torch.no_grad():
                        forward.back(vector.expand(len(forward.f), -1), take)
                done()
            for name, found in here.items():
                passes.setdefault(name, []).append(found)
        scratch = Scratch()
        with self._torch.no_grad():
            return {name: kernels(passes.pop(name), scratch) for name in list(passes)}

    # --- which weights can be taken layer by layer --------------------------------------------------

    def _checked(self, x: "Tensor") -> tuple[dict[str, int], list[Layer]]:
        """The axis of rows of each weight that can, and the sizes of its uses."""
        torch = self._torch
        true, cotangent = self._true(x, 0)
        axes: dict[str, int] = {}
        layers: list[Layer] = []
        for axis in (0, 1):
            left = {name: axis for name in self.moving if name not in axes}
            forward = Pass(torch, self._module, self._tensors, x, left)
            found: dict[str, Tensor] = {}

            def take(name: str, used: Used, found: dict = found) -> None:
                found[name] = gradients(used, 1)[0]

            with torch.no_grad():
                forward.back(cotangent, take, again=False)
            for name, uses in forward.uses.items():
                here = found.get(name)
                if _agree(torch, true[name], here):
                    axes[name] = axis
                    layers += [Layer(*use.shape) for use in uses if isinstance(use, Product)]
        return axes, layers

    def _spread(self, x: "Tensor") -> dict[str, tuple[int, ...]]:
        """Of bare parameters that can have a copy for each row (positions that are added, scales), its shape
        in one row: with axes of length 1 in front, or without one that is there. The last row must have its
        gradient in its own copy, and none in the others."""
        left = [name for name in self.moving if name not in self.axes and ".parametrizations." not in name]
        left = [name for name in left if self._tensors[name].numel() <= _SPREAD]
        true, cotangent = self._true(x, len(x) - 1) if left else ({}, None)
        found: dict[str, tuple[int, ...]] = {}
        for name in left:
            shape = tuple(self._tensors[name].shape)
            ones = [(1,) * k + shape for k in range(4)]
            for candidate in [shape[1:], *ones] if shape[:1] == (1,) else ones:
                copies = self._copied(x, cotangent, name, candidate)
                if copies is None or bool(copies[:-1].any()) or true[name] is None:
                    continue
                if _agree(self._torch, true[name], copies[-1]):
                    found[name] = candidate
                    break
        return found

    def _copied(self, x: "Tensor", cotangent: Any, name: str, shape: tuple[int, ...]) -> Any:
        """Gradients of all rows by copies of that shape; None where the module does not take them."""
        found: list = []
        try:
            forward = Pass(self._torch, self._module, self._tensors, x, {}, {name: shape})
            forward.back(cotangent, lambda _, used: found.append(gradients(used, len(x))), again=False)
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
            return None
        return found[0] if found else None

    def _true(self, x: "Tensor", row: int) -> tuple[dict[str, Any], "Tensor"]:
        """By autograd: the gradient of v·f at one row, v at random."""
        torch = self._torch
        leaves = {name: self._tensors[name].clone().requires_grad_() for name in self.moving}
        with without_fast_path(torch), torch.enable_grad():
            f = torch.func.functional_call(self._module, {**self._tensors, **leaves}, (x,))
            f = f.reshape(len(x), -1)
        draw = np.random.default_rng(0).normal(size=f.shape[1])
        cotangent = torch.zeros_like(f)
        cotangent[row] = torch.as_tensor(draw).to(f)
        if not f.requires_grad:
            return {name: None for name in leaves}, cotangent
        grads = torch.autograd.grad(f, list(leaves.values()), cotangent, allow_unused=True)
        return dict(zip(leaves, grads, strict=True)), cotangent

    # --- the others ---------------------------------------------------------------------------------

    def _add_generic(self, x: "Tensor", v: "Tensor", parts: dict, term: "Tensor") -> None:
        """Jacobians of tiles of rows against each other."""
        m, size = len(x), sum(self._tensors[name].numel() for name in self.generic)
        tile = int(np.clip(_BYTES // (len(v) * size * v.element_size()), 1, m))
        for i in range(0, m, tile):
            left = self._jacobians(x[i : i + tile], v)
            for j in range(i, m, tile):
                right = left if j == i else self._jacobians(x[j : j + tile], v)
                for name in self.generic:
                    block = left[name] @ right[name].T
                    for out in (parts[name], term):
                        out[i : i + tile, j : j + tile] += block
                        if j > i:
                            out[j : j + tile, i : i + tile] += block.T

    def _jacobians(self, x: "Tensor", v: "Tensor") -> dict[str, "Tensor"]:
        """∂(v_k·f)/∂p of every row, (rows, k · size)."""
        func = self._torch.func
        params = {name: self._tensors[name] for name in self.generic}
        fixed = {name: t for name, t in self._tensors.items() if name not in params}

        def row(params: dict, x: "Tensor") -> "Tensor":
            return v @ func.functional_call(self._module, {**fixed, **params}, (x[None],)).reshape(-1)

        with without_fast_path(self._torch), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="There is a performance drop")  # where it has no rule
            try:
                rows = func.vmap(func.jacrev(row), (None, 0), chunk_size=_ROWS)(params, x)
            except RuntimeError:  # what cannot be mapped is taken one by one
                singles = [self._one_by_one(row, params, one) for one in x]
                rows = {name: self._torch.stack([single[name] for single in singles]) for name in params}
        return {name: rows[name].detach().reshape(len(x), -1) for name in params}

    def _one_by_one(self, row: Callable, params: dict, x: "Tensor") -> dict[str, "Tensor"]:
        torch = self._torch
        leaves = {name: p.clone().requires_grad_() for name, p in params.items()}
        with torch.enable_grad():
            f = row(leaves, x)
        out: dict[str, list] = {name: [] for name in leaves}
        for one in f:
            grads = torch.autograd.grad(one, list(leaves.values()), retain_graph=True, allow_unused=True)
            for (name, p), g in zip(leaves.items(), grads, strict=True):
                out[name].append(torch.zeros_like(p) if g is None else g)
        return {name: torch.stack(gs) for name, gs in out.items()}


def _agree(torch: ModuleType, true: Any, found: Any) -> bool:
    """Equal up to rounding, 10³ eps of the size of the gradient; None stands for 0."""
    if true is None or found is None:
        return all(v is None or not bool(v.any()) for v in (true, found))
    gap, size = float((true.flatten() - found).norm()), float(true.norm())
    return gap <= 1e3 * torch.finfo(true.dtype).eps * size


def _numpy(tensor: "Tensor") -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
