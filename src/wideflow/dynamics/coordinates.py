"""Coordinates of θ by their names."""

import numpy as np

from .._checks import nearest
from .._shown import shown
from ..problems.neurons import AbstractNeuron


def names(value: object) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    values = (value,) if isinstance(value, str) else value
    if not isinstance(values, tuple | list) or not values or not all(isinstance(v, str) for v in values):
        raise ValueError(
            f'noise_on must be names of coordinates such as ("w",) or ("w1", "b"), got {shown(value)}. For '
            "no noise at all set beta=inf."
        )
    return tuple(values)


def chosen(on: tuple[str, ...], neuron: AbstractNeuron, D: int) -> np.ndarray:  # noqa: N803 (theory's name)
    """For each of the D coordinates of θ, 1.0 if one of the names is its own or that of its part (w for w1,
    w2, …), else 0.0. Raise for a name that does not exist, or whose coordinates are not trained."""
    own = neuron.coordinates(D)
    parts = [name.rstrip("0123456789") for name in own]
    known = list(dict.fromkeys([*own, *parts]))
    trained = np.array(neuron.moves(D))
    mask = np.zeros(D)
    for name in on:
        selected = np.array([name in pair for pair in zip(own, parts, strict=True)])
        if not selected.any():
            listed = ", ".join(known if len(known) < 12 else dict.fromkeys(parts))
            hint = nearest(name, known)
            raise ValueError(
                f"noise_on = {shown(name)} is no coordinate of this neuron; it has {listed}.{hint}"
            )
        if not trained[selected].all():
            raise ValueError(f"noise_on = {shown(name)} is not trained in this neuron: no noise moves it.")
        mask[selected] = 1.0
    return mask
