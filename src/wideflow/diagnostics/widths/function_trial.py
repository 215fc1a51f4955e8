"""How far training moves models of any kind, f and params made at each width, seed by seed."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from numpy.typing import ArrayLike

from ..._data import Data
from ..._shown import shown
from ..._tracing import jit
from ...kernels.parameters import same_tree, split
from ...problems.losses import AbstractLoss, SoftmaxCrossEntropy
from ..regimes.model import by_name
from .family_trial import PROBES, Squares


class FunctionTrial:
    """`make(key, n)` gives (f, params), f(params, x) a JAX function. `train(f, params, x, y, n)` gives the
    params after, or `optimiser(n)` an optax optimiser for `steps` steps, or else plain descent takes them.

    Where all of these can be traced, the seeds are compiled as one program; else they run one by one."""

    def __init__(self, make, x, y, loss, steps: int, train=None, optimiser=None, features=None):
        self.make, self.train, self.optimiser, self.features = make, train, optimiser, features
        self.x, self.y, self.loss, self.steps = jnp.asarray(x), jnp.asarray(y), loss, steps
        self.centred, self._traced = False, True
        self._many = jit(lambda keys, n, step: jax.vmap(lambda key: self._one(key, n, step))(keys))

    def batch(self, n: int) -> int:
        return 32

    def squares(self, key: Array, number: int, n: int, step: float) -> Squares:
        keys = jax.random.split(key, number)
        if self._traced:
            try:
                out = self._many(keys, n, jnp.asarray(step, jnp.result_type(float)))
                return {name: np.asarray(v, float) for name, v in out.items()}
            except Exception:  # an error in the user's code comes up again, and clearer, without tracing
                self._traced = False
        each = [self._one(one, n, step) for one in keys]
        return {name: np.array([float(one[name]) for one in each]) for name in each[0]}

    def _one(self, key: Array, n: int, step: float) -> Data:
        start_key, probes_key = jax.random.split(key)
        model = self.make(start_key, n)
        if not isinstance(model, tuple) or len(model) != 2 or not callable(model[0]):
            raise ValueError(
                f"make(key, n) must return (f, params), f(params, x) a function, got {shown(model)}."
            )
        f, before = model
        after = self._trained(f, before, n, step)
        same_tree("params from make", before, "params after training", after)
        (start, fixed), end = split(before), split(after)[0]
        call = lambda moving: f(eqx.combine(moving, fixed), self.x)
        moved = jax.tree.map(lambda a, b: b - a, start, end)
        f0, linear = jax.jvp(call, (start,), (moved,))
        ft = call(end)
        probes = jax.random.normal(probes_key, (PROBES, *f0.shape), f0.dtype)
        K0, Kt = (_applied(call, at, probes) for at in (start, end))
        out = {"f(0)": f0, "f(t)": ft, "Δf": ft - f0, "gap": ft - f0 - linear, "K": K0, "ΔK": Kt - K0}
        if self.features is not None:
            h0, ht = (by_name(self.features(p, self.x), len(self.x), jnp.asarray) for p in (before, after))
            for i, name in enumerate(h0, 1):
                out |= {f"h{i}(0)": h0[name], f"h{i}(t)": ht[name], f"Δh{i}": ht[name] - h0[name]}
        return {name: jnp.mean(jnp.asarray(v) ** 2) for name, v in out.items()}

    def _trained(self, f: Callable, params: PyTree, n: int, step: float) -> PyTree:
        if self.train is not None:
            return self.train(f, params, self.x, self.y, n)
        moving, fixed = split(params)

        def risk(moving: PyTree) -> Array:
            out = f(eqx.combine(moving, fixed), self.x)
            return jnp.mean(self.loss(out, labels_of(self.y, out.shape, self.loss)))

        optimiser = None if self.optimiser is None else self.optimiser(n)
        memory = None if optimiser is None else optimiser.init(moving)
        for _ in range(self.steps):
            gradient = jax.grad(risk)(moving)
            if optimiser is None:
                updates = jax.tree.map(lambda g: -step * g, gradient)
            else:
                updates, memory = optimiser.update(gradient, memory, moving)
            moving = jax.tree.map(jnp.add, moving, updates)
        return eqx.combine(moving, fixed)


def labels_of(y: Array, shape: tuple[int, ...], loss: AbstractLoss) -> Array:
    """y of the shape of f, or (m,) class numbers: (m,) beside (m, 1) would broadcast to (m, m)."""
    m, outputs = len(y), int(np.prod(shape[1:]))
    if shape[:1] != (m,):
        raise ValueError(f"f(params, x) must have a row for each of the {m} samples, got shape {shape}.")
    classes = isinstance(loss, SoftmaxCrossEntropy)
    if y.size != (m if classes else m * outputs):
        expected = f"{m} class numbers" if classes else f"y of the shape of f, {shape}"
        hint = "" if classes or y.size != m else " Class numbers go with loss='cross_entropy'."
        raise ValueError(f"{type(loss).__name__} loss needs {expected}, got y of shape {y.shape}.{hint}")
    fitted = y.reshape(m) if classes else y.reshape(shape)
    with jax.ensure_compile_time_eval():  # y has values even where f is traced
        loss.check(y.reshape(m) if classes or outputs == 1 else y.reshape(m, outputs), outputs)
    return fitted


def _applied(call: Callable, at: ArrayLike, probes: Array) -> PyTree:
    """K v of every probe v."""
    _, back = jax.vjp(call, at)
    return jax.vmap(lambda v: jax.jvp(call, (at,), back(v))[1])(probes)
