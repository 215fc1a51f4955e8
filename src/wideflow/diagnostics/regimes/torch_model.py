"""PyTorch modules as models before and after training (extra `torch`)."""

import copy
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..._data import Data
from ..alignment import rms
from .model import AbstractModel, BufferMove, pieces
from .plan import Layer
from .torch_buffers import held_buffers, moved_buffers
from .torch_kernels import TorchKernels
from .torch_signals import without_fast_path

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_RANDOM = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU")


def torch_model(before: Any, after: Any, x: ArrayLike) -> "TorchModel":
    """The model of one `nn.Module` after training and its copy, or `state_dict`, from before."""
    return TorchModel(before, after, x)


class TorchModel(AbstractModel):
    """Hidden layers are the outputs of the innermost modules with weights, except the last; kernels are taken
    layer by layer. Parameters with `requires_grad=False` are held fixed, and so are buffers: where they
    moved (running statistics of norms), both ends have those of `before`, and norms that had seen no batch
    yet take the statistics of x there."""

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
            self.outputs = self._check_mode(module)
        self._moved = moved_buffers(torch, *self._modules)
        self._held = held_buffers(torch, before, self.x) if self._moved else {}
        self._found: dict[int, TorchKernels] = {}

    def weights(self, when):
        return {name: _numpy(p) for name, p in self._moving(when).items()}

    def linear(self, rows):
        start, end = self._moving(0), self._moving(1)
        moved = {name: end[name] - p for name, p in start.items()}
        parts = []
        for part in pieces(rows):
            f = lambda params, part=part: self._functional(0, params, self.x[part])
            with without_fast_path(self._torch):
                f0, change = self._torch.func.jvp(f, (start,), (moved,))
            parts.append(_numpy(f0 + change))
        return np.concatenate(parts).reshape(len(rows), -1)

    def seen(self, when, rows):
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
            f = _numpy(self._call(when, self.x[rows])).reshape(len(rows), -1)
        finally:
            for hook in hooks:
                hook.remove()
        hidden = {
            name: h.cpu().numpy() for name, h in list(captured.items())[:-1] if h.shape[:1] == (len(rows),)
        }
        return f, hidden or None

    @property
    def itemsize(self):
        return next(iter(self._moving(0).values())).element_size()

    def layers(self):
        found = self._kernels(0)
        others = [Layer(1, self._moving(0)[name].numel(), 1) for name in found.generic]
        return found.layers + others

    def kernels(self, when, rows, groups, done):
        return self._kernels(when).kernels(self.x[rows], groups, done)

    def _kernels(self, when: int) -> TorchKernels:
        if when not in self._found:
            tensors, moving = self._tensors(when), list(self._moving(when))
            self._found[when] = TorchKernels(self._torch, self._modules[when], tensors, moving, self.x)
        return self._found[when]

    def buffers(self, rows, f0, ft):
        if not self._moved:
            return None
        one, other = self._modules
        start = dict(one.named_buffers())
        held = all(self._torch.equal(b, start[name]) for name, b in self._held.items())
        own = f0 if held else self._own(one, rows), self._own(other, rows)
        whole = np.linalg.norm(own[1] - own[0])
        rest = np.linalg.norm(own[1] - own[0] - (ft - f0))
        return BufferMove(tuple(self._moved), float(rest / whole) if whole > 0 else 0.0, rms(own[1]))

    def _own(self, module: "Module", rows: np.ndarray) -> np.ndarray:
        """f with the module's own buffers."""
        with self._torch.no_grad():
            parts = [_numpy(module(self.x[part])) for part in pieces(rows)]
        return np.concatenate(parts).reshape(len(rows), -1)

    def _moving(self, when: int) -> Data:
        trained = {name for name, p in self._modules[1].named_parameters() if p.requires_grad}
        params = self._modules[when].named_parameters()
        return {name: p.detach() for name, p in params if name in trained}

    def _functional(self, when: int, params: Data, x: "Tensor") -> "Tensor":
        return self._torch.func.functional_call(self._modules[when], {**self._held, **params}, (x,))

    def _tensors(self, when: int) -> Data:
        """All that the module reads: its parameters, and buffers as they are held."""
        module = self._modules[when]
        named = [*module.named_parameters(), *module.named_buffers()]
        return {name: t.detach() for name, t in named} | self._held

    def _call(self, when: int, x: "Tensor") -> "Tensor":
        with self._torch.no_grad(), without_fast_path(self._torch):
            f = self._functional(when, {}, x)
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

    def _check_mode(self, module: "Module") -> int:
        """The number of outputs."""
        for name, part in module.named_modules():
            kind = type(part).__name__
            coupled = (kind in _RANDOM and getattr(part, "p", 1.0) > 0) or "BatchNorm" in kind
            if part.training and coupled:
                raise ValueError(
                    f"{name or 'The module'} ({kind}) is in training mode, where f is random or couples "
                    "the rows. Call .eval() on both modules first."
                )
            if "BatchNorm" in kind and part.running_mean is None:
                raise ValueError(
                    f"The module must act row by row, but {name or 'it'} ({kind}) keeps no running "
                    "statistics and couples the rows also in .eval(). Take track_running_stats=True."
                )
        try:
            with self._torch.no_grad():
                one, other, alone = module(self.x[:2]), module(self.x[:2]), module(self.x[:1])
        except Exception as error:
            raise ValueError(f"The module failed on x of shape {tuple(self.x.shape)}: {error}") from error
        if not self._torch.allclose(one, other, equal_nan=True):
            raise ValueError("The module gave two answers for the same x: it is random. Call .eval() first.")
        size = float(one.abs().nan_to_num().max()) if one.numel() else 0.0
        rounding = self._torch.finfo(one.dtype).eps ** 0.5 * (1 + size)  # room for other orders of summation
        if not self._torch.allclose(one[:1], alone, rtol=0, atol=rounding, equal_nan=True):
            raise ValueError(
                "The module must act row by row, but a row has another output next to a second one than "
                "alone. Does a layer of it take a mean over the first axis?"
            )
        return one[:1].numel()


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
