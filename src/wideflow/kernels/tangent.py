"""The kernel of a state of the library, by the fastest way that there is for it."""

from jaxtyping import Array

from ..states.linear import Linear
from ..states.network import Network
from ..states.trainable import AbstractTrainable
from .empirical import empirical_ntk
from .layerwise import layerwise_ntk


def tangent_kernel(
    state: AbstractTrainable, x1: Array, x2: Array | None = None, *, form: str = "full"
) -> Array:
    """K(x, x') with which a signal at x' moves f(x), at the state's weights and with its rates: the kernel of
    the residual dynamics ∂t u = −E'[K u], for any α. `form` as in `wf.empirical_ntk`."""
    at = state.at if isinstance(state, Linear) else state
    if isinstance(at, Network):
        return layerwise_ntk(at, x1, x2, form=form)
    f, params, rates = at.tangent()
    return empirical_ntk(f, params, x1, x2, form=form, rates=rates)
