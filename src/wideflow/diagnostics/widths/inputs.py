"""The inputs of a width check, checked: widths, loss, data, and what is to be trained."""

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._checks import count, finite
from ..._shown import shown
from ...parametrisations import Parametrisation
from ...parametrisations.exponents import power
from ...problems.losses import AbstractLoss, loss_named
from ...states.family import is_family
from ...states.network import is_network
from ...vocabulary.losses import LOSSES
from .family_trial import FamilyTrial
from .function_trial import FunctionTrial


def build_trial(
    family: Any, chosen: Parametrisation | None, x, y, loss, steps: int, optimiser, centred, train, features
) -> Any:
    """Networks of a family, centred where the predicted f(0) does not grow, or models of make(key, n)."""
    if chosen is not None:
        _refuse(train is not None or features is not None, "train and features go with make(key, n)")
        power(optimiser)
        loss.check(jnp.asarray(y), family.outputs)
        centre = chosen.exponents(optimiser).f0 <= 0 if centred is None else bool(centred)
        return FamilyTrial(family, chosen, x, y, loss, steps, optimiser, centre)
    _refuse(bool(centred), "make(key, n) itself makes a centred model, F = f - f(0), where one is wanted")
    by_name = isinstance(optimiser, str)
    _refuse(by_name and optimiser != "sgd", "with make(key, n), optimiser(n) must return an optax optimiser")
    return FunctionTrial(family, x, y, loss, steps, train, None if by_name else optimiser, features)


def checked_family(family: Any) -> Any:
    _refuse(is_network(family), "a network has one width; pass net.family")
    known = is_family(family) or callable(family)
    _refuse(not known, f"family must be a wf.Family or a function make(key, n), got {shown(family)}")
    return family


def checked_widths(widths: Sequence[int]) -> tuple[int, ...]:
    if isinstance(widths, str) or not isinstance(widths, Iterable) or np.ndim(widths) == 0:
        raise ValueError(f"width_check takes several widths such as (32, 64, 128), got {shown(widths)}.")
    ns = tuple(count("each of widths", n, least=2) for n in widths)
    if len(ns) < 3 or sorted(set(ns)) != list(ns):
        raise ValueError(f"width_check(widths) needs at least three widths that increase, got {ns}.")
    return ns


def _refuse(wrong: bool, words: str) -> None:
    if wrong:
        raise ValueError(f"width_check: {words}.")


def checked_loss(loss: AbstractLoss | str) -> AbstractLoss:
    if isinstance(loss, AbstractLoss):
        return loss
    if loss not in LOSSES:
        raise ValueError(
            f"loss must be one of {', '.join(LOSSES)}, or such as wf.losses.Huber(1.0), got {shown(loss)}."
        )
    return loss_named(loss)


def checked_data(
    family: Any, x: Any, y: Any, loss: AbstractLoss, size: float
) -> tuple[np.ndarray, np.ndarray]:
    if (x is None) != (y is None):
        raise ValueError("width_check needs both x and y, or neither.")
    if x is None:
        if not is_family(family):
            raise ValueError("Give x and y: make(key, n) does not say its input size.")
        from scipy.special import erf

        x = np.random.default_rng(0).normal(size=(16, family.d))
        y = size * erf(x[:, 0])
        if family.outputs > 1 or not loss.is_squared:
            raise ValueError("width_check has data of its own for one output and squared loss; give x and y.")
    dtype = jax.dtypes.canonicalize_dtype(np.result_type(np.asarray(x).dtype, np.float32))
    x, y = finite("x", x).astype(dtype), finite("y", y)
    y = y.astype(dtype) if y.dtype.kind == "f" else y
    if len(x) != len(y):
        raise ValueError(f"x and y must have equally many rows, got {len(x)} and {len(y)}.")
    return x, y
