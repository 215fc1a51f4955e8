"""The problem: law of x, target y, neuron σ*(x; θ), loss."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._checks import count, is_traced, positive
from .._checks import key as check_key
from .._random import normal
from .._shown import shown
from .._tracing import jit_once, on_device
from .._typing import Dimension, TypeIs
from .laws import AbstractLaw, Mixture, check_sample_fits, is_dataset
from .losses import AbstractLoss, loss_named
from .neurons import AbstractNeuron, is_ridge
from .no_neuron import NoNeuron
from .nodes import Nodes, uniform
from .radial import DEFAULT_ORDERS, RadialNeuron
from .symmetry import Symmetry, find, reduced_law, reduced_target
from .targets import AbstractTarget, Function, MultiIndex


def _target(target: Any) -> AbstractTarget | None:
    return Function(target) if callable(target) and not isinstance(target, eqx.Module) else target


def _finite(y: Array, x: Array) -> Array:
    """Values of the target at Gauss nodes, which must be finite at all of them."""
    if is_traced(y):
        return y
    bad = ~np.isfinite(np.asarray(y)).reshape(len(y), -1).all(axis=1)
    if bad.any():
        i = int(bad.argmax())
        at = np.array2string(np.asarray(x[i]), precision=4)
        raise ValueError(
            f"The target must be finite, but gives {y[i]} at x = {at} (at {bad.sum()} of {len(y)} nodes). "
            "Mend the target there."
        )
    return y


def _loss(loss: AbstractLoss | str) -> AbstractLoss:
    return loss_named(loss) if isinstance(loss, str) else loss


def _draws(law: AbstractLaw, target: AbstractTarget | None, noise: Any, key: Array, m: int) -> Nodes:
    """m draws of (x, y), y = f*(x) + noise · z."""
    key_x, key_y = jax.random.split(key)
    x, y = law.sample(key_x, m)
    y = jnp.asarray(y) if target is None else target(x)
    if not (isinstance(noise, float) and noise == 0.0):
        y = y + noise * normal(key_y, y.shape, x.dtype)
    return uniform(x, y)


_few_draws = jit_once(_draws)


class Problem(eqx.Module):
    """Fit y = f*(x) + noise · z, x ~ law, z ~ N(0, 1), by f(x; ρ) = α ∫ σ*(x; θ) ρ(dθ) under a loss.

    `target` is one of `wf.single_index`, `wf.teacher`, …, or any JAX function of one x; leave it
    out where the law of x brings labels (`wf.Dataset`, `wf.Mixture`). The `neuron` σ* is what particles are
    made of; a problem for deep networks needs none. Its number of `outputs` is then that of the labels; for
    class numbers, one more than the largest, or what the network has, if that is more.

    >>> problem = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    >>> problem.d, problem.D
    (3, 4)"""

    x: AbstractLaw
    target: AbstractTarget | None
    neuron: AbstractNeuron
    loss: AbstractLoss
    noise: float

    def __init__(
        self,
        x: AbstractLaw,
        *,
        target: AbstractTarget | Callable[[Array], Array] | None = None,
        neuron: AbstractNeuron | None = None,
        loss: AbstractLoss | str = "squared",
        noise: float = 0.0,
        outputs: int | None = None,
    ):
        self.x, self.target, self.loss = x, _target(target), _loss(loss)
        self.noise = positive("Problem(noise)", noise, zero=True)
        self._check_kinds()
        self.neuron = self._outputs(outputs) if neuron is None else neuron
        if not isinstance(self.neuron, AbstractNeuron):
            raise ValueError(
                f'Problem(neuron) must be a neuron such as wf.Neuron("erf"), got {shown(neuron)}.'
            )
        if neuron is not None and outputs is not None and outputs != neuron.outputs:
            raise ValueError(
                f"Problem(outputs) must be that of the neuron, {neuron.outputs}, or left out; got {outputs}."
            )
        if math.isinf(self.d):
            self._check_stand_in()
            return
        self.neuron.check(self.d)
        self.loss.check(self._some_labels(), self.neuron.outputs)

    def _check_kinds(self) -> None:
        """Law, target, loss and noise, each by itself and together."""
        for name, kind, example in (
            ("x", AbstractLaw, "wf.Gaussian(50)"),
            ("loss", AbstractLoss, '"huber"'),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise ValueError(f"Problem({name}) must be such as {example}, got {shown(value)}.")
        if self.target is None and not self.x.labelled:
            raise ValueError(
                f"Problem(target) must be given, such as target=wf.single_index('erf'), because "
                f"{type(self.x).__name__} brings no labels; got None."
            )
        if self.target is not None and self.x.labelled:
            raise ValueError(
                f"Problem(target) must be left out, because {type(self.x).__name__} brings its own "
                f"labels; got {shown(self.target)}."
            )
        if self.target is not None and not isinstance(self.target, AbstractTarget):
            raise ValueError(
                f"Problem(target) must be a target or a function of one x, got {shown(self.target)}."
            )
        if math.isinf(self.d):
            return
        if self.target is not None:
            self.target.check(self.d)
        if is_dataset(self.x) and self.noise:
            raise ValueError(
                "Problem(noise) must be left out, because a data set has its noise in its labels already; "
                f"got {self.noise}."
            )

    def _outputs(self, outputs: int | None) -> NoNeuron:
        """How many outputs the labels require, where no neuron says so."""
        if math.isinf(self.d):
            raise ValueError("Problem(neuron) must be given for d = inf, where there are no networks of x.")
        if outputs is not None:
            return NoNeuron(count("Problem(outputs)", outputs))
        exact, least = self.loss.outputs(self._some_labels())
        if not exact and not self.x.labelled:
            raise ValueError(
                "Problem(outputs) must be given: the number of classes. Draws of the target may have missed "
                "some of them."
            )
        return NoNeuron(least, exact)

    @property
    def outputs(self) -> int:
        """Values of f(x): those of the neuron, or as many as the labels require (at least)."""
        return self.neuron.outputs

    def check_outputs(self, outputs: int) -> None:
        """Raise if a network with this many outputs does not fit the problem."""
        loose = isinstance(self.neuron, NoNeuron) and not self.neuron.exact
        if outputs != self.outputs and not (loose and outputs > self.outputs):
            at_least = "at least " if loose else ""
            raise ValueError(
                f"The problem has {at_least}{self.outputs} output(s), got a network with {outputs}. Give the "
                "network's family as many, or say Problem(…, outputs=…) (with a neuron: "
                "wf.Neuron(…, outputs=…))."
            )

    def _check_stand_in(self) -> None:
        """For d = inf: the checks of the same problem in a few dimensions."""
        target = self.target
        directions = getattr(target, "directions" if isinstance(target, MultiIndex) else "w", None)
        if directions is not None:
            raise ValueError(
                "Problem(target) must leave its directions out for d = inf, where they are the first axes; "
                f"got {shown(target)}."
            )
        few = max(8, target.k if isinstance(target, MultiIndex) else 0)
        law: Any = self.x
        Problem(x=law.at(few), target=target, neuron=self.neuron, loss=self.loss, noise=self.noise)

    def _some_labels(self) -> Any:
        """All labels where they are listed, else those of a few draws; only their shape and type where the
        loss takes any number."""
        if is_dataset(self.x):
            return self.x.y
        if isinstance(self.x, Mixture) and self.noise == 0:
            return self.x.labels
        few = max(4, min(64, 2**18 // self.d))
        draw = lambda: _draws(self.x, self.target, self.noise, jax.random.key(0), few).y
        if not self.loss.reads_labels:
            return jax.eval_shape(draw)
        return _few_draws(self.x, self.target, self.noise, jax.random.key(0), few).y

    @property
    def d(self) -> Dimension:
        """Dimension of x."""
        return self.x.d

    @property
    def D(self) -> int:  # noqa: N802 (theory's name)
        """Dimension of θ."""
        return self.neuron.size(self.d)

    def sample(self, key: Array, m: int) -> Nodes:
        """m independent draws (x, y), equally weighted; draw i depends on `key` and i only."""
        check_sample_fits(self.d, count("m", m))
        return _draws(self.x, self.target, self.noise, check_key("key", key), m)

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
        x, weights = on_device(rule[0], dtype), on_device(rule[2], dtype)
        y = on_device(rule[1], dtype) if self.target is None else _finite(self.target(x), x)
        return Nodes(x, y, weights)

    def symmetry(self) -> Symmetry:
        """The symmetry of (law of x, target); a `NoSymmetryError` says why there is none."""
        if isinstance(self.neuron, NoNeuron):
            self.neuron.size(self.d)  # raises
        return find(self.x, self.target, self.neuron)

    def reduced(self, order: int | None = None) -> "Problem":
        """The same problem in the few coordinates that a symmetric law of θ needs: x̄ = (x_S, q) and
        θ̄ = (a, s, r[, b]), with s the weights along the k directions of the signal and r the length of w
        in each block that is left. All dynamics and functionals take it as it is (the flow keeps r ≥ 0;
        discrete steps may pass 0, which means the same, as all is even in r); `order` is the number of
        nodes of the means inside the reduced neuron."""
        symmetry, neuron = self.symmetry(), self.neuron
        assert is_ridge(neuron)  # or there would be no symmetry
        order = DEFAULT_ORDERS.get(symmetry.k, 12) if order is None else count("order", order)
        return Problem(
            x=reduced_law(symmetry, self.x, self.target),
            target=reduced_target(symmetry, self.target),
            neuron=RadialNeuron(neuron, symmetry.blocks, order),
            loss=self.loss,
            noise=self.noise,
        )


_drawn = jit_once(lambda problem, key, m: problem.sample(key, m))


def is_problem(value: object) -> TypeIs[Problem]:
    """Whether something is a problem."""
    return isinstance(value, Problem)
