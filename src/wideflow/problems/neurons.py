"""Neurons σ*(x; θ): what one particle θ ∈ R^D computes, and the sum over many of them."""

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._checks import count, function, nearest
from .._shown import shown
from .._typing import Abstract, TypeIs
from ..store.registry import recorded
from .activations import Activation, activation

Output = Literal["trained", "frozen", "unit"]

# Measured on two cores with AVX-512: with inputs longer than this, or with a few rows only, the
# hidden layer is fastest as rows × neurons; else as neurons × rows.
_LONG_ROWS = 512


class AbstractNeuron(eqx.Module):
    """A neuron σ*(x; θ). Particles θ (n, D) are kept *unpacked* into a pytree of parts with the
    neurons on the last axis, so that no time step cuts, joins or transposes arrays and every loop
    runs along neurons; `pack(unpack(theta))` is `theta`."""

    outputs: Abstract[int]

    @abc.abstractmethod
    def size(self, d: int) -> int:
        """D, the number of coordinates of θ, for inputs x ∈ R^d."""

    @abc.abstractmethod
    def unpack(self, theta: Float[Array, "*r n D"]) -> PyTree:
        """The parts of θ, e.g. (a, w, b), each with the neurons on its last axis."""

    @abc.abstractmethod
    def pack(self, parts: PyTree) -> Float[Array, "*r n D"]:
        """θ from its parts."""

    @abc.abstractmethod
    def weighted_sum(self, parts: PyTree, x: Float[Array, "m d"], weights: Float[Array, " n"]) -> Array:
        """Σ_j weights_j σ*(x; θ_j): (m,) for one output, (m, outputs) for more."""

    def weighted_sum_and_vjp(
        self, parts: PyTree, x: Array, weights: Array
    ) -> tuple[Array, Callable[[Array], PyTree]]:
        """(weighted_sum, signal ↦ Σ_i signal_i ∇_θ σ*(x_i; θ_j)). A particle's weight does not enter its own
        velocity, so the second differentiates a sum with unit weights; the compiler shares its hidden
        layer with that of the first."""
        _, back = jax.vjp(lambda parts: self.weighted_sum(parts, x, jnp.ones_like(weights)), parts)
        return self.weighted_sum(parts, x, weights), lambda signal: back(signal)[0]

    @property
    def fan(self) -> int:
        """How many numbers per row and neuron `weighted_sum` holds at once."""
        return 1

    @property
    def evaluations(self) -> int:
        """How often φ is evaluated for each row and neuron."""
        return 1

    def with_order(self, order: int) -> "AbstractNeuron":
        """The same neuron with its own means, where it takes any, by `order` nodes."""
        return self

    @abc.abstractmethod
    def features(self, parts: PyTree, x: Float[Array, "m d"]) -> Array:
        """σ*(x_i; θ_j) of every pair, (n, m) or (n, m, outputs): for few neurons or few rows."""

    def preactivations(self, parts: PyTree, x: Float[Array, "m d"]) -> tuple[tuple[Activation, Array], ...]:
        """φ with its input on every row and neuron, (m, n); empty for a neuron that is not made of one φ."""
        return ()

    @abc.abstractmethod
    def trained(self, parts: PyTree) -> PyTree:
        """For each part, whether training moves it."""

    def moves(self, D: int) -> tuple[bool, ...]:  # noqa: N803 (theory's name)
        """For each of the D coordinates of θ, whether training moves it."""
        with jax.ensure_compile_time_eval():  # the same for every trace
            parts = self.unpack(jnp.zeros((1, D)))
            flags = jax.tree.map(lambda on, p: jnp.full(p.shape, float(on)), self.trained(parts), parts)
            return tuple(bool(v) for v in self.pack(flags)[0])

    def radii(self, D: int) -> tuple[bool, ...]:  # noqa: N803
        """For each coordinate of θ, whether it is a length, which is never negative."""
        return (False,) * D

    @property
    def is_flat(self) -> bool:
        """Whether a coordinate of θ stands for itself alone, so that the reference measure is dθ."""
        return True

    def log_reference(self, parts: PyTree) -> Float[Array, " n"]:
        """log m(θ) up to the constant `log_area`, m the density that entropy is relative to."""
        return jnp.zeros(jax.tree.leaves(parts)[0].shape[-1])

    @property
    def log_area(self) -> float:
        """The constant in the logarithm of the reference measure; inf in infinite dimension."""
        return 0.0

    def room(self, parts: PyTree, direction: PyTree) -> Array:
        """The largest s for which θ + s · direction stays where the logarithm of the reference is smooth."""
        return jnp.asarray(jnp.inf)

    def projected(self, parts: PyTree) -> PyTree:
        """The nearest θ of the neuron's domain."""
        return parts

    def confined(self, parts: PyTree, velocity: PyTree) -> PyTree:
        """The velocity, changed at the boundary of the domain of θ so that it does not leave it."""
        return velocity

    def coordinates(self, D: int) -> tuple[str, ...]:  # noqa: N803 (theory's name)
        """Names of the D coordinates of θ."""
        return numbered("theta", D)

    def for_chunks(self, parts: PyTree) -> PyTree:
        """The parts laid out for `weighted_sum` on many chunks of many rows; a permutation of numbers."""
        return parts

    def check(self, d: int) -> None:
        """Raise if this is not a neuron on R^d."""
        float_type = jnp.result_type(float)
        x, theta = (jax.ShapeDtypeStruct(s, float_type) for s in ((3, d), (2, self.size(d))))
        try:
            network = lambda x, theta: self.weighted_sum(self.unpack(theta), x, jnp.ones(2))
            shape = jax.eval_shape(network, x, theta).shape
        except Exception as error:
            raise ValueError(f"Problem(neuron) cannot be evaluated on one x in R^{d}: {error}") from error
        expected = () if self.outputs == 1 else (self.outputs,)
        if shape[1:] != expected:
            raise ValueError(
                f"Problem(neuron) must map one x in R^{d} to an array of shape {expected}, as its outputs = "
                f"{self.outputs}, got {shape[1:]}."
            )

    def __call__(self, x: Float[Array, "m d"], theta: Float[Array, " D"]) -> Array:
        """σ*(x; θ) of one neuron on the rows of x."""
        return self.weighted_sum(self.unpack(theta[None]), x, jnp.ones(1, x.dtype))


def numbered(name: str, size: int) -> tuple[str, ...]:
    """name, or name1, name2, … where there are several."""
    return (name,) if size == 1 else tuple(f"{name}{i + 1}" for i in range(size))


@recorded
class Ridge(NamedTuple):
    """Parts of θ = (a, w, b): a (n,) or (outputs, n) or None, w (d, n), b (n,) or None."""

    a: Array | None
    w: Array
    b: Array | None


class TallRidge(NamedTuple):
    """The same parts with w as (n, d), for a hidden layer kept as neurons × rows."""

    a: Array | None
    w: Array
    b: Array | None


@recorded
class Neuron(AbstractNeuron):
    """σ*(x; θ) = a φ(⟨w, x⟩ + b).

    - `activation`: φ, a name (see `wf.activation`), an `Activation`, or any elementwise function.
    - `bias`: whether b is there; θ = (a, w) or (a, w, b).
    - `output`: "trained" moves a; "frozen" carries a in θ but never moves it; "unit" means a = 1
      and θ = (w[, b]).
    - `outputs`: the dimension of a and of the network's output.

    >>> neuron = wf.Neuron("relu", bias=True)
    >>> neuron.coordinates(5)
    ('a', 'w1', 'w2', 'w3', 'b')"""

    activation: Activation = eqx.field(static=True, converter=activation)
    bias: bool = eqx.field(static=True, default=False, kw_only=True)
    output: Output = eqx.field(static=True, default="trained", kw_only=True)
    outputs: int = eqx.field(static=True, default=1, kw_only=True)

    if TYPE_CHECKING:  # what the converter takes

        def __init__(
            self,
            activation: str | Activation | Callable[[Array], Array],
            *,
            bias: bool = False,
            output: Output = "trained",
            outputs: int = 1,
        ) -> None: ...

    def __check_init__(self):
        count("Neuron(outputs)", self.outputs)
        if not isinstance(self.bias, bool):
            raise ValueError(f"Neuron(bias) must be True or False, got {shown(self.bias)}.")
        if self.output not in get_args(Output):
            known = get_args(Output)
            raise ValueError(
                f"Neuron(output) must be one of {known}, got {shown(self.output)}."
                f"{nearest(self.output, known)}"
            )
        if self.output == "unit" and self.outputs > 1:
            raise ValueError(
                f"Neuron(outputs) must be 1 with output='unit', where a = 1, got {self.outputs}."
            )

    @property
    def heads(self) -> int:
        """How many coordinates of θ are output weights."""
        return 0 if self.output == "unit" else self.outputs

    def size(self, d):
        return self.heads + d + self.bias

    def coordinates(self, D):  # noqa: N803
        inner = numbered("w", D - self.heads - self.bias)
        return numbered("a", self.heads) + inner + (("b",) if self.bias else ())

    def unpack(self, theta):
        heads, end = self.heads, theta.shape[-1] - self.bias
        a = theta[..., 0] if heads == 1 else theta[..., :heads].swapaxes(-1, -2)
        w = theta[..., heads:end].swapaxes(-1, -2)
        return Ridge(a if heads else None, w, theta[..., end] if self.bias else None)

    def pack(self, parts):
        a, w, b = parts
        heads = a[..., None, :] if self.heads == 1 else a
        rows = [heads, w, None if b is None else b[..., None, :]]
        # by the arrays' own library: on the host nothing is compiled
        join = w.__array_namespace__().concat
        return join([row for row in rows if row is not None], axis=-2).swapaxes(-1, -2)

    def for_chunks(self, parts):
        return parts if parts.w.shape[0] >= _LONG_ROWS else TallRidge(parts.a, parts.w.T, parts.b)

    def preactivations(self, parts, x):
        h = x @ parts.w
        return ((self.activation, h if parts.b is None else h + parts.b),)

    def features(self, parts, x):
        h = x @ parts.w
        hidden, a = self.activation(h if parts.b is None else h + parts.b).T, parts.a
        if a is None:
            return hidden
        return a[:, None] * hidden if self.outputs == 1 else a.T[:, None, :] * hidden[:, :, None]

    def weighted_sum(self, parts, x, weights):
        a, w, b = parts
        a = jax.lax.stop_gradient(a) if self.output == "frozen" and a is not None else a
        mass = weights if a is None else (weights * a).T
        if isinstance(parts, TallRidge):
            h = w @ x.T
            hidden = self.activation(h if b is None else h + b[:, None])
            return mass @ hidden if mass.ndim == 1 else hidden.T @ mass
        h = (x[0] if x.shape[0] == 1 else x) @ w  # one row: a vector product, twice as fast
        f = self.activation(h if b is None else h + b) @ mass
        return f[None] if x.shape[0] == 1 else f

    def trained(self, parts):
        a = None if parts.a is None else self.output == "trained"
        return parts._replace(a=a, w=True, b=None if parts.b is None else True)


@recorded
class CustomNeuron(AbstractNeuron):
    """σ*(x; θ) = fn(x, θ), any differentiable JAX function of one x ∈ R^d and one θ ∈ R^dim.

    >>> neuron = wf.CustomNeuron(lambda x, theta: theta[0] * jnp.cos(theta[1:] @ x), dim=4)
    >>> mine = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=neuron)
    >>> wf.init(mine, theta=1.0).sample(key, 4).theta.shape
    (4, 4)"""

    fn: Callable[[Array, Array], Array] = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    outputs: int = eqx.field(static=True, default=1, kw_only=True)

    def __check_init__(self):
        function("CustomNeuron(fn)", self.fn)
        count("CustomNeuron(dim)", self.dim)
        count("CustomNeuron(outputs)", self.outputs)

    def size(self, d):
        return self.dim

    def unpack(self, theta):
        return theta.swapaxes(-1, -2)

    def pack(self, parts):
        return parts.swapaxes(-1, -2)

    def features(self, parts, x):
        return jax.vmap(lambda t: jax.vmap(lambda x: self.fn(x, t))(x), in_axes=-1)(parts)

    def weighted_sum(self, parts, x, weights):
        return jnp.tensordot(weights, self.features(parts, x), axes=1)

    def trained(self, parts):
        return True


def is_ridge(value: object) -> TypeIs[Neuron]:
    """Whether a neuron is a φ(⟨w, x⟩ + b) with its own a, w and b."""
    return isinstance(value, Neuron)
