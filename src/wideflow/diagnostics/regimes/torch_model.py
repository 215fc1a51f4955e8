"""PyTorch modules as models before and after training (extra `torch`)."""

import copy
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..._data import Data
from .model import AbstractModel, pieces

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_BYTES = 2**28  # of one tile of Jacobians
_RANDOM = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU")


def torch_model(before: Any, after: Any, x: ArrayLike) -> "TorchModel":
    """The model of one `nn.Module` after training and its copy, or `state_dict`, from before."""
    return TorchModel(before, after, x)


class TorchModel(AbstractModel):
    """Hidden layers are the outputs of the innermost modules with weights, except the last; kernels come from
    `torch.func`, sample by sample. Parameters with `requires_grad=False` are held fixed."""

    def __init__(self, before: Any, after: Any, x: ArrayLike):
        torch = _torch()
        if isinstance(before, Mapping) and isinstance(after, torch.nn.Module):
            before = _loaded(copy.deepcopy(after), before)
        for name, module in (("before", before), ("after", after)):
            if not isinstance(module, torch.nn.Module):
                raise ValueError(
                    f"regime(before, after, x) takes two torch.nn.Module, got a {type(module).__name__} "
                    f"for {name}."
                )
        if before is after:
            raise ValueError(
                "before and after are the same module. Keep a copy.deepcopy(module) from before training."
            )
        self._modules = before, after
        self._torch = torch
        self._check_same()
        parameter = next(iter(before.parameters()))
        self.x = torch.as_tensor(x, device=parameter.device)
        if self.x.dtype.is_floating_point:
            self.x = self.x.to(parameter.dtype)
            if not bool(torch.isfinite(self.x).all()):
                raise ValueError("x must be finite, but is not. Remove or impute those rows.")
        if self.x.ndim == 0 or len(self.x) == 0:
            raise ValueError(f"x must be a batch of at least one sample, got shape {tuple(self.x.shape)}.")
        self.m = len(self.x)
        for module in self._modules:
            self._check_mode(module)

    def weights(self, when):
        return {name: _numpy(p) for name, p in self._moving(when).items()}

    def outputs(self, when, rows):
        parts = [_numpy(self._call(when, self.x[part])) for part in pieces(rows)]
        return np.concatenate(parts).reshape(len(rows), -1)

    def linear(self, rows):
        start, end = self._moving(0), self._moving(1)
        moved = {name: end[name] - p for name, p in start.items()}
        parts = []
        for part in pieces(rows):
            f = lambda params, part=part: self._functional(0, params, self.x[part])
            f0, change = self._torch.func.jvp(f, (start,), (moved,))
            parts.append(_numpy(f0 + change))
        return np.concatenate(parts).reshape(len(rows), -1)

    def features(self, when, rows):
        captured: Data = {}
        hooks = []

        def keep(name: str) -> Callable:
            def hook(module: "Module", inputs: object, output: "Tensor") -> None:
                if self._torch.is_tensor(output):
                    again = sum(key.partition("#")[0] == name for key in captured)
                    captured[f"{name}#{again + 1}" if again else name] = output.detach()

            return hook

        for name, module in self._modules[when].named_modules():
            if not list(module.children()) and list(module.parameters()):
                hooks.append(module.register_forward_hook(keep(name or "module")))
        try:
            self._call(when, self.x[rows])
        finally:
            for hook in hooks:
                hook.remove()
        hidden = {name: _numpy(h) for name, h in list(captured.items())[:-1] if h.shape[:1] == (len(rows),)}
        return hidden or None

    def kernels(self, when, rows):
        """K_p = 1/O Σ_o J_o J_oᵀ of each parameter p, tile by tile of rows."""
        torch, params = self._torch, self._moving(when)
        row = lambda p, x: self._functional(when, p, x[None])[0].reshape(-1)
        jacobians = torch.func.vmap(torch.func.jacrev(row), (None, 0))
        x = self.x[rows]
        outputs = self._call(when, x[:1]).numel()
        row_bytes = outputs * sum(p.numel() * p.element_size() for p in params.values())
        tile = int(np.clip(_BYTES // row_bytes, 1, len(rows)))
        starts = range(0, len(rows), tile)
        kernels = {name: np.zeros((len(rows), len(rows))) for name in params}
        for i in starts:
            left = jacobians(params, x[i : i + tile])
            for j in (s for s in starts if s >= i):
                right = left if j == i else jacobians(params, x[j : j + tile])
                for name, kernel in kernels.items():
                    a, b = (part[name].detach().reshape(len(part[name]), -1) for part in (left, right))
                    block = _numpy(a @ b.T) / outputs
                    kernel[i : i + tile, j : j + tile] = block
                    kernel[j : j + tile, i : i + tile] = block.T
        return kernels

    def notes(self):
        first, last = (dict(module.named_buffers()) for module in self._modules)
        moved = [name for name, b in first.items() if not self._torch.equal(b, last[name])]
        return (f"buffers moved too, and are those of each module: {', '.join(moved)}",) if moved else ()

    def _moving(self, when: int) -> Data:
        trained = {name for name, p in self._modules[1].named_parameters() if p.requires_grad}
        params = self._modules[when].named_parameters()
        return {name: p.detach() for name, p in params if name in trained}

    def _functional(self, when: int, params: Data, x: "Tensor") -> "Tensor":
        return self._torch.func.functional_call(self._modules[when], params, (x,))

    def _call(self, when: int, x: "Tensor") -> "Tensor":
        with self._torch.no_grad():
            f = self._modules[when](x)
        if not self._torch.is_tensor(f) or f.shape[:1] != x.shape[:1]:
            kind = tuple(f.shape) if self._torch.is_tensor(f) else type(f).__name__
            raise ValueError(f"The module must return one tensor with a row for each sample, got {kind}.")
        return f

    def _check_same(self) -> None:
        shapes = [{n: tuple(p.shape) for n, p in module.named_parameters()} for module in self._modules]
        for name in [*shapes[0], *(n for n in shapes[1] if n not in shapes[0])]:
            here, there = (named.get(name, "missing") for named in shapes)
            if here != there:
                raise ValueError(
                    f"before and after must be one module at two times, but {name} is {here} before "
                    f"and {there} after. Keep a copy.deepcopy(module) from before training."
                )
        if not self._moving(0):
            raise ValueError("The module has no parameters that train (requires_grad=True).")
        for name, p in self._moving(0).items():
            if not bool(self._torch.isfinite(p).all()):
                raise ValueError(f"The weights before training must be finite, but {name} is not.")

    def _check_mode(self, module: "Module") -> None:
        for name, part in module.named_modules():
            kind = type(part).__name__
            coupled = (kind in _RANDOM and getattr(part, "p", 1.0) > 0) or "BatchNorm" in kind
            if part.training and coupled:
                raise ValueError(
                    f"{name or 'The module'} ({kind}) is in training mode, where f is random or couples "
                    "the rows. Call .eval() on both modules first."
                )
        try:
            with self._torch.no_grad():
                one, other = module(self.x[:2]), module(self.x[:2])
        except Exception as error:
            raise ValueError(f"The module failed on x of shape {tuple(self.x.shape)}: {error}") from error
        if not self._torch.allclose(one, other, equal_nan=True):
            raise ValueError("The module gave two answers for the same x: it is random. Call .eval() first.")


def _loaded(module: "Module", weights: Mapping) -> "Module":
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"The state_dict from before does not fit the module: {error}") from None
    return module


def _numpy(tensor: "Tensor") -> np.ndarray:
    return tensor.detach().cpu().double().numpy() if tensor.is_floating_point() else tensor.cpu().numpy()


def _torch() -> ModuleType:
    try:
        import torch
        import torch.func
    except ImportError as error:
        raise ImportError("PyTorch modules need torch: pip install 'wideflow[torch]'.") from error
    return torch
