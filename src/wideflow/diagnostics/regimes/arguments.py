"""Which kind of model the arguments of `regime` describe, and what to write where they describe none."""

import sys
from collections.abc import Mapping
from types import ModuleType

from jaxtyping import PyTree

from ...states.trainable import is_trainable
from .model import AbstractModel, JaxModel
from .state_model import state_model
from .torch_model import torch_model

_FUNCTION = "regime(f, params_before, params_after, x)"


def chosen_model(args: tuple, features: PyTree, rates: PyTree) -> AbstractModel:
    """The model of (f, params_before, params_after, x), or of (before, after, x), states or modules."""
    torch = sys.modules.get("torch")  # where there is a module, torch is loaded
    modules = [torch is not None and isinstance(part, torch.nn.Module) for part in args]
    if torch is not None:
        _refuse_torch(args, modules, torch)
    if len(args) == 4:
        _refuse_four(args)
        return JaxModel(*args, features=features, rates=rates)
    if not any(modules):
        _refuse_three(args)
    if features is not None or rates is not None:
        raise ValueError(
            f"features and rates go with a function, {_FUNCTION}; states and modules bring their own."
        )
    return torch_model(*args) if any(modules[:2]) else state_model(*args)


def _refuse_torch(args: tuple, modules: list[bool], torch: ModuleType) -> None:
    """Refuse weights without their module, or next to it in the order of a JAX function."""
    weights = [_is_state_dict(part, torch) for part in args]
    if (any(modules) and len(args) == 4) or (any(weights[:3]) and not any(modules)):
        raise ValueError(
            "PyTorch weights mean nothing without their module: pass the modules themselves, "
            "regime(module_before, module_after, x), with module_before = copy.deepcopy(module) from before "
            "training."
        )


def _is_state_dict(part: object, torch: ModuleType) -> bool:
    return isinstance(part, Mapping) and bool(part) and all(torch.is_tensor(v) for v in part.values())


def _refuse_four(args: tuple) -> None:
    f, before, after, _ = args
    if is_trainable(f) and is_trainable(before):
        raise ValueError("For two states call regime(before, after, x, y=y): y is passed by name.")
    turned = callable(after) and type(f) is type(before)  # modules, which can be called as well
    if turned or (not callable(f) and (callable(before) or callable(after))):
        raise ValueError(f"f must come first: {_FUNCTION}, got a {type(f).__name__} in its place.")


def _refuse_three(args: tuple) -> None:
    f, before, after = args
    if is_trainable(f):
        return
    if callable(f) and callable(before):
        raise ValueError(
            "For a module that is called on one sample pass the call as well: "
            "regime(lambda m, x: jax.vmap(m)(x), m0, m, x)."
        )
    if callable(f):
        raise ValueError(f"x is missing: {_FUNCTION}, x being the rows to measure on.")
    if callable(after):
        raise ValueError(f"f must come first, and x is missing: {_FUNCTION}.")
