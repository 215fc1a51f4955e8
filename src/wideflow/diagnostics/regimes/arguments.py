"""Which kind of model a regime report is given, and what to write instead of what it is not."""

import sys
from collections.abc import Mapping
from types import ModuleType

from jaxtyping import PyTree

from ...states.trainable import is_trainable
from .model import AbstractModel, JaxModel
from .state_model import state_model
from .torch_model import torch_model

_FUNCTION = "regime(f, params_before, params_after, x)"


def chosen_model(given: tuple, features: PyTree, rates: PyTree) -> AbstractModel:
    """The model of (f, params_before, params_after, x), or of (before, after, x), states or modules."""
    torch = sys.modules.get("torch")  # where there is a module, torch is loaded
    modules = [torch is not None and isinstance(part, torch.nn.Module) for part in given]
    if torch is not None:
        _refuse_torch(given, modules, torch)
    if len(given) == 4:
        _refuse_four(given)
        return JaxModel(*given, features=features, rates=rates)
    if not any(modules):
        _refuse_three(given)
    if features is not None or rates is not None:
        raise ValueError(
            f"features and rates go with a function, {_FUNCTION}; states and modules bring their own."
        )
    return torch_model(*given) if any(modules[:2]) else state_model(*given)


def _refuse_torch(given: tuple, modules: list[bool], torch: ModuleType) -> None:
    """Weights without the module that they belong to, or beside it in the order of a JAX function."""
    weights = [_is_state_dict(part, torch) for part in given]
    if (any(modules) and len(given) == 4) or (any(weights[:3]) and not any(modules)):
        raise ValueError(
            "PyTorch weights say nothing without their module: give the modules themselves, "
            "regime(module_before, module_after, x), with module_before = copy.deepcopy(module) from before "
            "training."
        )


def _is_state_dict(part: object, torch: ModuleType) -> bool:
    return isinstance(part, Mapping) and bool(part) and all(torch.is_tensor(v) for v in part.values())


def _refuse_four(given: tuple) -> None:
    f, before, after, _ = given
    if is_trainable(f) and is_trainable(before):
        raise ValueError("Of two states give regime(before, after, x, y=y): y goes by its name.")
    turned = callable(after) and type(f) is type(before)  # modules, which can be called as well
    if turned or (not callable(f) and (callable(before) or callable(after))):
        raise ValueError(f"f must come first: {_FUNCTION}, got a {type(f).__name__} in its place.")


def _refuse_three(given: tuple) -> None:
    f, before, after = given
    if is_trainable(f):
        return
    if callable(f) and callable(before):
        raise ValueError(
            "Of a module that is called on one sample give the call as well: "
            "regime(lambda m, x: jax.vmap(m)(x), m0, m, x)."
        )
    if callable(f):
        raise ValueError(f"x is missing: {_FUNCTION}, x being the rows to measure on.")
    if callable(after):
        raise ValueError(f"f must come first, and x is missing: {_FUNCTION}.")
