"""Buffers of a PyTorch module, which move besides its parameters: running statistics of norms."""

from contextlib import ExitStack
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .model import pieces

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


def moved_buffers(torch: ModuleType, before: "Module", after: "Module") -> list[str]:
    """Names of the buffers that f may depend on and that differ; a count of batches is none of them."""
    last = dict(after.named_buffers())
    return [
        name
        for name, b in before.named_buffers()
        if not name.endswith("num_batches_tracked") and not torch.equal(b, last.get(name, b))
    ]


def held_buffers(torch: ModuleType, module: "Module", x: "Tensor") -> dict[str, "Tensor"]:
    """The buffers of the module before training. Batch norms that have seen no batch have no statistics yet:
    they take those of x at the weights of the start, as they would in the first steps."""
    held = {name: b.detach().clone() for name, b in module.named_buffers()}
    fresh: list[Any] = [part for part in module.modules() if _is_fresh(part)]
    if not fresh or len(x) < 2:
        return held
    with ExitStack() as stack, torch.no_grad():
        for part in fresh:
            stack.callback(part.__dict__.update, training=part.training, momentum=part.momentum)
            part.training, part.momentum = True, None  # the plain mean over batches
        for rows in pieces(np.arange(len(x))):
            if len(rows) > 1:
                torch.func.functional_call(module, held, (x[rows],))
    return held


def _is_fresh(part: Any) -> bool:
    seen = getattr(part, "num_batches_tracked", None)
    return "BatchNorm" in type(part).__name__ and seen is not None and int(seen) == 0
