"""The closed form of the velocity against a fixed sample."""

import jax
import jax.numpy as jnp
import numpy as np

import wideflow as wf
from wideflow.functionals.base import _drift

from .rows import Row, interleaved, ratios

N, D, M = 2000, 50, 16384


def _case(expectation, rotation=None) -> tuple[wf.Risk, wf.Particles]:
    """An erf network on Gaussian x; with a rotation of everything, which changes nothing but bits."""
    turn = np.eye(D) if rotation is None else rotation
    target = wf.single_index("erf", turn[0])
    problem = wf.Problem(x=wf.Gaussian(D), target=target, neuron=wf.Neuron("erf"))
    theta = wf.init(problem).sample(jax.random.key(1), N).theta
    theta = theta.at[:, 1:].set(theta[:, 1:] @ turn)
    return wf.Risk(problem, expectation), wf.Particles(theta, neuron=problem.neuron)


def _difference(one, other) -> float:
    """Of the velocities of a, which no rotation changes, relative to their size."""
    return float(jnp.linalg.norm(one.a - other.a) / jnp.linalg.norm(other.a))


def measure(quick: bool) -> list[Row]:
    """One velocity at n = 2000, d = 50, erf, float64: seconds of a fixed sample of 16384 points over
    seconds of the closed form (n² pairs). Equal times are not equal errors: the note says how far the
    sample is off and, by the 1/√m law, how many points the same error would take. The closed form's
    own error is measured as what a rotation of the whole problem changes. No ratio is asked for."""
    with jax.enable_x64(True):
        rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((D, D)))[0]
        cases = {"sample": _case(wf.Sample(M)), "ours": _case(wf.ClosedForm())}
        exact = _drift(*cases["ours"])
        sampling = _difference(_drift(*cases["sample"]), exact)
        rounding = _difference(_drift(*_case(wf.ClosedForm(), rotation)), exact)
        calls = {name: lambda c=c: jax.block_until_ready(_drift(*c)) for name, c in cases.items()}
        turns = interleaved(calls, 2 if quick else 9)
    needed = M * (sampling / rounding) ** 2
    note = f"relative error {sampling:.0e} against {rounding:.0e}: a sample would need {needed:.0e} points"
    return [Row(f"closed form n={N} d={D}, times faster than {M} points", ratios(turns, "sample"), note=note)]
