"""Why a run is not finite: found on the host, at the last state that was.

What a step is made of is looked at in the order in which it is computed: data, activations, network, loss,
penalties, gradient, update. The first that is not finite although all before it is, is the cause."""

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ._shown import shown
from .dynamics.base import AbstractDynamics
from .dynamics.replicated import Replicated
from .functionals.base import AbstractFunctional
from .problems.nodes import Nodes
from .states.measure import is_measure
from .states.state import AbstractState
from .states.trainable import is_trainable

_GROWN = 1e3  # times the largest number of the start: from there on it is growth that overflows
_SHOWN = 4  # entries of a vector that are shown
_AHEAD = tuple(10.0**-k for k in range(8, -1, -1))  # how far along the velocity to look for what a flow meets


NOT_FINITE = "observers_not_finite"  # in `run.info`: when each observation was NaN for the first time


_ADDED = (
    "what is added to the risk gives NaN there, a penalty with a root or a logarithm perhaps. Take one that "
    "is finite everywhere, or start where it is."
)
_FRESH = (
    "the target or the network gives NaN at a point that is not among those of the training. Mend the target "
    "or the activation there."
)
# What is observed of every run, and the only cause that a finite risk leaves.
_OWN = {"energy": _ADDED, "free_energy": _ADDED, "fresh_risk": _FRESH, "fresh_risk_error": _FRESH}


def observer_message(name: str, t: float) -> str:
    """What is said of an observation that is NaN while state and risk are finite."""
    if name in _OWN:
        return (
            f"The {name} is NaN at t = {t:.6g}, and maybe later on, though the risk is finite: {_OWN[name]}"
        )
    return (
        f"The observer {shown(name)} gave NaN at t = {t:.6g}, and maybe later on; the run itself is finite. "
        "Look for 0/0, a root or a logarithm in it."
    )


class Scene(NamedTuple):
    """A state with what the next step from it descends, and the data of that step (None in closed form)."""

    state: PyTree
    functional: AbstractFunctional
    nodes: Nodes | None


def check_start(state: AbstractState) -> None:
    """Raise if a start holds numbers that are not finite."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(eqx.filter(state, eqx.is_inexact_array)):
        values = np.asarray(leaf)
        bad = ~np.isfinite(values)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"The start must be finite, but {int(bad.sum())} of the {bad.size} numbers in state"
                f"{jax.tree_util.keystr(path)} are not; the first is {values[where]} at index {where}. "
                "Draw it anew, or load an earlier state."
            )


def why(dynamics: AbstractDynamics, carry: PyTree, start: AbstractState, t: float, r: int) -> str:
    """The cause, with its cure, why replica r stops being finite on its way from this carry to t; "" where
    nothing but its own growth is found. Never raises: a diagnosis must not cost a run."""
    try:
        last = _last_finite(dynamics, carry, t, r)
        if isinstance(dynamics, Replicated):
            dynamics, last, start = dynamics.dynamics, last.replica(r), start.replica(r)
        state, functional = last.state, dynamics.functional_at(last)
        if _has_grown(state, start):
            return ""
        return _cause(state, functional) or dynamics.fault(last) or _ahead(state, functional, start)
    except Exception:  # whatever a user's function raises outside of the compiled program
        return ""


def why_not_finite(functional: AbstractFunctional, state: AbstractState, start: AbstractState) -> str:
    """The same for a finite state whose risk is not."""
    try:
        return "" if _has_grown(state, start) else _cause(state, functional)
    except Exception:  # see above
        return ""


def _last_finite(dynamics: AbstractDynamics, carry: PyTree, t: float, r: int) -> PyTree:
    """The carry one step before replica r is no longer finite; the last one tried, if it stays so."""

    def ahead(carry: PyTree, steps: int) -> tuple[PyTree, bool, bool]:
        moved, info = dynamics.advance(carry, t, steps)
        finite, reached, stalled = (np.ravel(v)[r] for v in (info.finite, info.reached, info.stalled))
        return moved, bool(finite), bool(reached | stalled)

    steps = 1
    while True:  # twice as far each time, until the fault is passed
        moved, finite, ended = ahead(carry, steps)
        if not finite:
            break
        carry, steps = moved, 2 * steps
        if ended:
            return carry
    while steps > 1:  # the fault is within so many steps: halve them
        steps = (steps + 1) // 2
        moved, finite, _ = ahead(carry, steps)
        carry = moved if finite else carry
    return carry


def _has_grown(state: AbstractState, start: AbstractState) -> bool:
    return _largest(state) > _GROWN * max(1.0, _largest(start))


def _largest(state: AbstractState) -> float:
    leaves = jax.tree.leaves(eqx.filter(state, eqx.is_inexact_array))
    return max((float(jnp.max(jnp.abs(leaf))) for leaf in leaves if leaf.size), default=0.0)


def _ahead(state: AbstractState, functional: AbstractFunctional, start: AbstractState) -> str:
    """The cause where a flow stands before it: found a little further along the velocity."""
    if not is_trainable(state):
        return ""
    velocity = functional.drift(state)
    for far in _AHEAD:
        moved = state.moved(velocity, far)
        if _has_grown(moved, start):
            return ""
        if cause := _cause(moved, functional):
            return cause
    return ""


def _cause(state: AbstractState, functional: AbstractFunctional) -> str:
    """What is not finite at this state, and what to do about it; "" if all is."""
    scene = Scene(state, functional, functional.points(state))
    return next((message for look in _LOOKS for message in look(scene)), "")


def _data(scene: Scene) -> Iterator[str]:
    if scene.nodes is None:
        return
    for name, values in (("x", scene.nodes.x), ("y", scene.nodes.y)):
        rows = np.asarray(values).reshape(scene.nodes.m, -1)
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            i = int(np.argmax(bad))
            problem = scene.functional.problem
            target = name == "y" and problem is not None and problem.target is not None
            what = "the target gives" if target else f"{name} is"
            where = f" at x = {_vector(scene.nodes.x[i])}" if target else ""
            cure = "Mend the target there" if target else "Mend or drop those rows"
            yield (
                f"The data are not finite: in row {i} {what} {_vector(rows[i])}{where} ({int(bad.sum())} of "
                f"{len(bad)} rows). {cure}."
            )


def _activations(scene: Scene) -> Iterator[str]:
    if scene.nodes is None:
        return
    for phi, h in scene.state.preactivations(scene.nodes.x):
        bad = np.isfinite(h) & ~np.isfinite(phi(h))
        if bad.any():
            at = h[tuple(np.argwhere(bad)[0])]
            yield (
                f"The activation {shown(phi.name)} gives {float(phi(at))} at the input {float(at):.6g}. Take "
                "one that is finite everywhere, or keep it from that input (jnp.clip, jnp.maximum, "
                "jnp.where)."
            )


def _network(scene: Scene) -> Iterator[str]:
    if scene.nodes is None:
        return
    f = np.asarray(scene.state(scene.nodes.x))
    bad = ~np.isfinite(f.reshape(len(f), -1)).all(axis=1)
    if not bad.any():
        return
    i = int(np.argmax(bad))
    x = scene.nodes.x[i : i + 1].astype(scene.state.dtype)
    yield from _neurons(scene.state, x)
    yield from _bends(scene)  # of which a linearised network is made
    yield (
        f"The network gives {_vector(f[i])} in row {i}, x = {_vector(x[0])}, although its weights are finite"
        ": it overflows. Scale x, the start or alpha down, or compute in float64 (jax_enable_x64)."
    )


def _neurons(state: PyTree, x: Array) -> Iterator[str]:
    """Neurons that are a function of a user's own."""
    if not is_measure(state) or state.preactivations(x):
        return
    values = np.asarray(state.neuron.features(state.parts, x))
    bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    if bad.any():
        j = int(np.argmax(bad))
        yield (
            f"The neuron gives {_vector(values[j])} at x = {_vector(x[0])}, theta = {_vector(state.theta[j])}"
            ". Take one that is finite everywhere, or keep it from there (jnp.clip, jnp.maximum, jnp.where)."
        )


def _loss(scene: Scene) -> Iterator[str]:
    problem = scene.functional.problem
    if scene.nodes is None or problem is None:
        return
    f, y = scene.state(scene.nodes.x), scene.nodes.y
    rows = np.asarray(problem.loss(f, y))
    name, bad = type(problem.loss).__name__, ~np.isfinite(rows)
    if bad.any():
        i = int(np.argmax(bad))
        yield (
            f"The {name} loss is {rows[i]} in row {i}, where f = {_vector(f[i])} and y = {_vector(y[i])}. "
            "Scale the labels down, take a loss that is finite there, or compute in float64 (jax_enable_x64)."
        )


def _terms(scene: Scene) -> Iterator[str]:
    """Values of the risk, and of what is added to it."""
    for term in scene.functional.summands():
        value = float(term.value(scene.state))
        if np.isfinite(value):
            continue
        if term.problem is None:
            yield (
                f"The penalty {term.label} is {value} although the state is finite. Take one that is finite "
                "everywhere, or start where it is."
            )
        else:
            yield (
                f"The risk is {value} although the state and the loss of every row are finite: it overflows. "
                "Scale the data or the start down, or compute in float64 (jax_enable_x64)."
            )


def _bends(scene: Scene) -> Iterator[str]:
    if scene.nodes is None:
        return
    for phi, h in scene.state.preactivations(scene.nodes.x):
        slope = jax.jvp(phi, (h,), (jnp.ones_like(h),))[1]
        bad = ~np.isfinite(slope)
        if bad.any():
            where = tuple(np.argwhere(bad)[0])
            yield (
                f"The derivative of the activation {shown(phi.name)} is {float(slope[where])} at the input "
                f"{float(h[where]):.6g}, although its value is finite. {_SLOPE}"
            )


def _slopes(scene: Scene) -> Iterator[str]:
    """Derivatives of the activations and of the loss."""
    if scene.nodes is None or scene.functional.problem is None:
        return
    yield from _bends(scene)
    f, y, loss = scene.state(scene.nodes.x), scene.nodes.y, scene.functional.problem.loss
    signal = np.asarray(loss.signal(f, y)).reshape(len(f), -1)
    bad = ~np.isfinite(signal).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        yield (
            f"The derivative of the {type(loss).__name__} loss is {_vector(signal[i])} in row {i}, where f = "
            f"{_vector(f[i])} and y = {_vector(y[i])}, although its value is finite. {_SLOPE}"
        )


def _gradients(scene: Scene) -> Iterator[str]:
    """Gradients of the terms: those of particles and networks, or of the potential on cells."""
    for term in scene.functional.summands():
        if is_trainable(scene.state):
            force = term.drift(scene.state)
        elif is_measure(scene.state):
            force = term.potential(scene.state.theta, scene.state)
        else:
            continue
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(force)):
            what = f"the penalty {term.label}" if term.problem is None else "the risk"
            kind = "gradient" if is_trainable(scene.state) else "potential"
            yield f"The {kind} of {what} is not finite, although its value is. {_SLOPE}"


_SLOPE = (
    "A root or a norm at 0, a logarithm, or a custom_jvp can do that: keep it from that point inside of "
    "jnp.where (both branches must be finite), or add a small eps."
)
_LOOKS = (_data, _activations, _network, _loss, _terms, _slopes, _gradients)


def _vector(values: object) -> str:
    """A few numbers of an array, as a person would write them."""
    flat = np.ravel(np.asarray(values))
    if flat.size == 1:
        return f"{flat[0]:.6g}"
    return "[" + ", ".join(f"{v:.4g}" for v in flat[:_SHOWN]) + (", …]" if flat.size > _SHOWN else "]")
