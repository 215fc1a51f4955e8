"""What a width check was made with, in one line."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...parametrisations import Parametrisation
from ...problems.losses import AbstractLoss
from ...vocabulary.losses import LOSSES

_OWN = "of make(key, n)"


class Setting(NamedTuple):
    """Parametrisation, optimiser and loss by name; rows of x, the shape of one, and whether x and y are the
    library's own (`default`)."""

    parametrisation: str
    optimiser: str
    loss: str
    rows: int
    dimension: tuple[int, ...]
    default: bool

    def __str__(self) -> str:
        shape = "×".join(map(str, self.dimension)) or "1"
        own = "default: Gaussian x, y = erf of one direction" if self.default else "given"
        return (
            f"Parametrisation {self.parametrisation}, optimiser {self.optimiser}, {self.loss} loss, "
            f"data: {self.rows} rows of dimension {shape} ({own})."
        )


def setting(
    chosen: Parametrisation | None,
    optimiser: Any,
    train: Callable | None,
    loss: AbstractLoss,
    x: np.ndarray,
    default: bool,
) -> Setting:
    """The setting of a family under a chosen parametrisation, or of the user's own models (None)."""
    if chosen is None:
        by = "train(f, params, x, y, n)" if train is not None else "optimiser(n)"
        by = "sgd" if train is None and isinstance(optimiser, str) else by
    else:
        by = optimiser
    parametrisation = _OWN if chosen is None else chosen.name or _exponents(chosen)
    losses = {word.constructor(): word.name for word in LOSSES.values()}
    return Setting(
        parametrisation, by, losses.get(type(loss), type(loss).__name__), len(x), np.shape(x)[1:], default
    )


def _exponents(p: Parametrisation) -> str:
    return ", ".join(f"{letter} = ({', '.join(f'{v:g}' for v in getattr(p, letter))})" for letter in "abc")
