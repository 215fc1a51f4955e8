"""Laws of θ to start from: as samples, as weighted Gauss nodes, or as low-discrepancy points."""

import math
from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from .._checks import count, fits, is_traced, nearest, positive
from .._checks import key as check_key
from .._shown import shown
from .._tracing import jit_once
from .._typing import TypeIs
from ..problems.gauss import Rule, product
from ..problems.neurons import AbstractNeuron, is_ridge
from ..problems.problem import Problem, is_problem
from ..problems.symmetry import NoSymmetryError
from .marginals import AbstractMarginal, Drawn, Isotropic, Normal, Panels, Radius
from .particles import Particles
from .replicas import replica_keys

Orders = int | Mapping[str, int | Panels]


def _marginal(name: str, law: object, kind: type = Normal) -> AbstractMarginal:
    if isinstance(law, AbstractMarginal):
        return law
    if callable(law):
        return Drawn(law)
    scale = positive(f"init({name})", law, zero=True)
    return Isotropic(scale) if kind is Isotropic else Normal(0.0, scale)


class Law(eqx.Module):
    """A law of θ with independent parts, named by `names`, each with as many coordinates as `widths` says:
    `sample(key, n)` makes the start of a network, `nodes(order)` that of its limit.

    >>> rho0.sample(key, 4).n, rho0.sample(key, 4, replicas=2).theta.shape
    (4, (2, 4, 4))"""

    problem: Problem
    marginals: tuple[AbstractMarginal, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True)

    @property
    def neuron(self) -> AbstractNeuron:
        return self.problem.neuron

    @property
    def D(self) -> int:  # noqa: N802 (theory's name)
        return sum(self.widths)

    def _finite(self) -> None:
        if math.isinf(self.D):
            raise ValueError("In d = inf a law of θ has no draws or nodes of its own; take law.reduced().")

    def sample(
        self,
        key: Array,
        n: int,
        alpha: float = 1.0,
        dtype: DTypeLike | None = None,
        *,
        mirrored: bool = False,
        replicas: int | None = None,
    ) -> Particles:
        """n independent particles with scale α. Particle j depends on (key, j) only, so a narrow
        network is the beginning of a wide one from the same key. `mirrored=True` draws half of them, and
        takes each a second time with −a in place of a: f = 0 at the start. `replicas=R` draws R networks
        along a leading axis, to be moved as one; replica r is `sample(fold_in(key, r), n)`."""
        self._finite()
        n, dtype = count("n", n), jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
        if not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(f"dtype must be a float type such as jnp.float32, got {dtype}.")
        check_key("key", key)
        copies = 1 if replicas is None else count("replicas", replicas)
        hint = "Use fewer neurons or dtype=jnp.float32."
        fits(f"{copies * n} neurons in R^{self.D}", 3 * copies * n * self.D * dtype.itemsize, hint)
        drawn = self._half(n) if mirrored else n
        keys = key if replicas is None else replica_keys(key, copies)
        draw = _one if replicas is None else _several
        if not self._is_traced():  # else it is a part of the program that is being traced
            draw = _compiled_one if replicas is None else _compiled_several
        theta = draw(self.marginals, self.widths, keys, drawn, dtype)
        if mirrored:
            sign = np.repeat([-1.0 if name == "a" else 1.0 for name in self.names], self.widths)
            theta = jnp.concatenate([theta, theta * sign.astype(dtype)], axis=-2)
        return Particles(theta, alpha=alpha, neuron=self.neuron)

    def _is_traced(self) -> bool:
        """Whether a scale is inside of `jax.jit`, `jax.grad` or `jax.vmap`, and has no number yet."""
        return any(is_traced(value) for marginal in self.marginals for value in vars(marginal).values())

    def _half(self, n: int) -> int:
        if "a" not in self.names or n % 2:
            raise ValueError(
                f"Mirrored neurons need output weights a and an even n, got n = {n}, {shown(self.neuron)}."
            )
        return n // 2

    def nodes(self, order: Orders, alpha: float = 1.0, least: float = 0.0) -> Particles:
        """The product of Gauss rules of all coordinates as weighted particles: ∫q dρ₀ to the digits of
        a Gauss rule. `order` is one number, or one for each part by its name (or `Panels`); nodes that
        weigh less than `least` are left out."""
        self._finite()
        orders, total = self._orders(order), self.size(order)
        hint = "Use a lower order, law.points(n), or law.reduced() where the problem has a symmetry."
        fits(f"A product of Gauss rules with {total:.3g} nodes", 32.0 * total * self.D, hint)
        rules = [_rule(m, orders[name], width) for m, name, width in self.coordinates()]
        theta, weights = product(rules)
        kept = weights > least
        return Particles(theta[kept], weights[kept] / weights[kept].sum(), alpha, self.neuron)

    def points(self, n: int, alpha: float = 1.0, seed: int = 0) -> Particles:
        """n points of a scrambled Sobol sequence, carried to this law by quantiles: equal weights, and
        an error near 1/n for smooth functions. n is best a power of 2."""
        from scipy.stats import qmc

        self._finite()
        n = count("n", n)
        fits(f"{n} points in R^{self.D}", 32.0 * n * self.D, "Use fewer points.")
        sobol = qmc.Sobol(self.D, rng=np.random.default_rng(count("seed", seed, least=0)))
        uniform = sobol.random(1 << (n - 1).bit_length())[:n]
        columns = [m.quantile(uniform[:, i], width) for i, (m, _, width) in enumerate(self.coordinates())]
        return Particles(np.column_stack(columns), alpha=alpha, neuron=self.neuron)

    def size(self, order: Orders) -> int:
        """How many nodes `nodes(order)` has before small ones are left out."""
        orders = self._orders(order)
        sizes = [(m, orders[name]) for m, name, _ in self.coordinates()]
        return math.prod(p.size if isinstance(p, Panels) else m.points_of(p) for m, p in sizes)

    def coordinates(self) -> list[tuple[AbstractMarginal, str, int]]:
        """For each coordinate of θ its marginal, the name of its part and how wide that is."""
        parts = zip(self.marginals, self.names, self.widths, strict=True)
        return [(m, name, width) for m, name, width in parts for _ in range(width)]

    def _orders(self, order: Orders) -> dict[str, int | Panels]:
        if not isinstance(order, Mapping):
            return dict.fromkeys(self.names, count("nodes(order)", order))
        for name in order:
            if name not in self.names:
                hint = nearest(name, self.names)
                raise ValueError(
                    f"nodes(order): no part {shown(name)}; known: {', '.join(self.names)}.{hint}"
                )
        missing = [name for name in self.names if name not in order]
        if missing:
            raise ValueError(f"nodes(order) must have an order for each of {self.names}; missing: {missing}.")
        checked = lambda name, p: p if isinstance(p, Panels) else count(f"nodes(order[{shown(name)}])", p)
        return {name: checked(name, p) for name, p in order.items()}

    def reduced(self) -> "Law":
        """The law of θ̄ = (a, s, r[, b]) where the problem has a symmetry: s ~ N(0, γ²/d) along the signal
        and r ~ (γ/√d) χ_{d_i} in each block, for w ~ N(0, (γ²/d) I). Other laws of w are not invariant."""
        symmetry, problem = self.problem.symmetry(), self.problem
        by_name = dict(zip(self.names, self.marginals, strict=True))
        gamma = by_name["w"].isotropic(problem.d)
        if gamma is None:
            raise NoSymmetryError(
                f"The law of w must be rotation invariant, N(0, (γ²/d) I), got {shown(by_name['w'])} for "
                "each coordinate. Use init(problem, w=γ)."
            )
        parts: list[tuple[str, AbstractMarginal, int]] = []
        for name, marginal, width in zip(self.names, self.marginals, self.widths, strict=True):
            if name != "w":
                parts.append((name, marginal, width))
                continue
            if symmetry.k:
                parts.append(("s", Normal(0.0, gamma / math.sqrt(problem.d)), symmetry.k))
            several = len(symmetry.blocks) > 1
            for i, dim in enumerate(symmetry.blocks):
                share = 1.0 if math.isinf(dim) else math.sqrt(dim / problem.d)
                parts.append((f"r{i + 1}" if several else "r", Radius(gamma * share, dim), 1))
        names, marginals, widths = zip(*parts, strict=True)
        return Law(problem.reduced(), tuple(marginals), tuple(names), tuple(widths))

    def on(self, problem: Problem) -> "Law":
        """The same law of θ, for a problem whose θ has the same coordinates."""
        return Law(problem, self.marginals, self.names, self.widths)


def _rule(marginal: AbstractMarginal, order: int | Panels, width: int) -> Rule:
    return order.rule(marginal, width) if isinstance(order, Panels) else marginal.rule(order, width)


def _one(
    marginals: PyTree, widths: tuple[int, ...], key: Array, n: int, dtype: DTypeLike
) -> Float[Array, "n D"]:
    def particle(j):
        keys = jax.random.split(jax.random.fold_in(key, j), len(marginals))
        drawn = zip(marginals, keys, widths, strict=True)
        return jnp.concatenate([m.sample(k, (width,), dtype).astype(dtype) for m, k, width in drawn])

    return jax.vmap(particle)(jnp.arange(n))


def _several(
    marginals: PyTree, widths: tuple[int, ...], keys: Array, n: int, dtype: DTypeLike
) -> Float[Array, "r n D"]:
    return jax.vmap(lambda key: _one(marginals, widths, key, n, dtype))(keys)


_compiled_one, _compiled_several = jit_once(_one), jit_once(_several)


def init(
    problem: Problem,
    a: AbstractMarginal | float | Callable | None = None,
    w: AbstractMarginal | float | Callable | None = None,
    b: AbstractMarginal | float | Callable | None = None,
    theta: ArrayLike | None = None,
) -> Law:
    """The law of θ = (a, w[, b]) at time 0, with independent coordinates.

    A number is a standard deviation: a ~ N(0, a²), w ~ N(0, (w²/d) I), b ~ N(0, b²); by default
    a = 1, w = 1, b = 0. A marginal (`wf.laws.Normal(mean, sd)`, `wf.laws.Uniform(low, high)`,
    `wf.laws.Rademacher()`, `wf.laws.Constant(v)`) or a function (key, shape) → draws is taken for each
    coordinate as it is.
    A custom neuron takes `theta` alone, for all its coordinates.

    >>> law = wf.init(problem, a=wf.laws.Rademacher(), w=2.0)
    >>> law.sample(key, 4).theta.shape
    (4, 4)"""
    if not is_problem(problem):
        raise ValueError(f"init(problem) must be a wf.Problem, got {shown(problem)}.")
    neuron, d = problem.neuron, problem.d
    if not neuron.is_flat:
        raise ValueError("init(problem) takes the problem before its reduction: wf.init(problem).reduced().")
    if not is_ridge(neuron):
        if not (a is None and w is None and b is None):
            raise ValueError(
                f"init(a, w, b) must be left out, as a custom neuron has no such parts, got a = {a}, "
                f"w = {w}, b = {b}: use init(problem, theta=…)."
            )
        everywhere = _marginal("theta", 1.0 if theta is None else theta)
        return Law(problem, (everywhere,), ("theta",), (neuron.size(d),))
    heads, bias = neuron.heads, neuron.bias
    if theta is not None:
        raise ValueError("init(theta=…) is for custom neurons; this one takes a, w and b.")
    if a is not None and not heads:
        raise ValueError('Neuron(output="unit") has a = 1: leave init(a=…) out.')
    if b is not None and not bias:
        raise ValueError("The neuron has no bias: set Neuron(..., bias=True), or leave init(b=…) out.")
    parts = [
        ("a", 1.0 if a is None else a, Normal, heads),
        ("w", 1.0 if w is None else w, Isotropic, d),
        ("b", 0.0 if b is None else b, Normal, int(bias)),
    ]
    kept = [(name, law, kind, width) for name, law, kind, width in parts if width]
    marginals = tuple(_marginal(name, law, kind) for name, law, kind, _ in kept)
    return Law(problem, marginals, tuple(name for name, *_ in kept), tuple(width for *_, width in kept))


def is_law(value: object) -> TypeIs[Law]:
    """Whether a start is a law of θ, to be drawn from."""
    return isinstance(value, Law)
