"""The problem: law of x, target y, neuron σ*(x; θ), loss."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._checks import count, nearest, positive
from .._checks import key as check_key
from .laws import AbstractLaw, Dataset, Mixture, check_sample_fits
from .losses import LOSSES, AbstractLoss, Squared
from .neurons import AbstractNeuron, Neuron
from .nodes import Nodes, uniform
from .radial import DEFAULT_ORDERS, RadialNeuron
from .symmetry import Symmetry, find, reduced_law, reduced_target
from .targets import AbstractTarget, Function, MultiIndex


def _target(target: Any) -> AbstractTarget | None:
    return Function(target) if callable(target) and not isinstance(target, eqx.Module) else target


def _loss(loss: Any) -> AbstractLoss:
    if isinstance(loss, str):
        if loss not in LOSSES:
            known = ", ".join(LOSSES)
            raise ValueError(f"Unknown loss {loss!r}; known: {known}.{nearest(loss, LOSSES)}")
        return LOSSES[loss]()
    return loss


class Problem(eqx.Module):
    """Fit y = f*(x) + noise · z, x ~ law, z ~ N(0, 1), by f(x; ρ) = α ∫ σ*(x; θ) ρ(dθ) under a loss.

    `target` is one of `wf.single_index`, `wf.teacher`, …, or any JAX function of one x; it stays
    out where the law of x brings labels (`wf.Dataset`, `wf.Mixture`)."""

    x: AbstractLaw
    target: AbstractTarget | None = eqx.field(default=None, converter=_target, kw_only=True)
    neuron: AbstractNeuron = eqx.field(kw_only=True)
    loss: AbstractLoss = eqx.field(default=Squared(), converter=_loss, kw_only=True)
    noise: float = eqx.field(
        default=0.0, converter=lambda v: positive("Problem(noise)", v, zero=True), kw_only=True
    )

    if TYPE_CHECKING:  # what the converters take

        def __init__(
            self,
            x: AbstractLaw,
            *,
            target: AbstractTarget | Callable[[Array], Array] | None = None,
            neuron: AbstractNeuron,
            loss: AbstractLoss | str = "squared",
            noise: float = 0.0,
        ) -> None: ...

    def __check_init__(self):
        for name, kind in (("x", AbstractLaw), ("neuron", AbstractNeuron), ("loss", AbstractLoss)):
            given = getattr(self, name)
            if not isinstance(given, kind):
                example = {"x": "wf.Gaussian(50)", "neuron": 'wf.Neuron("erf")', "loss": '"huber"'}
                raise ValueError(f"Problem({name}) must be such as {example[name]}, got {given!r}.")
        if self.target is None and not self.x.labelled:
            raise ValueError(
                f"Problem(target) must be given, such as target=wf.single_index('erf'), because "
                f"{type(self.x).__name__} brings no labels; got None."
            )
        if self.target is not None:
            if self.x.labelled:
                raise ValueError(
                    f"Problem(target) must be left out, because {type(self.x).__name__} brings its own "
                    f"labels; got {self.target!r}."
                )
            if not isinstance(self.target, AbstractTarget):
                raise ValueError(
                    f"Problem(target) must be a target or a function of one x, got {self.target!r}."
                )
        if math.isinf(self.d):
            self._check_stand_in()
            return
        if self.target is not None:
            self.target.check(self.d)
        if isinstance(self.x, Dataset) and self.noise:
            raise ValueError(
                "Problem(noise) must be left out, because a data set has its noise in its labels already; "
                f"got {self.noise}."
            )
        self.neuron.check(self.d)
        self.loss.check(self._some_labels(), self.neuron.outputs)

    def _check_stand_in(self) -> None:
        """For d = inf: the checks of the same problem in a few dimensions."""
        target = self.target
        given = getattr(target, "directions" if isinstance(target, MultiIndex) else "w", None)
        if given is not None:
            raise ValueError(
                "Problem(target) must leave its directions out for d = inf, where they are the first axes; "
                f"got {target!r}."
            )
        few = max(8, target.k if isinstance(target, MultiIndex) else 0)
        law: Any = self.x
        Problem(x=law.at(few), target=target, neuron=self.neuron, loss=self.loss, noise=self.noise)

    def _some_labels(self) -> Array:
        """All labels where they are listed, else those of a few draws."""
        if isinstance(self.x, Dataset):
            return self.x.y
        if isinstance(self.x, Mixture) and self.noise == 0:
            return self.x.labels
        return self.sample(jax.random.key(0), max(4, min(64, 2**18 // self.d))).y

    @property
    def d(self) -> int:
        """Dimension of x."""
        return self.x.d

    @property
    def D(self) -> int:  # noqa: N802 (theory's name)
        """Dimension of θ."""
        return self.neuron.size(self.d)

    def sample(self, key: Array, m: int) -> Nodes:
        """m independent draws (x, y), equally weighted; draw i depends on `key` and i only."""
        check_sample_fits(self.d, count("m", m))
        key_x, key_y = jax.random.split(check_key("key", key))
        x, y = self.x.sample(key_x, m)
        y = jnp.asarray(y) if self.target is None else self.target(x)
        if not (isinstance(self.noise, float) and self.noise == 0.0):
            y = y + self.noise * jax.random.normal(key_y, y.shape, x.dtype)
        return uniform(x, y)

    def fixed_sample(self, m: int, key: Array) -> Nodes:
        """A sample to keep, refused where memory cannot hold it."""
        check_sample_fits(self.d, count("m", m))
        return _drawn(self, check_key("key", key), m)

    def quadrature(self, order: int | None = None) -> Nodes | None:
        """Gauss nodes of (x, f*(x)), without the label noise; None where none are affordable."""
        order = self.x.default_order() if order is None else count("order", order)
        rule = None if order is None else self.x.rule(order)
        if rule is None:
            return None
        dtype = jnp.result_type(float)
        x, weights = jnp.asarray(rule[0], dtype), jnp.asarray(rule[2], dtype)
        y = self.target(x) if self.target is not None else jnp.asarray(rule[1], dtype)
        return Nodes(x, y, weights)

    def symmetry(self) -> Symmetry:
        """The symmetry of (law of x, target); a `NoSymmetryError` says why there is none."""
        return find(self.x, self.target, self.neuron)

    def reduced(self, order: int | None = None) -> "Problem":
        """The same problem in the few coordinates that a symmetric law of θ needs: x̄ = (x_S, q) and
        θ̄ = (a, s, r[, b]), with s the weights along the k directions of the signal and r the length of w
        in each block that is left. All dynamics and functionals take it as it is (the flow keeps r ≥ 0;
        discrete steps may pass 0, which means the same, as all is even in r); `order` is the number of
        nodes of the means inside the reduced neuron."""
        symmetry, neuron = self.symmetry(), self.neuron
        assert isinstance(neuron, Neuron)  # or there would be no symmetry
        order = DEFAULT_ORDERS.get(symmetry.k, 12) if order is None else count("order", order)
        return Problem(
            x=reduced_law(symmetry, self.x, self.target),
            target=reduced_target(symmetry, self.target),
            neuron=RadialNeuron(neuron, symmetry.blocks, order),
            loss=self.loss,
            noise=self.noise,
        )


_drawn = eqx.filter_jit(lambda problem, key, m: problem.sample(key, m))
