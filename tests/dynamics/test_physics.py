"""Temperature and decay are said once: in the functional, or as arguments, to the same bits."""

import jax
import numpy as np
import pytest

import wideflow as wf

BETA, DECAY, TS, KEY = 4.0, 0.3, (0.0, 0.25), jax.random.key(0)
PROBLEM = wf.Problem(
    x=wf.Gaussian(1), target=wf.single_index("identity"), neuron=wf.Neuron("identity", output="unit")
)
R = wf.Risk(PROBLEM)
SUM = R + DECAY * wf.SecondMoment() - wf.Entropy() / BETA
FREE = wf.FreeEnergy(R, beta=BETA, decay=DECAY)
LAW = wf.init(PROBLEM, w=0.5)
CLOUD, DENSITY = LAW.sample(KEY, 12), wf.on_grid(LAW, -5.0, 5.0, 40)
SAID = {"beta": BETA, "decay": DECAY}

METHODS = {
    "Langevin": (lambda of, **said: wf.Langevin(of, 2**-5, **said), CLOUD),
    "BirthDeath": (lambda of, **said: wf.BirthDeath(of, 2**-5, **said), CLOUD),
    "JKO": (lambda of, **said: wf.JKO(of, 0.125, **said), CLOUD),
    "GridFlow": (lambda of, **said: wf.GridFlow(of, tol=1e-4, **said), DENSITY),
    "FisherRao": (lambda of, **said: wf.FisherRao(of, 2**-5, **said), DENSITY),
}


@pytest.mark.parametrize("functional", [SUM, FREE], ids=["sum", "FreeEnergy"])
@pytest.mark.parametrize("name", METHODS)
def test_the_functional_says_it_all(name, functional):
    make, start = METHODS[name]
    told = wf.evolve(make(R, **SAID), start, TS, key=KEY)
    ours = wf.evolve(make(functional), start, TS, key=KEY)
    assert np.array_equal(told["risk"], ours["risk"])
    assert np.array_equal(told.final.weights, ours.final.weights)
    assert np.array_equal(told.final.theta, ours.final.theta)
    without = wf.evolve(make(R, beta=1.0), start, TS, key=KEY)  # it does make a difference
    assert not np.isclose(without.final.second_moment(), ours.final.second_moment(), rtol=1e-2)


@pytest.mark.filterwarnings("ignore:.*outermost cells")
def test_gibbs_of_a_functional():
    told = wf.gibbs(R, on=DENSITY, **SAID)
    for functional in (SUM, FREE):
        ours = wf.gibbs(functional, on=DENSITY)
        assert (ours.beta, ours.decay, ours.risk) == (BETA, DECAY, told.risk)
        assert ours.free_energy == told.free_energy


@pytest.mark.parametrize("name", METHODS)
def test_twice_is_an_error(name):
    make, _ = METHODS[name]
    with pytest.raises(ValueError, match=f"{name} got an inverse temperature twice"):
        make(FREE, beta=BETA)
    with pytest.raises(ValueError, match=f"{name} got a decay twice"):
        make(SUM, decay=DECAY)
    with pytest.raises(ValueError, match=f"{name} lowers its functional, and this one grows"):
        make(R + wf.Entropy() / BETA)


def test_noise_where_there_is_none():
    with pytest.raises(ValueError, match="Langevin needs an inverse temperature"):
        wf.Langevin(R, 0.01)
    with pytest.raises(ValueError, match="gibbs needs an inverse temperature"):
        wf.gibbs(R, on=DENSITY)
    with pytest.raises(ValueError, match="WassersteinFisherRao has no noise"):
        wf.WassersteinFisherRao(FREE, 0.01)
    with pytest.raises(ValueError, match="needs a functional to descend"):
        wf.Langevin(-wf.Entropy() / BETA, 0.01)


def test_the_sum_is_the_free_energy():
    """Value, energy and first variation of both, on a density; R/α² + … as energy at α ≠ 1."""
    rho = wf.on_grid(LAW, -5.0, 5.0, 40, alpha=2.0)
    theta = rho.theta[10:13]
    # the same terms added up in another order
    assert np.isclose(SUM.energy(rho), FREE.energy(rho), rtol=1e-14)
    assert np.allclose(SUM.potential(theta, rho), FREE.potential(theta, rho), rtol=1e-13)


def test_entropy_of_reduced_particles_is_that_of_the_neurons():
    """w ~ N(0, (γ²/d) I) in R^d, output="unit": S = (d/2) log(2πe γ²/d), in any coordinates."""
    d, gamma = 3, 1.0
    problem = wf.Problem(
        x=wf.Gaussian(d), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="unit")
    )
    exact = 0.5 * d * np.log(2 * np.pi * np.e * gamma**2 / d)
    errors = []
    for cells in (24, 48):
        rho = wf.on_grid(wf.init(problem, w=gamma).reduced(), [-3.5, 0.0], [3.5, 3.5], cells)
        errors.append(abs(float(wf.Entropy().value(rho)) - exact))
    # of second order in the cells, with the corner at r = 0 a little less; the tails beyond the box are 1e-8
    assert errors[1] < errors[0] / 3 and errors[1] < 5e-3
