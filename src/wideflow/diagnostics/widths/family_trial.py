"""How far the first steps of training move networks of one family, at one width and many seeds."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ..._data import Data
from ..._tracing import jit, traced
from ...dynamics.rules import AbstractRule, At, Euler, Force, Preconditioned
from ...parametrisations import Parametrisation
from ...states.family import Family
from ...states.network import Network, Weights

Squares = dict[str, np.ndarray]  # mean squares over rows and units, one per seed

PROBES = 2  # random v in ‖ΔK v‖: unbiased for the Frobenius norm, and averaged over seeds
_HEADS = 32  # last layers for each network, of which one is trained: f(0) scatters by its last layer most
_MEMORY = 2**28  # bytes for the networks that are trained side by side


class FamilyTrial:
    """Networks of a family under one parametrisation, trained by steps of descent or Adam on (x, y)."""

    def __init__(
        self, family: Family, parametrisation, x, y, loss, steps: int, optimiser: str, centred: bool
    ):
        self.family, self.parametrisation = family, parametrisation
        self.x, self.y, self.loss = jnp.asarray(x), jnp.asarray(y), loss
        self.steps, self.rule, self.centred = steps, _rule(optimiser), centred

    def batch(self, n: int) -> int:
        """How many networks of width n to train side by side."""
        weights = sum(math.prod(shape) for shape in self.family.weight_shapes(n))
        hidden = sum(math.prod(shape) for shape in self.family.shapes(n)) * len(self.x)
        size = (8 * weights + 8 * PROBES * hidden) * self.x.dtype.itemsize
        return int(np.clip(_MEMORY // size, 1, 256))

    def squares(self, key: Array, number: int, n: int, step: float) -> Squares:
        """Of `number` networks drawn from key."""
        p = self.parametrisation
        exponents = traced(Parametrisation(p.a, p.b, p.c))  # without its name: one program for all
        draws = self._draws(key, number, n)
        numbers = jnp.asarray(step, self.x.dtype), traced(self.loss)
        how = self.rule, self.family, n, self.steps, self.centred
        out = _many(draws, exponents, self.x, self.y, *numbers, *how)
        return {name: np.asarray(v, float) for name, v in out.items()}

    def _draws(self, key: Array, number: int, n: int) -> PyTree:
        """Standard normal numbers for weights, probes and heads. NumPy draws them: compiling a generator for
        every shape takes longer than everything else."""
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        shapes, bias = self.family.weight_shapes(n), self.family.bias is not None
        outputs = () if self.family.outputs == 1 else (self.family.outputs,)
        normal = lambda *shape: rng.standard_normal((number, *shape), np.float32).astype(self.x.dtype)
        parts = tuple(Weights(normal(*s), normal(s[-1]) if bias else None) for s in shapes)
        heads = Weights(normal(_HEADS, *shapes[-1]), normal(_HEADS, shapes[-1][-1]) if bias else None)
        return parts, normal(PROBES, len(self.x), *outputs), heads


def _rule(optimiser: str) -> AbstractRule:
    if optimiser == "sgd":
        return Euler()
    import optax

    # Exponents are those of ε → 0: gradients fall with n, and an ε of 1e-8 would matter in the end.
    return Preconditioned(optax.scale_by_adam(eps=1e-30))


@jit
def _many(draws, parametrisation, x, y, step, loss, rule, family, n, steps, centred):
    one = lambda draws: _one(draws, parametrisation, x, y, step, loss, rule, family, n, steps, centred)
    return jax.vmap(one)(draws)


def _one(draws, parametrisation, x, y, step, loss, rule, family, n, steps, centred) -> Data:
    start = Network(
        _scaled(draws[0], family, parametrisation, n), family, n, parametrisation, centred=centred
    )
    drift = lambda state, scale=1.0: state.vjp(x, loss.signal(state(x), y) * (scale / len(x)))
    end, memory = start, rule.init(start)
    for _ in range(steps):
        # no noise: neither the key nor the time is used
        end, memory = rule.update(
            Force(drift), end, memory, At(jnp.zeros((), jnp.int32), step, jax.random.key(0))
        )
    moved = jax.tree.map(lambda a, b: b - a, start.parts, end.parts)
    before, after = start.trace(x), end.trace(x)
    f = lambda parts: start.with_parts(parts)(x)
    f0, linear = jax.jvp(f, (start.parts,), (moved,))
    change = after.f.reshape(f0.shape) - before.f.reshape(f0.shape)
    K0, Kt = (jax.vmap(lambda v, s=s: _applied(s, x, v))(draws[1]) for s in (start, end))
    heads = _scaled_layer(draws[2], family, parametrisation, n, family.depth)
    others = start.multipliers()[-1] * jnp.einsum("mi,kio->kmo", before.inputs[-1], heads.w)
    if heads.b is not None:
        others = others + parametrisation.bias_multiplier(family.depth, n) * heads.b[:, None]
    out = {"f(0)": others, "f(t)": after.f, "Δf": change, "gap": change - linear, "K": K0, "ΔK": Kt - K0}
    for i, (h0, ht) in enumerate(zip(before.features[:-1], after.features[:-1], strict=True), 1):
        out |= {f"h{i}(0)": h0, f"h{i}(t)": ht, f"Δh{i}": ht - h0}
    return {name: jnp.mean(v**2) for name, v in out.items()}


def _scaled(draws: PyTree, family: Family, parametrisation: Parametrisation, n: int) -> PyTree:
    """The start of `Family.sample` from standard normal numbers."""
    return tuple(_scaled_layer(part, family, parametrisation, n, i) for i, part in enumerate(draws))


def _scaled_layer(
    draws: Weights, family: Family, parametrisation: Parametrisation, n: int, i: int
) -> Weights:
    w, b = draws
    size = family.deviations(parametrisation, n)[i]
    of_bias = (
        None if b is None else ((family.bias or 0.0) * parametrisation.bias_sd(i, n) * b).astype(b.dtype)
    )
    return Weights((size * w).astype(w.dtype), of_bias)


def _applied(state: Network, x: Array, v: Array) -> Array:
    """K v, pulled back to the weights and pushed forward again."""
    f = lambda parts: state.with_parts(parts)(x)
    return jax.jvp(f, (state.parts,), (state.vjp(x, v),))[1]
