"""Between neurons in R^d and their reduced coordinates."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._checks import count
from .._checks import key as check_key
from .._random import normal
from .._shown import shown
from ..problems.neurons import Ridge
from ..problems.problem import Problem, is_problem
from .particles import Particles, is_cloud


def _check(verb: str, problem: object, particles: object) -> None:
    if not is_problem(problem) or not is_cloud(particles):
        raise ValueError(
            f"{verb}(problem, particles) takes a wf.Problem and wf.Particles such as run.final, got "
            f"{type(problem).__name__} and {type(particles).__name__}."
        )


def reduce(problem: Problem, particles: Particles) -> Particles:
    """θ = (a, w, b) ↦ θ̄ = (a, s, r, b): s = ⟨w, signal⟩ and r_i the length of w in block i. The reduced
    particles stand for the measure that is spread evenly over all rotations of `particles`.

    >>> wf.reduce(problem, net).theta.shape  # (a, s, r)
    (4, 3)"""
    _check("reduce", problem, particles)
    symmetry, parts = problem.symmetry(), particles.parts
    if symmetry.signal is None or particles.neuron != problem.neuron:
        raise ValueError(
            f"reduce(problem, particles) takes particles of the problem's own neuron in R^{problem.d}, got "
            f"{shown(particles.neuron)} in R^{particles.D}."
        )
    neuron: Any = problem.reduced().neuron
    theta = neuron.pack(Ridge(parts.a, symmetry.weights(parts.w.T).T, parts.b))
    return Particles(theta, particles.weights, particles.alpha, neuron)


def lift(problem: Problem, particles: Particles, key: Array, copies: int = 1) -> Particles:
    """θ̄ = (a, s, r, b) ↦ neurons w = Σ s_i e_i + Σ r_i ω_i in R^d, each in `copies` random directions ω_i,
    uniform on the sphere of block i. In the mean over directions it is the measure that the reduced
    particles stand for; `reduce(problem, lift(…))` gives them back.

    >>> few = rho0.reduced().sample(key, 2)
    >>> wf.lift(problem, few, key, copies=3).theta.shape
    (6, 4)"""
    _check("lift", problem, particles)
    symmetry, copies = problem.symmetry(), count("copies", copies)
    if symmetry.signal is None:
        raise ValueError("lift(problem, …) needs a finite d: in d = inf there are no neurons to lift to.")
    neuron, d = particles.neuron, symmetry.signal.shape[1]
    if getattr(neuron, "blocks", None) != symmetry.blocks:
        raise ValueError(
            f"lift(problem, particles) takes particles of problem.reduced(), with blocks of dimension "
            f"{symmetry.blocks}, got {shown(neuron)}."
        )
    parts = jax.tree.map(lambda v: jnp.repeat(v, copies, axis=-1), particles.parts)
    k, n = symmetry.k, particles.n * copies
    w = parts.w[:k].T @ symmetry.signal.astype(particles.dtype)
    for i, block_key in enumerate(jax.random.split(check_key("key", key), len(symmetry.blocks))):
        direction = symmetry.component(i, normal(block_key, (n, d), particles.dtype))
        w = w + parts.w[k + i][:, None] * direction / jnp.linalg.norm(direction, axis=1, keepdims=True)
    theta = problem.neuron.pack(Ridge(parts.a, w.T, parts.b))
    weights = jnp.repeat(particles.weights, copies) / copies
    return Particles(theta, weights, particles.alpha, problem.neuron)
