"""Which uses of its weights a layer of PyTorch makes, by its type: Linear, convolutions, norms, embeddings,
attention. Every other layer goes through `torch.func`."""

import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .torch_uses import Direct, Lookup, Product, Use

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Rule = Callable[..., tuple[dict[str, Use], Callable[["Tensor"], "Tensor"]]]


def rule_of(torch: ModuleType, module: "Module") -> Rule | None:
    """rule(torch, module, a, axis) → the uses by the name of the weight in the module, and how ∂/∂output
    becomes b (m, T, units). `axis` is that of the rows of a."""
    nn, kind = torch.nn, type(module)
    if kind is nn.Linear:
        return linear
    if kind in (nn.Conv1d, nn.Conv2d):
        return convolution
    if kind in (nn.LayerNorm, getattr(nn, "RMSNorm", None)):
        return last_norm
    if kind in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm):
        return channel_norm
    if kind is nn.Embedding and not module.scale_grad_by_freq and module.max_norm is None:
        return embedding
    return None


def _rows_first(a: "Tensor", axis: int) -> "Tensor":
    """(m, T, units) of (m, …, units), or of (T, m, …, units) where the rows are on axis 1."""
    a = a.movedim(axis, 0)
    return a.reshape(len(a), -1, a.shape[-1])


def _bias() -> Direct:
    return Direct(lambda b: b[:, 0] if b.shape[1] == 1 else b.sum(1))


def linear(torch: ModuleType, module: Any, a: "Tensor", axis: int) -> Any:
    """h = a Wᵀ + bias on the last axis."""
    return linear_uses(_rows_first(a, axis), module.weight.shape[0]), lambda b: _rows_first(b, axis)


def linear_uses(a: "Tensor", units: int) -> dict[str, Use]:
    shape = (a.shape[1], a.shape[2], units)
    return {"weight": Product(lambda i, j: a[i:j], shape), "bias": _bias()}


def convolution(torch: ModuleType, module: Any, a: "Tensor", axis: int) -> Any:
    """h_t = W · (the patch of a at t) + bias."""
    F = torch.nn.functional
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    back = lambda b: b.flatten(2).transpose(1, 2)

    def patches(i: int, j: int) -> "Tensor":
        """(k, T, channels · window), in the order of the weights."""
        rows = F.pad(a[i:j], module._reversed_padding_repeated_twice, mode=mode)
        sides = zip(module.kernel_size, module.stride, module.dilation, strict=True)
        for axis, (size, stride, dilation) in enumerate(sides, 2):
            rows = rows.unfold(axis, dilation * (size - 1) + 1, stride)[..., ::dilation]
        places = range(2, a.ndim)
        rest = [1, *range(a.ndim, 2 * a.ndim - 2)]
        return rows.permute(0, *places, *rest).reshape(len(rows), -1, math.prod(rows.shape[i] for i in rest))

    def grouped(b: "Tensor") -> "Tensor":
        groups = module.groups
        one, other = patches(0, len(b)), b.unflatten(2, (groups, -1))
        return torch.einsum("mtgu,mtgf->mguf", other, one.unflatten(2, (groups, -1))).flatten(1)

    units, fan = module.weight.shape[0], math.prod(module.weight.shape[1:])
    positions = math.prod(_output_sides(module, a))
    use: Use = Product(patches, (positions, fan, units)) if module.groups == 1 else Direct(grouped)
    return {"weight": use, "bias": _bias()}, back


def _output_sides(module: Any, a: "Tensor") -> list[int]:
    pads = module._reversed_padding_repeated_twice
    sides = []
    for i, side in enumerate(a.shape[2:]):
        last = 2 * (len(a.shape[2:]) - 1 - i)
        reach = module.dilation[i] * (module.kernel_size[i] - 1) + 1
        sides.append((side + pads[last] + pads[last + 1] - reach) // module.stride[i] + 1)
    return sides


def last_norm(torch: ModuleType, module: Any, a: "Tensor", axis: int) -> Any:
    """h = w ∘ â + bias, â normalised over the last axes."""
    F, shape = torch.nn.functional, module.normalized_shape
    norm = F.layer_norm if isinstance(module, torch.nn.LayerNorm) else F.rms_norm
    flat = lambda v: v.movedim(axis, 0).reshape(v.shape[axis], -1, math.prod(shape))
    a = a.detach()
    normal = functools.cache(lambda: flat(norm(a, shape, eps=module.eps)))
    return {"weight": Direct(lambda b: (b * normal()[: len(b)]).sum(1)), "bias": _bias()}, flat


def channel_norm(torch: ModuleType, module: Any, a: "Tensor", axis: int) -> Any:
    """h = w ∘ â + bias by channels, the axis behind the rows; â by running statistics, or by groups."""
    F = torch.nn.functional
    flat = lambda v: v.reshape(*v.shape[:2], -1).transpose(1, 2)

    @functools.cache
    def normal() -> "Tensor":
        if isinstance(module, torch.nn.GroupNorm):
            return flat(F.group_norm(a, module.num_groups, eps=module.eps))
        return flat(F.batch_norm(a, mean, variance, eps=module.eps))

    mean, variance = getattr(module, "running_mean", None), getattr(module, "running_var", None)
    return {"weight": Direct(lambda b: (b * normal()[: len(b)]).sum(1)), "bias": _bias()}, flat


def embedding(torch: ModuleType, module: Any, a: "Tensor", axis: int) -> Any:
    """h_t = row a_t of the table."""
    ids = a.movedim(axis, 0).reshape(a.shape[axis], -1)
    use = Lookup(ids, module.num_embeddings, module.padding_idx)
    return {"weight": use}, lambda b: _rows_first(b, axis)
