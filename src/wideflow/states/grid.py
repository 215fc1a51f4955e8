"""A measure of neurons as a density on a grid."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from .._checks import count, finite, is_traced, nearest
from .._checks import key as check_key
from .._shown import shown
from .._typing import DType, TypeIs
from ..problems.neurons import AbstractNeuron
from ..store.registry import assembled, must_be, recorded
from .measure import AbstractMeasure, EntropyEstimate
from .particles import Particles

MOST_AXES = 3
_TINY = 1e-300


class GridDensity(AbstractMeasure):
    """ρ with the constant density mass_c / volume on each cell c of a box low ≤ θ ≤ high, D = 1, 2 or 3, and
    the network f(x; ρ) = α Σ_c mass_c σ*(x; θ_c), θ_c the centre of the cell.

    All cells have the same size. Functionals of ρ are taken at the centres, which is of second order in the
    cell's size. Made by `wf.on_grid`.

    >>> rho = wf.GridDensity([0.25, 0.5, 0.25], -1.5, 1.5, neuron=unit)
    >>> rho.theta.ravel(), rho.weights
    (Array([-1.,  0.,  1.], dtype=float64), Array([0.25, 0.5 , 0.25], dtype=float64))"""

    shared = ("low", "high", "neuron")
    mass: Float[Array, "..."]
    low: Float[Array, " D"]
    high: Float[Array, " D"]
    alpha: Float[Array, "*r"]
    neuron: AbstractNeuron

    def __init__(self, mass, low, high, *, neuron, alpha=1.0):
        if not isinstance(neuron, AbstractNeuron):
            raise ValueError(
                f'GridDensity(neuron) must be a neuron such as wf.Neuron("erf"), got {shown(neuron)}.'
            )
        values = mass if isinstance(mass, jax.Array) else finite("GridDensity(mass)", mass)
        mass = jnp.asarray(values, jnp.result_type(values, float))
        low, high = box(low, high, mass.ndim)
        fewest = neuron.size(1)
        if not 1 <= mass.ndim <= MOST_AXES or min(mass.shape) < 2 or mass.ndim < fewest:
            raise ValueError(
                f"GridDensity(mass) must have from {fewest} to {MOST_AXES} axes of 2 cells or more, one for "
                f"each coordinate of θ, got shape {mass.shape}."
            )
        if not is_traced(mass):
            _check_mass(np.asarray(mass))
        self.mass, self.neuron = mass, neuron
        self.low, self.high = jnp.asarray(low, mass.dtype), jnp.asarray(high, mass.dtype)
        self.alpha = jnp.asarray(alpha, mass.dtype)
        named = zip(neuron.coordinates(mass.ndim), neuron.radii(mass.ndim), strict=True)
        for i, (name, is_radius) in enumerate(named):
            if is_radius and low[i] < 0:
                raise ValueError(f"{name} is a radius: low must be >= 0 there, got {low[i]}.")

    @property
    def D(self) -> int:  # noqa: N802 (theory's name)
        """Dimension of θ."""
        return self.low.shape[0]

    @property
    def n(self) -> int:
        """Number of cells."""
        return math.prod(self.mass.shape)

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.mass.dtype

    @property
    def widths(self) -> Float[Array, " D"]:
        """Size h of a cell along each axis."""
        return (self.high - self.low) / jnp.asarray(self.mass.shape, self.dtype)

    @property
    def volume(self) -> Float[Array, ""]:
        """Volume of a cell."""
        return jnp.prod(self.widths)

    @property
    def density(self) -> Float[Array, "..."]:
        """ρ on the cells."""
        return self.mass / self.volume

    def axis(self, i: int | str) -> Float[Array, " N"]:
        """Centres of the cells along axis i."""
        i = self.index(i)
        return self.low[i] + (jnp.arange(self.mass.shape[i]) + 0.5).astype(self.dtype) * self.widths[i]

    def edges(self, i: int | str) -> Float[Array, " ends"]:
        """Ends of the cells along axis i."""
        i = self.index(i)
        return self.low[i] + jnp.arange(self.mass.shape[i] + 1).astype(self.dtype) * self.widths[i]

    @property
    def theta(self) -> Float[Array, "n D"]:  # type: ignore[override]
        """Centres of all cells, the last axis fastest."""
        axes = jnp.meshgrid(*(self.axis(i) for i in range(self.D)), indexing="ij")
        return jnp.stack([v.ravel() for v in axes], axis=1)

    @property
    def weights(self) -> Float[Array, " n"]:  # type: ignore[override]
        """Masses of all cells, in the order of `theta`."""
        return self.mass.ravel()

    @property
    def parts(self) -> PyTree:
        """The centres in the neuron's parts."""
        return self.neuron.unpack(self.theta)

    @property
    def particles(self) -> Particles:
        """One particle at the centre of each cell, with its mass as weight."""
        return Particles(self.theta, self.weights, self.alpha, self.neuron)

    @property
    def moves(self) -> tuple[bool, ...]:
        """For each axis, whether training moves that coordinate of θ."""
        return self.neuron.moves(self.D)

    def __call__(self, x: Float[Array, "m d"]) -> Array:
        """f(x; ρ) on the rows of x."""
        if self.replicas is not None:
            return jax.vmap(lambda one: one(x), in_axes=(self.axes(),))(self)
        return self.particles(x)

    @property
    def has_density(self) -> bool:
        return True

    def with_weights(self, weights: Array) -> "GridDensity":
        return self.with_mass(weights.reshape(self.mass.shape))

    def log_density(self, theta: Array) -> Array:
        places = jnp.floor((jnp.asarray(theta) - self.low) / self.widths).astype(int)
        cells = tuple(jnp.clip(places[:, i], 0, n - 1) for i, n in enumerate(self.mass.shape))
        return _log(self.density[cells])

    def coordinate_entropy(self, neighbours: int | None = None) -> Array:
        return -jnp.sum(self.mass * _log(self.density))

    def entropy_estimate(self, neighbours: int | None = None) -> EntropyEstimate:
        return EntropyEstimate(float(self.coordinate_entropy()), 0.0)

    def mean(self) -> Float[Array, " D"]:
        """∫θ dρ."""
        return self.weights @ self.theta

    def covariance(self) -> Float[Array, "D D"]:
        """Covariance of θ, with the h²/12 by which θ varies within a cell."""
        centred = self.theta - self.mean()
        return (centred.T * self.weights) @ centred + jnp.diag(self.widths**2) / 12

    def index(self, i: int | str) -> int:
        """The axis of a coordinate, by number or by name as in `neuron.coordinates(D)`."""
        if not isinstance(i, str):
            return i
        known = self.neuron.coordinates(self.D)
        if i not in known:
            raise ValueError(f"No coordinate {shown(i)}; there are {', '.join(known)}.{nearest(i, known)}")
        return known.index(i)

    def marginal(self, i: int | str) -> Float[Array, " N"]:
        """Density of coordinate i alone, at the points `axis(i)`; i is a number or a name such as "w"."""
        i = self.index(i)
        others = tuple(j for j in range(self.D) if j != i)
        return jnp.sum(self.mass, axis=others) / self.widths[i]

    def with_mass(self, mass: Array) -> "GridDensity":
        """The same grid with other masses; nothing is checked again."""
        return self._with(mass=mass)

    def boundary_mass(self) -> Float[Array, ""]:
        """Mass in the outermost cells of the trained axes, where ρ would leave the box if it could. Radii end
        at 0 by themselves: that side does not count."""
        total, rest = jnp.zeros((), self.dtype), self.mass
        radii = self.neuron.radii(self.D)
        for i, moves in enumerate(self.moves):
            if moves:
                along = jnp.moveaxis(rest, i, 0)
                ends = (self.low[i] <= 0) & radii[i]
                first = jnp.where(ends, 0.0, along[0])
                total = total + jnp.sum(along[-1]) + jnp.sum(first)
                # a cell in a corner counts once: what was counted is taken away
                rest = jnp.moveaxis(along.at[-1].set(0.0).at[0].add(-first), 0, i)
        return total

    def sample(self, key: Array, n: int) -> Particles:
        """n independent draws, uniform within their cells."""
        check_key("key", key)
        n = count("n", n)
        key_cell, key_place = jax.random.split(key)
        cells = jax.random.choice(key_cell, self.n, (n,), p=self.weights)
        shift = jax.random.uniform(key_place, (n, self.D), self.dtype, -0.5, 0.5)
        return Particles(self.theta[cells] + shift * self.widths, alpha=self.alpha, neuron=self.neuron)


def _log(density: Array) -> Array:
    return jnp.log(jnp.maximum(density, _TINY if density.dtype == jnp.float64 else 1e-37))


def box(low: ArrayLike, high: ArrayLike, axes: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a box as vectors; one number stands for all axes."""
    low, high = (finite(f"grid {name}", v).astype(float) for name, v in (("low", low), ("high", high)))
    axes = max(low.size, high.size) if axes is None else axes
    if low.ndim > 1 or high.ndim > 1 or {low.size, high.size} - {1, axes}:
        raise ValueError(
            f"A grid of {axes} axes needs low and high of {axes} numbers (or one), got {low}, {high}."
        )
    low, high = np.broadcast_to(low, (axes,)), np.broadcast_to(high, (axes,))
    if not (low < high).all():
        raise ValueError(f"A grid needs low < high on every axis, got low = {low}, high = {high}.")
    return low, high


def _check_mass(mass: np.ndarray) -> None:
    finite("GridDensity(mass)", mass)
    total = mass.sum()
    if (mass < 0).any() or abs(total - 1) > np.sqrt(np.finfo(mass.dtype).eps):
        raise ValueError(
            f"GridDensity(mass) must be >= 0 and sum to 1; the sum is {total:.6g}, the least "
            f"{mass.min():.3g}. Try mass / mass.sum()."
        )


def _rebuilt(mass: Array, low: Array, high: Array, alpha: Array, neuron: AbstractNeuron) -> GridDensity:
    """As it was stored, with any replica axes in front."""
    D = low.shape[-1]
    if high.shape != low.shape or not 1 <= D <= min(mass.ndim, MOST_AXES) or neuron.size(1) > D:
        shapes = f"{mass.shape}, {low.shape}, {high.shape}"
        raise ValueError(
            f"a density needs mass, low and high of as many axes as θ has coordinates, got {shapes}."
        )
    must_be("neuron", neuron, AbstractNeuron)
    return assembled(GridDensity)(mass=mass, low=low, high=high, alpha=alpha, neuron=neuron)


recorded(GridDensity, build=_rebuilt)


def is_grid(state: object) -> TypeIs[GridDensity]:
    """Whether a state is a density on cells."""
    return isinstance(state, GridDensity)
