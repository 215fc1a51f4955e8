"""Losses ℓ(f, y), convex and differentiable in f; the signal that trains is u = −∂ℓ/∂f."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import nearest, positive
from .._shown import shown
from ..vocabulary.losses import LOSSES


class AbstractLoss(eqx.Module):
    """ℓ(f, y) row by row. `signal` is u = −∂ℓ/∂f, the residual y − f of the squared loss."""

    @property
    def is_squared(self) -> bool:
        """Whether ℓ is a square, so that u is linear in f and the expectation has closed forms."""
        return False

    @property
    def reads_labels(self) -> bool:
        """Whether `outputs` and `check` look at the values of labels, as for classes, and not at their shape
        alone."""
        return True

    @abc.abstractmethod
    def __call__(self, f: Array, y: Array) -> Float[Array, " m"]:
        """ℓ of every row."""

    def signal(self, f: Array, y: Array) -> Array:
        """u = −∂ℓ/∂f of every row, of the shape of f."""
        return -jax.grad(lambda f: jnp.sum(self(f, y)))(f)

    def outputs(self, y: Array | jax.ShapeDtypeStruct) -> tuple[bool, int]:
        """Whether the number of outputs that labels y require is exact, and that number (else a lower
        bound)."""
        return True, math.prod(y.shape[1:])

    def check(self, y: Array | jax.ShapeDtypeStruct, outputs: int) -> None:
        """Raise if labels y cannot be fitted with this loss by a network with this many outputs."""
        expected = f"(m, {outputs})" if outputs > 1 else "(m,)"
        if y.shape[1:] != ((outputs,) if outputs > 1 else ()):
            flat = y.ndim == 2 and y.shape[1] == 1 and outputs == 1
            hint = (
                "Use y[:, 0]."
                if flat
                else "Set outputs=… of the neuron, or of the problem, to match the labels or target."
            )
            raise ValueError(
                f"{type(self).__name__} loss with {outputs} output(s) needs y of shape {expected}, got "
                f"{y.shape}. {hint}"
            )


class Squared(AbstractLoss):
    """ℓ = ½|y − f|²."""

    @property
    def is_squared(self):
        return True

    @property
    def reads_labels(self):
        return False

    def __call__(self, f, y):
        square = 0.5 * (y - f) ** 2
        return square if square.ndim == 1 else jnp.sum(square, axis=-1)


class Huber(AbstractLoss):
    """ℓ = ½e² for |e| ≤ δ, δ(|e| − ½δ) beyond, with e = y − f."""

    delta: float = eqx.field(default=1.0, converter=lambda v: positive("Huber(delta)", v))

    @property
    def reads_labels(self):
        return False

    def __call__(self, f, y):
        error = jnp.abs(y - f)
        inside = jnp.minimum(error, self.delta)
        loss = inside * (error - 0.5 * inside)
        return loss if loss.ndim == 1 else jnp.sum(loss, axis=-1)


class Logistic(AbstractLoss):
    """ℓ = log(1 + e^{−yf}), labels y = ±1."""

    def __call__(self, f, y):
        return jax.nn.softplus(-y * f)

    def check(self, y, outputs):
        super().check(y, outputs)
        if outputs != 1:
            raise ValueError("Logistic loss takes one output; use SoftmaxCrossEntropy for more.")
        if not bool(jnp.all(jnp.abs(y) == 1)):
            values = ", ".join(f"{v:g}" for v in jnp.unique(y)[:5])
            raise ValueError(f"Logistic loss needs labels y = -1 or +1, got values {values}, …")


class SoftmaxCrossEntropy(AbstractLoss):
    """ℓ = log Σ_c e^{f_c} − f_y, labels y ∈ {0, …, outputs − 1}."""

    def __call__(self, f, y):
        chosen = jnp.take_along_axis(f, y[:, None].astype(int), axis=-1)[:, 0]
        return jax.nn.logsumexp(f, axis=-1) - chosen

    def outputs(self, y):
        """One more than the largest class number; there may be classes without a row."""
        return False, max(2, int(jnp.max(y)) + 1)

    def check(self, y, outputs):
        if outputs < 2:
            raise ValueError("SoftmaxCrossEntropy needs outputs=number of classes, of the neuron or problem.")
        labels = jnp.asarray(y)
        whole = labels.ndim == 1 and bool(jnp.all(labels == jnp.round(labels)))
        if not whole or bool(jnp.any((labels < 0) | (labels >= outputs))):
            raise ValueError(
                f"SoftmaxCrossEntropy needs one class number 0…{outputs - 1} per row, got y of "
                f"shape {labels.shape} with values from {labels.min()} to {labels.max()}."
            )


def loss_named(name: str, **options: object) -> AbstractLoss:
    """The loss of this name in `vocabulary.losses`, with its options."""
    if name not in LOSSES:
        raise ValueError(f"Unknown loss {shown(name)}; known: {', '.join(LOSSES)}.{nearest(name, LOSSES)}")
    word = LOSSES[name]
    word.check("Loss", options)
    return word.constructor()(**options)
