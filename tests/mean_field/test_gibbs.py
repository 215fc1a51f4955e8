"""The Gibbs measure: against its closed form, from many starts, over a wide range of temperatures."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.stats import chi

import wideflow as wf
from wideflow.mean_field.gibbs import gibbs

_BETA, _DECAY = 2.0, 0.5


def _linear(w):
    """Case 1: ρ* = N(w*/(1 + λ), I/(βλ))."""
    w = jnp.asarray(w, float)
    neuron = wf.CustomNeuron(lambda x, theta: theta @ x, len(w))
    problem = wf.Problem(x=wf.Gaussian(len(w)), target=lambda x: w @ x, neuron=neuron)
    return wf.Risk(problem, wf.Quadrature(4)), wf.init(problem, theta=wf.laws.Normal(0.3, 0.8))


def _closed_form(w, beta=_BETA, decay=_DECAY):
    """Mean, variance and F of ρ* in case 1."""
    w, D = np.asarray(w, float), len(w)
    mean, variance = w / (1 + decay), 1 / (beta * decay)
    confined = 0.5 * np.sum((w - mean) ** 2) + 0.5 * decay * (np.sum(mean**2) + D * variance)
    return mean, variance, confined - 0.5 * D * (np.log(variance) + 1 + np.log(2 * np.pi)) / beta


def _erf():
    problem = wf.Problem(x=wf.Gaussian(1), target=lambda x: jnp.sin(2 * x[0]), neuron=wf.Neuron("erf"))
    return wf.Risk(problem, wf.Quadrature(30)), wf.init(problem, a=1.0, w=1.0)


@pytest.fixture(scope="module")
def erf():
    return _erf()


@pytest.mark.parametrize(("w", "cells"), [([0.7], (30, 60, 120)), ([0.7, -0.4], (24, 48))])
def test_the_gaussian_fixed_point_to_second_order(w, cells):
    """The density in L1 and the covariance to h²; mean and F, by the trapezoidal rule's accuracy for analytic
    functions, to rounding once h is below the standard deviation."""
    R, law = _linear(w)
    mean, variance, free_energy = _closed_form(w)
    errors, spreads = [], []
    for n in cells:
        found = gibbs(R, beta=_BETA, decay=_DECAY, on=wf.on_grid(law, -9.0, 9.0, n))
        assert found.converged and found.residual <= 1e-10
        rho = found.state
        square = np.sum((np.asarray(rho.theta) - mean) ** 2, axis=1).reshape(rho.mass.shape)
        # averages over cells of the exact density, to h⁴: the centre plus h²/24 times the Laplacian
        exact = np.exp(-0.5 * square / variance) / (2 * np.pi * variance) ** (len(w) / 2)
        laplacian = exact * (square / variance - len(w)) / variance
        h = float(rho.widths[0])
        exact = exact + h**2 / 24 * laplacian
        errors.append(float(jnp.sum(jnp.abs(rho.density - exact)) * rho.volume))
        spreads.append(float(jnp.abs(rho.covariance() - variance * jnp.eye(len(w))).max()))
        np.testing.assert_allclose(rho.mean(), mean, atol=1e-8)  # e^{−2π²σ²/h²} at σ = 1, h = 0.75: 6e-16
        assert abs(found.free_energy - free_energy) < 1e-8
        # ½|w* − m|²: the Gauss rule of order 4 is exact for it
        assert abs(found.risk - 0.5 * np.sum((np.asarray(w) - mean) ** 2)) < 1e-8
    for values in (errors, spreads):
        orders = np.log2(np.array(values[:-1]) / np.array(values[1:]))
        assert (orders > 1.8).all(), values


@pytest.mark.parametrize("beta", [1e-3, 1e3])
def test_very_hot_and_very_cold(beta):
    """The box follows the standard deviation 1/√(βλ); h is 0.15 of it: all is exact to rounding."""
    R, law = _linear([0.7])
    mean, variance, free_energy = _closed_form([0.7], beta)
    size = 9 * np.sqrt(variance)
    start = wf.on_grid(lambda theta: jnp.ones(()), mean - size, mean + size, 120, neuron=law.neuron)
    found = gibbs(R, beta=beta, decay=_DECAY, on=start)
    assert found.converged
    h = float(start.widths[0])
    np.testing.assert_allclose(found.state.mean(), mean, atol=1e-9 * (1 + size))
    np.testing.assert_allclose(found.state.covariance()[0, 0] - h**2 / 12, variance, rtol=1e-9)
    np.testing.assert_allclose(found.free_energy, free_energy, rtol=1e-9)


@pytest.mark.slow
def test_reduced_coordinates_carry_the_area_of_spheres():
    """Case 1 in R^5 by (s, r): s ~ N(1/(1 + λ), 1/(βλ)), √(βλ) r ~ χ₄, and F that of R^5."""
    problem = wf.Problem(
        x=wf.Gaussian(5), target=wf.single_index("identity"), neuron=wf.Neuron("identity", output="unit")
    )
    law = wf.init(problem, w=1.0)
    R, start = wf.Risk(problem.reduced(), wf.Quadrature(4)), law.reduced()
    mean, variance, free_energy = _closed_form([1.0, 0, 0, 0, 0])
    gaps = []
    for n in (20, 40):
        found = gibbs(R, beta=_BETA, decay=_DECAY, on=wf.on_grid(start, [-8.0, 0.0], [8.0, 8.0], n))
        rho = found.state
        exact = np.diff(chi(4).cdf(np.asarray(rho.edges(1)) / np.sqrt(variance)))
        gaps.append(np.abs(np.asarray(rho.mass.sum(axis=0)) - exact).sum())
        assert abs(float(rho.mean()[0]) - mean[0]) < 1e-8  # h = 0.8σ and less: e^{−2π²/0.64} = 4e-14
        assert found.converged and found.details["boundary_mass"] < 1e-8
    assert np.log2(gaps[0] / gaps[1]) > 1.8, gaps
    # r³e^{−r²/2} is odd about 0: the trapezoidal rule at half steps errs by O(h⁴), here 0.2⁴/β = 8e-4
    assert abs(found.free_energy - free_energy) < 8e-4


def test_five_starts_one_measure(erf):
    R, law = erf
    found = gibbs(R, beta=20.0, decay=0.1, on=wf.on_grid(law, -8.0, 8.0, 40), starts=5)
    assert len(found.details["iterations"]) == 5 and found.converged
    # each start is within its residual of ρ* in L²(ρ) of log ρ, hence in L1
    assert found.spread <= 4 * 1e-10


def test_starts_of_the_users(erf):
    """Two opposite bumps, which Newton's method turns into one and the same."""
    R, law = erf
    grid = wf.on_grid(law, -6.0, 6.0, 40)
    bumps = [
        wf.on_grid(
            lambda z, at=at: jnp.exp(-4 * jnp.sum((z - at) ** 2)), -6.0, 6.0, (40, 40), neuron=law.neuron
        )
        for at in (-3.0, 3.0)
    ]
    found = gibbs(R, beta=5.0, decay=0.3, on=grid, starts=bumps)
    assert found.converged and found.spread < 4e-10


def test_the_fixed_point_by_another_way(erf):
    """Damped iteration ρ ← (1 − s)ρ + s exp(−β(V + Uρ + λ|θ|²/2))/Z with the tables V and U in NumPy."""
    R, law = erf
    beta, decay = 3.0, 0.3
    found = gibbs(R, beta=beta, decay=decay, on=wf.on_grid(law, -6.0, 6.0, 24))
    theta = np.asarray(found.state.theta)
    nodes = R.ways[-1].nodes
    features = np.asarray(law.neuron.features(law.neuron.unpack(jnp.asarray(theta)), nodes.x))
    weights, y = np.asarray(nodes.weights), np.asarray(nodes.y)
    rho = np.full(len(theta), 1 / len(theta))
    for _ in range(400):
        psi = -features @ (weights * (y - rho @ features)) + 0.5 * decay * np.sum(theta**2, axis=1)
        image = np.exp(-beta * (psi - psi.min()))
        rho = 0.7 * rho + 0.3 * image / image.sum()
    # the damped map contracts by 0.7 or less near ρ* at this β: 0.7⁴⁰⁰ is nothing; both are at rounding
    assert np.abs(np.asarray(found.state.weights) - rho).sum() < 1e-10


def test_the_tolerance_is_kept_and_bounds_the_error(erf):
    """Errors in L1 against a solution at 1e-13: each at most its tolerance, by which it was stopped."""
    R, law = erf
    grid = wf.on_grid(law, -8.0, 8.0, 40)
    settings = {"beta": 20.0, "decay": 0.1, "on": grid, "starts": 2}
    best = gibbs(R, **settings, tol=1e-13)
    for tol in (1e-1, 5e-2, 1e-3, 5e-4, 1e-6, 1e-9):
        found = gibbs(R, **settings, tol=tol)
        assert found.residual <= tol
        assert float(jnp.sum(jnp.abs(found.state.mass - best.state.mass))) <= tol
        assert abs(found.risk - best.risk) <= found.error <= tol  # |Ψ| is below 1 here
        assert (np.abs(found.moments - best.moments) <= found.moment_errors + 1e-13).all()  # and rounding


@pytest.mark.filterwarnings("ignore:.*(not resolve|outermost)")
@pytest.mark.parametrize("beta", [1e-1, 1e0, 1e1, 1e2, 1e3, 1e4])
def test_a_wide_range_of_temperatures(erf, beta):
    """Also where the grid is too coarse for it or the box too small, the discrete equation is solved."""
    R, law = erf
    found = gibbs(R, beta=beta, decay=0.1, on=wf.on_grid(law, -6.0, 6.0, 40), tol=1e-8)
    assert found.converged and found.spread < 1e-7
    # F of ρ* is below that of every other density
    F = wf.FreeEnergy(R, beta=beta, decay=0.1)
    assert found.free_energy < float(F.energy(wf.on_grid(law, -6.0, 6.0, 40)))
    assert (found.details["coarseness"] > 1) == ("not resolve" in found.message)
    assert (found.details["boundary_mass"] > 1e-6) == ("outermost" in found.message)


def test_what_cannot_be_reached_is_said():
    """At β = 1e8 log ρ is rounded to about 1e-16 β |Ψ|, which is above the least tolerance."""
    R, law = _linear([0.7])
    start = wf.on_grid(law, -6.0, 6.0, 60)
    with pytest.warns(UserWarning, match="not 1e-14"):
        found = gibbs(R, beta=1e8, decay=0.5, on=start, tol=1e-14)
    assert found.status == "stalled" and not found.converged and "residual" in found.message


def test_a_small_box_is_said():
    R, law = _linear([0.7])
    start = wf.on_grid(lambda theta: jnp.ones(()), -3.0, 3.0, 60, neuron=law.neuron)
    with pytest.warns(UserWarning, match="outermost cells"):
        found = gibbs(R, beta=_BETA, decay=_DECAY, on=start)
    assert found.details["boundary_mass"] > 1e-4 and found.converged


def test_other_losses_and_scales():
    """α = 2 and Huber's loss: log ρ + βΨ_λ is constant, with Ψ_λ asked of the functional itself."""
    problem = wf.Problem(
        x=wf.Gaussian(1),
        target=lambda x: jnp.sin(2 * x[0]),
        neuron=wf.Neuron("tanh"),
        loss=wf.losses.Huber(0.3),
    )
    R = wf.Risk(problem, wf.Quadrature(20))
    grid = wf.on_grid(wf.init(problem, a=1.0, w=1.0), -6.0, 6.0, 40, alpha=2.0)
    found = gibbs(R, beta=4.0, decay=0.5, on=grid)
    rho = found.state
    psi = (R + 0.5 * wf.SecondMoment()).potential(rho.theta, rho)
    level = jnp.log(rho.weights) + 4.0 * psi
    assert float(jnp.ptp(level)) < 1e-8  # over all cells, the emptiest too
    assert found.details["largest"] < 1e-8


def test_coordinates_that_are_not_trained_keep_their_law():
    """a is drawn once and kept: each value of a has its own Boltzmann law of w, with the mass it had."""
    problem = wf.Problem(
        x=wf.Gaussian(1), target=lambda x: jnp.sin(2 * x[0]), neuron=wf.Neuron("erf", output="frozen")
    )
    R = wf.Risk(problem, wf.Quadrature(20))
    start = wf.on_grid(
        wf.init(problem, a=wf.laws.Uniform(-1.0, 1.0), w=1.0), [-2.0, -6.0], [2.0, 6.0], (8, 40)
    )
    assert start.moves == (False, True)
    found = gibbs(R, beta=10.0, decay=0.5, on=start)
    rho = found.state
    np.testing.assert_allclose(rho.mass.sum(axis=1), start.mass.sum(axis=1), atol=1e-14)
    psi = (R + 0.5 * wf.SecondMoment()).potential(rho.theta, rho).reshape(rho.mass.shape)
    rows = np.asarray(start.mass.sum(axis=1)) > 0
    level = jnp.log(rho.mass[rows]) + 10.0 * psi[rows]
    assert 0 < rows.sum() < 8
    assert float(jnp.max(jnp.ptp(level, axis=1))) < 1e-8
    assert float(jnp.ptp(level)) > 1e-2  # but not one constant for all


def test_single_precision_in_and_out():
    R, law = _linear([0.7])
    double = gibbs(R, beta=_BETA, decay=_DECAY, on=wf.on_grid(law, -9.0, 9.0, 60))
    with jax.enable_x64(False):
        R, law = _linear([0.7])
        found = gibbs(R.problem, beta=_BETA, decay=_DECAY, on=wf.on_grid(law, -9.0, 9.0, 60))
        assert found.state.dtype == jnp.float32 and found.residual <= 1e-10
    assert abs(found.free_energy - double.free_energy) < 1e-6  # w* and the box are rounded to 6e-8


def test_particles_at_rest():
    """n particles of case 1: mean and second moment within 4 standard errors of the exact; the step's bias
    ηλ/2 of the variance, 0.5%, is added to the allowance."""
    R, law = _linear([0.7])
    cloud = law.sample(jr.key(1), 300)
    found = gibbs(R, beta=_BETA, decay=_DECAY, on=cloud, key=jr.key(2), step=0.02, time=30.0, starts=2)
    assert found.converged and found.state.n == 300 and found.residual < 5
    mean, variance, _ = _closed_form([0.7])
    exact = np.array([mean, mean**2 + variance])
    assert (np.abs(found.moments - exact) < 4 * found.moment_errors + 0.005).all()


def test_grid_and_particles_answer_alike():
    """Case 1 by both: the same fields, moments and risk within 4 standard errors of the particles."""
    R, law = _linear([0.7])
    on = wf.on_grid(law, -9.0, 9.0, 60)
    best = gibbs(R, beta=_BETA, decay=_DECAY, on=on)
    assert best.error < 1e-8 and (best.moment_errors < 1e-8).all()
    cloud = law.sample(jr.key(1), 300)
    two = gibbs(R, beta=_BETA, decay=_DECAY, on=cloud, key=jr.key(2), step=0.02, time=30.0, starts=2)
    assert isinstance(two, wf.types.Gibbs) and (best.method, two.method) == ("newton", "langevin")
    assert np.isnan(two.free_energy) and np.isfinite(best.free_energy)
    # bias of a step, ηλ/2 of the variance, and of n = 300: (1/2n)·Var in the risk, each below 0.01
    assert abs(two.risk - best.risk) < 4 * two.error + 0.01
    assert (np.abs(two.moments - best.moments) < 4 * two.moment_errors + 0.01).all()


def test_a_double_well_that_is_not_left_states_no_error():
    """R = ½(∫(θ² − 1)²dρ)² with β = 60 from the right well: by symmetry ∫θ dρ* = 0, but particles stay in the
    well where they are, with a small scatter; a mirrored start stays in the other one."""
    neuron = wf.CustomNeuron(lambda x, t: 3 * (t[0] ** 2 - 1) ** 2, 1)
    problem = wf.Problem(x=wf.Gaussian(1), target=lambda x: 0.0 * x[0], neuron=neuron)
    R = wf.Risk(problem, wf.Quadrature(2))
    cloud = wf.init(problem, theta=wf.laws.Normal(1.0, 0.05)).sample(jr.key(0), 100)
    with pytest.warns(UserWarning, match="nothing is known about the error"):
        found = gibbs(R, beta=60.0, decay=0.1, on=cloud, key=jr.key(1), step=0.01, time=20.0, starts=2)
    assert found.status == "stalled" and not found.converged
    assert abs(found.moments[0, 0]) > 0.5 and np.isinf(found.moment_errors).all() and found.error == np.inf


def test_particles_that_are_not_at_rest_are_said_to_be():
    """1/λ = 100, time 10: starts that are stretched differently have not met."""
    R, law = _linear([0.7])
    with pytest.warns(UserWarning, match="not at rest"):
        found = gibbs(
            R,
            beta=1e3,
            decay=0.01,
            on=law.sample(jr.key(1), 200),
            key=jr.key(2),
            step=0.01,
            time=10.0,
            starts=2,
        )
    assert found.status == "stalled" and found.spread > 5


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"beta": float("inf")}, "beta"),
        ({"decay": -1.0}, "decay"),
        ({"tol": 1e-20}, "tol"),
        ({"on": None}, "on_grid"),
        ({"starts": 1}, "starts"),
        ({"starts": 99}, "5 starts of its own"),
        ({"starts": ["x", "y"]}, "on the grid"),
        ({"step": 0.1}, "for particles"),
    ],
)
def test_mistakes_are_told(change, match):
    R, law = _linear([0.7])
    settings = {"beta": 1.0, "decay": 0.5, "on": wf.on_grid(law, -6.0, 6.0, 20)} | change
    with pytest.raises(ValueError, match=match):
        gibbs(R, **settings)


def test_particles_need_a_step_and_a_time():
    R, law = _linear([0.7])
    with pytest.raises(ValueError, match="step"):
        gibbs(R, beta=1.0, decay=0.5, on=law.sample(jr.key(0), 10))
    with pytest.raises(ValueError, match="must be a wf"):
        gibbs("R", beta=1.0, decay=0.5, on=law.sample(jr.key(0), 10))
