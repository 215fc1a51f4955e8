"""E over Gaussian x by rotation-invariant modes: f is an array of coefficients, a velocity a few products
of small matrices.

With the modes of `problems/hermite_modes.py` and cos χ = ρ̂/ρ̂_max of a particle, for each parity,

    S = ∫ a cos(lχ) cos(kϑ) dρ,   f_{n,m} = α Σ_lk series_nl turns_nmk S_lk,   g = y − f,
    ψ(s, r) = E[g E_uφ] = Σ_lk M_lk cos(lχ) cos(kϑ),   M_lk = Σ_nm series_nl turns_nmk g_{n,m},

so that Ψ = −aψ, and particles meet S and M alone."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._tracing import jit_once, on_device, traced
from ..problems.hermite_modes import Modes, degrees, hermite, modes_of, spread
from ..problems.neurons import Ridge
from ..problems.problem import Problem
from ..problems.radial import RadialGaussian, RadialNeuron
from ..states.particles import is_cloud
from .expectations import AbstractExpectation
from .host_modes import host_risks

_SIZES = 16  # arrays are padded to multiples of this, so that few shapes are compiled
_ROUNDINGS = 16  # of a coefficient, on its way through the sums
_LEAST = 1e-100  # stands for ρ = 0
_CHUNK = 512  # particles at a time: their waves stay near the processor


class Parity(eqx.Module):
    """The modes of one parity, and the target's coefficients y_n of e_{n,0}."""

    series: Float[Array, "n l"]
    turns: Float[Array, "n m k"]
    y: Float[Array, " n"]
    first: int = eqx.field(static=True)

    def numbers(self, size: int) -> Float[Array, " size"]:
        return self.first + 2.0 * jnp.arange(size)

    def coefficients(self, moments: Float[Array, "l k"]) -> Float[Array, "n m"]:
        """Σ_lk series_nl turns_nmk S_lk."""
        return jnp.einsum("nk,nmk->nm", self.series @ moments, self.turns)

    def left(self, f: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """y − f."""
        return (-f).at[:, 0].add(self.y)

    def field(self, signal: Float[Array, "n m"]) -> Float[Array, "l k"]:
        """Σ_nm series_nl turns_nmk g_nm."""
        return self.series.T @ jnp.einsum("nm,nmk->nk", signal, self.turns)


class _Polar(NamedTuple):
    """(s, r) in units in which x is N(0, I): cos and sin of ϑ and χ, 1/ρ and −dχ/dρ."""

    turn: tuple[Array, Array]
    radial: tuple[Array, Array]
    inverse: Array
    slope: Array


class ByModes(AbstractExpectation):
    """E over x in L²: ½E(y − f)² = ½Σ(y − f)²_{n,m} + ½Σ_{n ≥ degree} y_n², the last sum from E y²."""

    problem: Problem
    parities: tuple[Parity, ...]
    rest: Float[Array, ""]
    scale: Float[Array, " 2"]
    reach: Float[Array, ""]
    kappa: Float[Array, ""]
    degree: Array
    order: Array

    @property
    def sample(self):  # type: ignore[override]
        return None

    def _polar(self, w: Float[Array, "2 p"]) -> _Polar:
        s, r = w * self.scale.astype(w.dtype)[:, None]
        rho = jnp.maximum(jnp.hypot(s, r), _LEAST)
        top = self.reach / jnp.sqrt(self.kappa + self.reach**2)
        far = jnp.sqrt(self.kappa + rho**2)
        cosine = jnp.minimum(rho / (far * top), 1.0)
        sine = jnp.sqrt(jnp.maximum(1 - cosine**2, 1e-12))
        return _Polar((s / rho, r / rho), (cosine, sine), 1 / rho, self.kappa / (far**3 * top * sine))

    def _coefficients(self, particles) -> list[Float[Array, "n m"]]:
        parts = particles.parts
        mass = particles.alpha * particles.weights * (1.0 if parts.a is None else parts.a)

        def added(moments: list[Array], some: tuple[Array, Array]) -> tuple[list[Array], None]:
            waves = (self._waves(parity, self._polar(some[0])) for parity in self.parities)
            found = [(radial[0] * some[1]) @ turn[0].T for radial, turn in waves]
            return [total + moment for total, moment in zip(moments, found, strict=True)], None

        zeros = [jnp.zeros((p.series.shape[1], p.turns.shape[2]), mass.dtype) for p in self.parities]
        moments, _ = jax.lax.scan(added, zeros, (_chunks(parts.w), _chunks(mass)))
        return [parity.coefficients(moment) for parity, moment in zip(self.parities, moments, strict=True)]

    def _waves(self, parity: Parity, polar: _Polar) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        radial = _waves(*polar.radial, parity.first, parity.series.shape[1])
        return radial, _waves(*polar.turn, parity.first, parity.turns.shape[2])

    def _signals(self, particles) -> list[Float[Array, "n m"]]:
        found = zip(self.parities, self._coefficients(particles), strict=True)
        return [parity.left(f) for parity, f in found]

    def _psi(self, w: Float[Array, "2 p"], signals: list[Array]) -> tuple[Array, Array]:
        """ψ and ∇ψ at the points (s, r)."""
        fields = [p.field(signal).T for p, signal in zip(self.parities, signals, strict=True)]
        psi, gradient = jax.lax.map(lambda some: self._psi_of(some, fields), _chunks(w))
        gradient = jnp.moveaxis(gradient, 0, 1).reshape(w.shape)
        return psi.reshape(-1), gradient * self.scale.astype(w.dtype)[:, None]

    def _psi_of(self, w: Float[Array, "2 p"], fields: list[Array]) -> tuple[Array, Array]:
        polar, zero = self._polar(w), jnp.zeros(w.shape[1], w.dtype)
        psi, by_rho, by_turn = zero, zero, zero
        for parity, field in zip(self.parities, fields, strict=True):
            (radial, radial_sine), (turn, turn_sine) = self._waves(parity, polar)
            number = lambda v, parity=parity: parity.numbers(len(v))[:, None]
            along = field @ radial
            psi = psi + jnp.sum(along * turn, axis=0)
            by_turn = by_turn - jnp.sum(along * (number(turn) * turn_sine), axis=0)
            across = field @ (number(radial) * radial_sine)
            by_rho = by_rho + polar.slope * jnp.sum(across * turn, axis=0)
        (cosine, sine), by_turn = polar.turn, by_turn * polar.inverse
        return psi, jnp.stack([cosine * by_rho - sine * by_turn, sine * by_rho + cosine * by_turn])

    def _risk(self, signals: list[Array]) -> Array:
        squares = sum(jnp.sum(g**2) for g in signals)
        return self.rest + 0.5 * squares + 0.5 * self.problem.noise**2

    def risk(self, state):
        return _risk(self, state)

    def drift(self, particles, scale=1.0):
        parts, by = particles.parts, jnp.asarray(scale, particles.dtype) / particles.alpha
        psi, gradient = self._psi(parts.w, [by * g for g in self._signals(particles)])
        if parts.a is None:
            return Ridge(None, gradient, None)
        frozen = particles.neuron.base.output == "frozen"
        return Ridge(jnp.zeros_like(parts.a) if frozen else psi, parts.a * gradient, None)

    def potential(self, parts, particles):
        return -_overlap(self, parts, self._signals(particles))

    def v(self, parts):
        return -_overlap(self, parts, [p.left(jnp.zeros(p.turns.shape[:2])) for p in self.parities])

    def u(self, parts, others):
        """By the coefficients of every neuron."""
        total: PyTree = 0.0
        for parity in self.parities:
            left, right = (self._features(parity, p) for p in (parts, others))
            total = total + jnp.einsum("inm,jnm->ij", left, right)
        return total

    def _features(self, parity: Parity, parts: Ridge) -> Float[Array, "i n m"]:
        (radial, _), (turn, _) = self._waves(parity, self._polar(parts.w))
        features = jnp.einsum("ni,nmk,ki->inm", parity.series @ radial, parity.turns, turn)
        return features if parts.a is None else parts.a[:, None, None] * features

    def handles(self, state):
        return is_cloud(state) and isinstance(state.neuron, RadialNeuron)

    def error(self, state):
        """What the last third of the degrees and of the series in ρ̂ changes, and rounding."""
        here, coarse, size = host_risks(self, state)
        return abs(here - coarse) + _ROUNDINGS * float(jnp.finfo(state.dtype).eps) * size

    @property
    def way(self):
        return f"Hermite modes of degree < {int(self.degree)}"


@jit_once
def _risk(way: ByModes, state: PyTree) -> Array:
    return way._risk(way._signals(state))


@jit_once
def _overlap(way: ByModes, parts: Ridge, signals: list[Array]) -> Array:
    psi, _ = way._psi(parts.w, signals)
    return psi if parts.a is None else parts.a * psi


def _chunks(array: Float[Array, "*i p"]) -> Float[Array, "c *i q"]:
    """The particles in chunks along a new first axis: one of them where they do not divide."""
    *others, p = array.shape
    size = p if p % _CHUNK else _CHUNK
    return jnp.moveaxis(array.reshape(*others, p // size, size), -2, 0) if size else array[None]


def _waves(cosine: Array, sine: Array, first: int, size: int) -> tuple[Array, Array]:
    """cos(jα) and sin(jα), j = first, first + 2, …, `size` of them along a new first axis: by doubling, so
    that roundings do not add up."""
    cosines, sines = (cosine, sine) if first else (jnp.ones_like(cosine), jnp.zeros_like(sine))
    c, s = cosines[None], sines[None]
    by_c, by_s = cosine**2 - sine**2, 2 * cosine * sine
    while len(c) < size:
        c, s = (jnp.concatenate([c, c * by_c - s * by_s]), jnp.concatenate([s, s * by_c + c * by_s]))
        by_c, by_s = by_c**2 - by_s**2, 2 * by_c * by_s
    return c[:size], s[:size]


def why_not(problem: Problem) -> str | None:
    """Why a reduced problem has no modes; None if it has."""
    neuron, law = problem.neuron, problem.x
    if not isinstance(neuron, RadialNeuron) or not isinstance(law, RadialGaussian):
        return "x is not a Gaussian with a symmetry"
    if not problem.loss.is_squared:
        return "the loss is not the squared one"
    if law.labelled or law.signal.shape != (1, 1) or len(law.blocks) != 1:
        return "it has other than one direction of the signal and one block"
    base = neuron.base
    if base.bias or base.outputs != 1:
        return "the neuron has a bias or several outputs"
    return f"{base.activation.name} has kinks" if base.activation.kinks else None


@dataclass(frozen=True)
class ModesOf:
    """Ask for modes of degree below `degree`, with c_n(ρ) by `order` Chebyshev polynomials up to
    |w| = `reach`, of a reduced problem for which `why_not` is None."""

    degree: int
    order: int
    reach: float

    def bind(self, problem: Problem) -> tuple[AbstractExpectation, ...]:
        neuron, law = problem.neuron, problem.x
        assert isinstance(neuron, RadialNeuron) and isinstance(law, RadialGaussian)
        scale = np.array([float(law.signal[0, 0]), float(law.radii[0, 0])])
        reach = self.reach * float(scale.max())
        found = modes_of(neuron.base.activation, law.blocks[0], self.degree, self.order, reach)
        y, square = _target(problem, law, self.degree)
        used = [y[degrees(modes.first, self.degree)] for modes in found]
        parities = tuple(_padded(modes, part) for modes, part in zip(found, used, strict=True))
        rest = 0.5 * (square - sum(float(np.sum(part**2)) for part in used))
        numbers = (
            on_device(np.asarray(v)) for v in (rest, scale, reach, spread(reach), self.degree, self.order)
        )
        return (ByModes(traced(problem), parities, *numbers),)


def _target(problem: Problem, law: RadialGaussian, degree: int) -> tuple[np.ndarray, float]:
    """y_n = E y h_n(x₁), n < degree, and E y², by a rule of the signal alone."""
    line = RadialGaussian(law.weights, None, law.signal, law.radii, (math.inf,), law.cuts)
    x, _, weights = line.rule(3 * degree)
    assert problem.target is not None
    y = np.asarray(problem.target(on_device(x, float)), float)
    z = x[:, 0] / float(law.signal[0, 0])
    root = np.exp(np.minimum(z**2 / 4, 300.0))
    return hermite(z, degree) @ (weights * root * y), float(weights @ y**2)


def _padded(modes: Modes, y: np.ndarray) -> Parity:
    n, m, k = modes.turns.shape
    up = lambda size: -size % _SIZES
    more = up(m) if m > 1 else 0
    series = np.pad(modes.series, [(0, up(n)), (0, up(modes.series.shape[1]))])
    turns = np.pad(modes.turns, [(0, up(n)), (0, more), (0, up(k))])
    y = np.pad(y, (0, up(n)))
    return Parity(on_device(series), on_device(turns), on_device(y), modes.first)
