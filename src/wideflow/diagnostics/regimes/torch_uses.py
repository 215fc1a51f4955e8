"""What one use of a weight of a PyTorch module adds to the tangent kernel.

A use knows what entered, A, and is given what comes back, B = ∂(v·f)/∂h. Per row i the gradient of the
weight is G_i = Σ_t B_it A_itᵀ over the positions t (of a sequence or an image), and the
kernel is K_ij = ⟨G_i, G_j⟩."""

import functools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ...kernels.empirical.host_products import lookup_kernel

if TYPE_CHECKING:
    from torch import Tensor

BYTES = 2**27  # of gradients of weights that are held at once


class Product(NamedTuple):
    """h_t = W a_t + …, with `entering(i, j)` the rows i…j of a, (k, T, fan), and b (m, T, units)."""

    entering: Callable[[int, int], "Tensor"]
    shape: tuple[int, int, int]  # T, fan, units

    def gradients(self, b: "Tensor") -> "Tensor":
        """G (k, units · fan) of the rows of b, which are the first k."""
        return (b.transpose(1, 2) @ self.entering(0, len(b))).flatten(1)


class Lookup(NamedTuple):
    """h_t = row ids_t of a table of `size` rows; entries at `fixed` (padding) have no gradient."""

    ids: "Tensor"
    size: int
    fixed: int | None

    def gradients(self, b: "Tensor") -> "Tensor":
        ids, b = self.ids[: len(b)], self.moving(b)
        table = b.new_zeros(len(b), self.size, b.shape[2])
        index = ids[:, :, None].expand(-1, -1, b.shape[2])
        return table.scatter_add_(1, index, b).flatten(1)

    def moving(self, b: "Tensor") -> "Tensor":
        return b if self.fixed is None else b * (self.ids[: len(b)] != self.fixed)[:, :, None]


class Direct(NamedTuple):
    """A weight that is small: its gradient itself, (m, size), as a function of b."""

    of: Callable[["Tensor"], "Tensor"]

    def gradients(self, b: "Tensor") -> "Tensor":
        return self.of(b)


Use = Product | Lookup | Direct
Used = list[tuple[Use, "Tensor"]]  # every use of one weight with its b


class Scratch:
    """Memory that is taken again and again: pages that are touched for the first time cost more than sums."""

    def __init__(self) -> None:
        self._flat: Tensor | None = None

    def take(self, like: "Tensor", *shape: int) -> "Tensor":
        size = math.prod(shape)
        if self._flat is None or self._flat.numel() < size:
            self._flat = like.new_empty(size)
        return self._flat[:size].view(shape)


def gradients(used: Used, rows: int) -> "Tensor":
    """Σ over uses of G of the first rows."""
    return functools.reduce(operator.add, (use.gradients(b[:rows]) for use, b in used))


def reduced(used: Used) -> "Used | Tensor":
    """The uses of one pass as they are kept: with their b where a kernel needs no gradient, else that."""
    by_factors = all(isinstance(use, Product) for use, _ in used)
    alone = len(used) == 1 and isinstance(used[0][0], Lookup)
    return used if by_factors or alone else gradients(used, len(used[0][1]))


def kernels(groups: "list[list[Used | Tensor]]", scratch: Scratch) -> "list[Tensor]":
    """K (m, m) of one weight over all of its uses, summed over the passes back of each group: those lie side
    by side like more units, so that each product of matrices is one. What enters is prepared once."""
    first = groups[0][0]
    if not isinstance(first, list):
        return [symmetric(joined(passes, 1)) for passes in groups]
    uses = [use for use, _ in first]
    backs = [[joined([one[i][1] for one in passes], 2) for i in range(len(uses))] for passes in groups]
    if isinstance(uses[0], Lookup):
        return [_lookup_kernel(uses[0], b) for (b,) in backs]
    entering = lambda i, j: joined([use.entering(i, j) for use in uses], 1)  # type: ignore[union-attr]
    positions, fan = sum(use.shape[0] for use in uses), uses[0].shape[1]  # type: ignore[union-attr]
    if len(backs[0][0]) * positions * fan * backs[0][0].element_size() <= 4 * BYTES:
        entering = functools.cache(entering)
    return [_product_kernel(entering, joined(b, 1), fan, scratch) for b in backs]


def joined(parts: list, axis: int) -> "Tensor":
    import torch

    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)


def symmetric(g: "Tensor") -> "Tensor":
    """g gᵀ. On the host by NumPy, which sees that it is symmetric and takes half of the operations."""
    if g.device.type != "cpu":
        return g @ g.T
    import torch

    flat = g.numpy()
    return torch.from_numpy(flat @ flat.T)


def by_positions(m: int, positions: int, fan: int, units: int) -> bool:
    """Operations of K_ij = Σ_tt' (A_it·A_jt')(B_it·B_jt'): m²T²(fan + units); of ⟨G_i, G_j⟩ with G formed:
    (m²/2 + 3mT) fan units, as forming G is bound by memory."""
    pairs = (positions * m) ** 2 * (fan + units)
    return pairs < (m * m / 2 + 3 * m * positions) * fan * units


def _product_kernel(entering: Callable, b: "Tensor", fan: int, scratch: Scratch) -> "Tensor":
    m, positions, units = b.shape
    if positions == 1:
        a = entering(0, m)[:, 0]
        return symmetric(a) * symmetric(b[:, 0])
    if by_positions(m, positions, fan, units):
        return _over_positions(entering(0, m), b)
    return _over_weights(entering, b, fan, scratch)


def _over_positions(a: "Tensor", b: "Tensor") -> "Tensor":
    """Blocks of rows against all rows from them on."""
    m, positions = b.shape[:2]
    out = b.new_zeros(m, m)
    size = max(1, min(m, BYTES // (2 * positions * positions * m * b.element_size())))
    for i in range(0, m, size):
        block = slice(i, i + size)
        pairs = a[block].flatten(0, 1) @ a[i:].flatten(0, 1).T
        pairs *= b[block].flatten(0, 1) @ b[i:].flatten(0, 1).T
        tile = pairs.view(-1, positions, m - i, positions).sum((1, 3))
        out[block, i:], out[i:, block] = tile, tile.T
    return out


def _over_weights(entering: Callable, b: "Tensor", fan: int, scratch: Scratch) -> "Tensor":
    """G of all rows, some units at a time."""
    import torch

    m, positions, units = b.shape
    most = max(1, BYTES // (m * fan * b.element_size()))
    size = math.ceil(units / math.ceil(units / most))
    rows = max(1, min(m, BYTES // (positions * fan * b.element_size())))
    out = b.new_zeros(m, m)
    for k in range(0, units, size):
        part = b[:, :, k : k + size].transpose(1, 2)
        g = scratch.take(b, m, part.shape[1], fan)
        for i in range(0, m, rows):
            torch.bmm(part[i : i + rows], entering(i, min(m, i + rows)), out=g[i : i + rows])
        out += symmetric(g.flatten(1))
    return out


def _lookup_kernel(use: Lookup, b: "Tensor") -> "Tensor":
    import torch

    return torch.from_numpy(lookup_kernel(use.ids.cpu().numpy(), use.moving(b).cpu().numpy())).to(b)
