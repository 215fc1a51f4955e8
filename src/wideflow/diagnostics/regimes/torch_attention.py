"""Attention of PyTorch in pieces whose weights can be seen: its own code multiplies by them out of sight."""

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Multiply = Callable[["Tensor", str, str], "Tensor"]  # a, names of weight and bias in the module → a Wᵀ + bias


def can_be_seen(torch: ModuleType, module: Any) -> bool:
    """Whether `attend` computes what this module does."""
    plain = type(module) is torch.nn.MultiheadAttention and module._qkv_same_embed_dim
    return plain and module.bias_k is None and not module.add_zero_attn


def attend(torch: ModuleType, module: Any, multiply: Multiply) -> Callable:
    """The forward of `nn.MultiheadAttention` in eval mode, its two products by `multiply`:
    softmax(Q Kᵀ/√d + mask) V with (Q, K, V) = (q, k, v) W_inᵀ, times W_outᵀ."""
    F, heads, d = torch.nn.functional, module.num_heads, module.embed_dim

    def forward(
        query: "Tensor",
        key: "Tensor",
        value: "Tensor",
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple:
        if query.ndim != 3 or not (query is key and key is value):
            return type(module).forward(
                module,
                query,
                key,
                value,
                key_padding_mask,
                need_weights,
                attn_mask,
                average_attn_weights,
                is_causal,
            )
        qkv = multiply(query, "in_proj_weight", "in_proj_bias")
        qkv = qkv if module.batch_first else qkv.transpose(0, 1)
        m, T, _ = qkv.shape
        q, k, v = (part.view(m, T, heads, -1).transpose(1, 2) for part in qkv.split(d, -1))
        scores = q @ k.transpose(-1, -2) * (d // heads) ** -0.5
        for mask in _masks(torch, attn_mask, key_padding_mask, scores):
            scores = scores + mask
        weights = F.softmax(scores, -1)
        out = (weights @ v).transpose(1, 2).reshape(m, T, d)
        out = out if module.batch_first else out.transpose(0, 1)
        out = multiply(out, "out_proj.weight", "out_proj.bias")
        if not need_weights:
            return out, None
        return out, weights.mean(1) if average_attn_weights else weights

    return forward


def _masks(torch: ModuleType, attention: Any, padding: Any, scores: "Tensor") -> list:
    """Both masks as what is added to the scores (m, heads, T, T)."""
    masks = []
    for mask, shape in ((attention, None), (padding, (len(scores), 1, 1, -1))):
        if mask is None:
            continue
        if mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(mask, float("-inf"))
        if shape is not None:
            mask = mask.view(shape)
        elif mask.ndim == 3:
            mask = mask.view(len(scores), -1, *mask.shape[1:])
        masks.append(mask.to(scores.dtype))
    return masks
