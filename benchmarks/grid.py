"""A density on 256² cells with diffusion to t = 1, against py-pde on the same equation and grid; and one on a
reduced grid, in units of the two products that its potential needs."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

import wideflow as wf
from wideflow.functionals import kept

from .rows import Row, interleaved, ratios, seconds

CELLS, HALF, BETA = 256, 4.0, 4.0
MEAN, SD = (-0.8, 0.5), 0.6
TOLERANCES = (1e-2, 1e-3, 1e-4)  # of the peer's steps: the fastest that reaches its best error counts
TOL = 1e-4
VOLUME = (2 * HALF / CELLS) ** 2
SIDE, ATTEMPTS = 12, 40  # cells along each axis of the reduced grid, steps to time


def exact(t: float) -> np.ndarray:
    """Masses of the cells: N(e^{−t}m₀, s²I), s² = e^{−2t}s₀² + (1 − e^{−2t})/β, for Φ = |θ|²/2."""
    left = math.exp(-2 * t)
    sd = math.sqrt(SD**2 * left + (1 - left) / BETA)
    edges = np.linspace(-HALF, HALF, CELLS + 1)
    along = [np.diff(ndtr((edges - math.exp(-t) * m) / sd)) for m in MEAN]
    return np.multiply.outer(*along)


def _ours() -> tuple[Callable[[], wf.Run], Callable[[], float]]:
    start = exact(0.0)
    neuron = wf.CustomNeuron(lambda x, theta: theta @ x, 2)
    density = wf.GridDensity(start / start.sum(), -HALF, HALF, neuron=neuron)
    flow = wf.GridFlow(wf.Moment(lambda theta: 0.5 * jnp.sum(theta**2)), beta=BETA, tol=TOL)
    run = lambda: wf.evolve(flow, density, [1.0], progress=False)
    return run, lambda: float(np.abs(np.asarray(run().final.mass) - exact(1.0)).sum())


def _peer(tolerance: float) -> tuple[float, float, int]:
    """(seconds without compilation, error in L1, steps) of py-pde's adaptive Runge–Kutta method: its compiled
    stepper is called for a moment first. The product rule is faster there than a divergence of a product."""
    import pde

    grid = pde.CartesianGrid([[-HALF, HALF]] * 2, CELLS)
    potential = pde.ScalarField.from_expression(grid, "(x**2 + y**2)/2")
    right = f"dot(gradient(c), gradient(phi)) + c*laplace(phi) + {1 / BETA}*laplace(c)"
    equation = pde.PDE({"c": right}, consts={"phi": potential}, bc={"derivative": 0})
    solver = pde.RungeKuttaSolver(equation, adaptive=True, tolerance=tolerance)
    field = pde.ScalarField(grid, exact(0.0) / VOLUME)
    stepper = solver.make_stepper(field, dt=1e-5)
    stepper(field.copy(), 0.0, 1e-5)
    before = solver.info["steps"]
    spent = seconds(lambda: stepper(field, 0.0, 1.0))
    error = float(np.abs(field.data * VOLUME - exact(1.0)).sum())
    return spent, error, solver.info["steps"] - before


def _reduced(quick: bool) -> list[Row]:
    """A step of a neuron's density in (a, s, r), 12³ cells, d = 20, at the default accuracy: four potentials
    and as many energies, so four times the two products of (cells × nodes) at least. Against a step that
    takes the features of the cells, a mean over directions each, anew."""
    problem = wf.Problem(x=wf.Gaussian(20), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    law = wf.init(problem).reduced()
    density = wf.on_grid(law, (-6.0, -2.0, 0.1), (6.0, 2.0, 2.0), SIDE)
    risk = wf.Risk(problem.reduced())
    flow, key = wf.GridFlow(risk, beta=5.0, decay=0.01), jax.random.key(0)
    carry, nodes = flow.init(density, key), risk.points(density)
    assert nodes is not None
    features = jax.random.normal(key, (density.n, nodes.m))
    products = jax.jit(lambda f, mass, u: (mass @ f, f @ u))
    advance = lambda: jax.block_until_ready(flow.advance_to(carry, jnp.asarray(1e3), ATTEMPTS))
    both = lambda: [
        products(features, density.weights, nodes.weights)[1].block_until_ready() for _ in range(ATTEMPTS)
    ]
    turns = interleaved({"ours": advance, "products": both}, 3 if quick else 9)
    begun = seconds(advance) / ATTEMPTS
    most, kept.MOST_KEPT = kept.MOST_KEPT, 0
    try:
        anew = lambda: jax.block_until_ready(flow.advance_to(carry, jnp.asarray(1e3), 1))
        anew()
        slow = tuple(seconds(anew) / begun for _ in range(1 if quick else 3))
    finally:
        kept.MOST_KEPT = most
    over = tuple(1 / ratio for ratio in ratios(turns, "products"))
    return [
        Row(f"a step on a reduced {SIDE}³ grid, over two matrix products", over, 16.0, at_most=True),
        Row("… times faster than with features taken anew", slow, 10.0),
    ]


def measure(quick: bool) -> list[Row]:
    """The drift is frozen, Φ = |θ|²/2, so that the solution is known. Both on one grid, whose error rules;
    neither with its compilation."""
    peers = [_peer(tolerance) for tolerance in (TOLERANCES[1:2] if quick else TOLERANCES)]
    best = min(error for _, error, _ in peers)
    spent, error, steps = min(peer for peer in peers if peer[1] < 1.1 * best)
    with jax.enable_x64(True):
        reduced = _reduced(quick)
        run, own = _ours()
        ours = own()
        times = [seconds(run) for _ in range(3 if quick else 7)]
        taken = run().info["steps"]
    note = (
        f"{taken} steps, error {ours:.1e}, {np.median(times):.2g} s; py-pde {steps} steps, error {error:.1e},"
        f" {spent:.2g} s"
    )
    what = "GridFlow on 256² cells to t = 1, times faster than py-pde"
    return [
        Row(what, tuple(spent / t for t in times), 10.0, note=note),
        Row("… its error in L1 over that of py-pde", (ours / error,), 1.0, at_most=True),
        *reduced,
    ]
