"""Reduced problems: what is left of x and of the neuron when only the radius in blocks of R^d matters.

R^d = R^k ⊕ blocks R^{d_i}, k coordinates of the signal and an O(d_i) symmetry in each block. With
q_i = |x_i|/√d_i and r_i = |w_i| in block i, an invariant law of w makes

    f(x) = α ∫ a E_u φ(⟨s, x_S⟩ + Σ_i r_i q_i u_i + b) dρ̄(a, s, r, b),

u_i = √d_i times the first coordinate of a uniform point of the sphere of R^{d_i}; for d_i = ∞ u_i is
N(0, 1) and q_i does not vary."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import count, positive
from ..store.registry import must_be, recorded
from .gauss import Rule, gauss_radius, gauss_sphere, product
from .laws import MOST_NODES, AbstractLaw
from .neurons import AbstractNeuron, Neuron, Ridge, numbered
from .sphere_mean import cut_rule, is_broken_line, sphere_mean

DEFAULT_ORDERS = {0: 64, 1: 48, 2: 24, 3: 12}  # by the number of signal coordinates: at most some 10³ points

_FAN = 16  # arguments and sums of a mean and its derivatives, kept near the cache


def _affordable(order: int, points: int) -> None:
    if points > MOST_NODES:
        raise ValueError(
            f"A product rule of order {order} is too large here: {points:.3g} points, allowed are "
            f"{MOST_NODES}. Try a lower order."
        )


_LEAST = 1e-12  # stands for a radius of 0


def radius_order(order: int, dim: float) -> int:
    """Nodes for a radius of relative spread 1/√(2 dim), beside `order` nodes for a Gaussian."""
    return 1 if math.isinf(dim) else max(2, math.ceil(1.25 * order / math.sqrt(4 + dim)))


def _signal_rules(order: int, k: int, dims: list[float], cuts: tuple[float, ...]) -> list[Rule]:
    """A rule for each coordinate of the signal, cut where the target has kinks if there is but one."""
    if k == 1 and cuts:
        return [cut_rule(max(2, order // 2), dims[0], cuts)]
    return [gauss_sphere(order, dim) for dim in dims]


class RadialGaussian(AbstractLaw):
    """x̄ = (x_S, q_1, …, q_p) of a centred Gaussian x, or of classes of them: in class c, of
    probability `weights_c`, x has standard deviations `signal_c` and `radii_c` in the blocks.
    `cuts`: where the target, as a function of a one-dimensional signal, has kinks."""

    weights: Float[Array, " c"]
    labels: Float[Array, " c"] | None
    signal: Float[Array, "c k"]
    radii: Float[Array, "c p"]
    blocks: tuple[float, ...] = eqx.field(static=True)
    cuts: tuple[float, ...] = eqx.field(static=True, default=())
    d: int = eqx.field(static=True, init=False)

    def __post_init__(self):
        self.d = self.signal.shape[1] + len(self.blocks)

    @property
    def labelled(self):
        return self.labels is not None

    def sample(self, key, m):
        key_c, key_x, *keys = jax.random.split(key, 2 + len(self.blocks))
        which = jax.random.categorical(key_c, jnp.log(self.weights), shape=(m,))
        signal = jax.random.normal(key_x, (m, self.signal.shape[1])) * self.signal[which]
        radii = [_radii(key, dim, m) for key, dim in zip(keys, self.blocks, strict=True)]
        x = jnp.concatenate([signal, jnp.stack(radii, axis=1) * self.radii[which]], axis=1)
        return x, None if self.labels is None else self.labels[which]

    def rule(self, order):
        k = self.signal.shape[1]
        cuts = tuple(c / float(self.signal[0, 0]) for c in self.cuts) if k == 1 else ()
        rules = _signal_rules(order, k, [math.inf] * k, cuts)
        rules += [gauss_radius(radius_order(order, dim), dim) for dim in self.blocks]
        _affordable(order, len(self.weights) * math.prod(len(w) for _, w in rules))
        points, mass = product(rules)
        scales = np.concatenate([np.asarray(self.signal), np.asarray(self.radii)], axis=1)
        x = np.concatenate([points * scale for scale in scales])
        y = None if self.labels is None else np.repeat(np.asarray(self.labels), len(mass))
        return x, y, np.concatenate([float(p) * mass for p in self.weights])

    def default_order(self):
        return DEFAULT_ORDERS.get(self.signal.shape[1])


def _radii(key: Array, dim: float, m: int) -> Float[Array, " m"]:
    """|z|/√dim, z ~ N(0, I_dim)."""
    return jnp.ones(m) if math.isinf(dim) else jnp.sqrt(jax.random.gamma(key, dim / 2, (m,)) * (2 / dim))


class RadialSphere(AbstractLaw):
    """x̄ = (x_S, q) of x ~ Unif(√n · S^{n−1}), n = k + block the dimension of x."""

    k: int = eqx.field(static=True)
    block: int = eqx.field(static=True)
    cuts: tuple[float, ...] = eqx.field(static=True, default=())
    d: int = eqx.field(static=True, init=False)

    def __post_init__(self):
        self.d = self.k + 1

    @property
    def labelled(self):
        return False

    def sample(self, key, m):
        key_x, key_q = jax.random.split(key)
        z, q = jax.random.normal(key_x, (m, self.k)), _radii(key_q, self.block, m)
        x = jnp.column_stack([z, q])
        square = jnp.sum(z**2, axis=1) + self.block * q**2
        return x * jnp.sqrt((self.k + self.block) / square)[:, None], None

    def rule(self, order):
        dims = [float(self.k + self.block - i) for i in range(self.k)]
        rules = _signal_rules(order, self.k, dims, self.cuts)
        _affordable(order, math.prod(len(w) for _, w in rules))
        u, weights = product(rules)
        left, columns = np.ones(len(u)), []  # left: what is left of |x|², per dimension left
        for i, dim in enumerate(dims):
            columns.append(u[:, i] * np.sqrt(left))
            left = left * np.maximum(dim - u[:, i] ** 2, 0) / (dim - 1)
        return np.column_stack([*columns, np.sqrt(left)]), None, weights

    def default_order(self):
        return DEFAULT_ORDERS.get(self.k)


class RadialNeuron(AbstractNeuron):
    """σ̄(x̄; θ̄) = a E_u φ(⟨s, x_S⟩ + Σ_i r_i q_i u_i + b), θ̄ = (a, s, r[, b]).

    The last block's mean is taken pair by pair with cuts at the kinks of φ; that over the blocks before
    it, if any, by a product rule. `order`: nodes of a mean."""

    base: Neuron
    blocks: tuple[float, ...] = eqx.field(static=True)
    order: int = eqx.field(static=True, converter=lambda v: count("order", v))

    @property
    def outputs(self):  # type: ignore[override]
        return self.base.outputs

    def size(self, d):
        return self.base.size(d)

    def coordinates(self, D):  # noqa: N803
        named = self.base.coordinates(D)
        ends, p = self.base.heads, len(self.blocks)
        k = D - ends - self.base.bias - p
        return named[:ends] + numbered("s", k) + numbered("r", p) + named[ends + k + p :]

    def radii(self, D):  # noqa: N803
        end = D - self.base.bias
        return tuple(end - len(self.blocks) <= i < end for i in range(D))

    def unpack(self, theta):
        return self.base.unpack(theta)

    def pack(self, parts):
        return self.base.pack(parts)

    def trained(self, parts):
        return self.base.trained(parts)

    @property
    def is_flat(self):
        return False

    def log_reference(self, parts):
        """Σ_i (d_i − 1) log r_i: each particle is a product of spheres of radii r_i in R^{d_i}."""
        dims = jnp.asarray(self.blocks, parts.w.dtype)
        return jnp.sum((dims - 1)[:, None] * jnp.log(jnp.abs(parts.w[-len(self.blocks) :])), axis=0)

    @property
    def log_area(self):
        """Σ_i log |S^{d_i − 1}|."""
        if any(math.isinf(dim) for dim in self.blocks):
            return math.inf
        half = [0.5 * dim for dim in self.blocks]
        return sum(math.log(2) + h * math.log(math.pi) - math.lgamma(h) for h in half)

    def room(self, parts, direction):
        """log r would not notice that a radius has changed its sign."""
        p = len(self.blocks)
        return room(parts.w[-p:], direction.w[-p:])

    @property
    def _kinked(self) -> bool:
        """Whether Ψ̄ can have a kink at r = 0, as a function of |r|. Else r = 0 is never left nor crossed."""
        kinks = self.base.activation.kinks
        return 0.0 in kinks or (self.base.bias and bool(kinks))

    def projected(self, parts):
        """Where a kink of φ makes Ψ̄ a function of |r|, radii reach 0 in finite time and stay; at `_LEAST`
        the slope is that from the right, by which they could leave."""
        if not self._kinked:
            return parts
        p = len(self.blocks)
        w = jnp.concatenate([parts.w[:-p], jnp.maximum(parts.w[-p:], _LEAST)])
        return Ridge(parts.a, w, parts.b)

    def confined(self, parts, velocity):
        if not self._kinked:
            return velocity
        p = len(self.blocks)
        out = (parts.w[-p:] <= _LEAST) & (velocity.w[-p:] < 0)
        w = jnp.concatenate([velocity.w[:-p], jnp.where(out, 0.0, velocity.w[-p:])])
        return Ridge(velocity.a, w, velocity.b)

    @property
    def fan(self):
        return _FAN * self._outer()[1].size

    @property
    def evaluations(self):
        phi = self.base.activation
        inner = 1 if is_broken_line(phi) else self.order * (len(phi.kinks) + 2 if phi.kinks else 1)
        return inner * len(self._outer()[1])

    def with_order(self, order):
        return RadialNeuron(self.base, self.blocks, order)

    def _outer(self) -> Rule:
        """Nodes of (u_1, …, u_{p−1})."""
        rules = [gauss_sphere(self.order, dim) for dim in self.blocks[:-1]]
        return product(rules) if rules else (np.zeros((1, 0)), np.ones(1))

    def _hidden(self, w: Array, b: Array | None, x: Array) -> Float[Array, "m n"]:
        """E_u φ of every row and neuron."""
        p, (nodes, weights) = len(self.blocks), self._outer()
        k = x.shape[1] - p
        rho = x[:, -1:] * w[-1]
        total = jnp.zeros_like(rho)
        for u, weight in zip(nodes, weights, strict=True):
            inputs = jnp.concatenate([x[:, :k], x[:, k:-1] * jnp.asarray(u, x.dtype)], axis=1)
            h = inputs @ w[:-1] if inputs.shape[1] else jnp.zeros_like(rho)
            h = h if b is None else h + b
            mean = sphere_mean(self.base.activation, h, rho, self.blocks[-1], self.order)
            total = total + jnp.asarray(weight, x.dtype) * mean
        return total

    def _output(self, parts: Ridge, hidden: Array, weights: Array) -> Array:
        return hidden @ (weights if parts.a is None else (weights * parts.a).T)

    def features(self, parts, x):
        hidden, a = self._hidden(parts.w, parts.b, x).T, parts.a
        if a is None:
            return hidden
        return a[:, None] * hidden if self.outputs == 1 else a.T[:, None, :] * hidden[:, :, None]

    def weighted_sum(self, parts, x, weights):
        return self._output(parts, self._hidden(parts.w, parts.b, x), weights)

    def weighted_sum_and_vjp(self, parts, x, weights):
        hidden, back = jax.vjp(lambda w, b: self._hidden(w, b, x), parts.w, parts.b)

        def vjp(signal):
            heads = jnp.ones(hidden.shape[1], hidden.dtype) if parts.a is None else parts.a
            w, b = back(signal[:, None] * heads if signal.ndim == 1 else signal @ heads)
            if parts.a is None or self.base.output == "frozen":
                return Ridge(None if parts.a is None else jnp.zeros_like(parts.a), w, b)
            return Ridge(signal.T @ hidden, w, b)

        return self._output(parts, hidden, weights), vjp


def room(values: Array, direction: Array) -> Array:
    """The largest s for which values + s · direction keep their sign."""
    falls = values * direction < 0
    return jnp.min(jnp.where(falls, jnp.abs(values) / jnp.where(falls, jnp.abs(direction), 1.0), jnp.inf))


def _rebuilt(base: Neuron, blocks: tuple[float, ...], order: int) -> RadialNeuron:
    dims = tuple(positive("blocks", dim, infinite=True) for dim in blocks)
    return RadialNeuron(must_be("base", base, Neuron), dims, order)


recorded(RadialNeuron, build=_rebuilt)
