"""Problems for deep networks have no neuron: outputs come from labels; what needs a neuron says so."""

import jax.random as jr
import numpy as np
import pytest

import wideflow as wf

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
CLASSES = rng.integers(0, 10, 30)
CLASSES[0] = 9


def test_outputs_come_from_labels():
    several = np.stack([X[:, 0], X[:, 1]], axis=1)
    assert wf.Problem(x=wf.Dataset(X, X[:, 0])).outputs == 1
    assert wf.Problem(x=wf.Dataset(X, several)).outputs == 2
    assert wf.Problem(x=wf.Gaussian(3), target=lambda x: x[:2]).outputs == 2
    assert wf.Problem(x=wf.Dataset(X, CLASSES), loss="cross_entropy").outputs == 10
    assert wf.Problem(x=wf.Dataset(X, np.sign(X[:, 0])), loss="logistic").outputs == 1


def test_classes_are_learnt():
    """Bit by bit as in the same problem with a neuron."""
    plain = wf.Problem(x=wf.Dataset(X, CLASSES), loss="cross_entropy")
    neuron = wf.Problem(x=wf.Dataset(X, CLASSES), loss="cross_entropy", neuron=wf.Neuron("relu", outputs=10))
    net = wf.MLP(3, 2, "relu", outputs=10).sample(jr.key(0), 16)
    runs = [wf.evolve(wf.GradientDescent(wf.Risk(P), step=0.5), net, [0.0, 20.0]) for P in (plain, neuron)]
    np.testing.assert_array_equal(runs[0]["risk"], runs[1]["risk"])
    assert runs[0]["risk"][1] < 0.9 * runs[0]["risk"][0]


def test_a_network_may_have_more_classes_than_the_data():
    seen = np.minimum(CLASSES, 7)
    R = wf.Risk(wf.Problem(x=wf.Dataset(X, seen), loss="cross_entropy"))
    assert np.isfinite(R.value(wf.MLP(3, 1, outputs=10).sample(jr.key(0), 4)))
    with pytest.raises(ValueError, match="at least 8 output"):
        R.value(wf.MLP(3, 1, outputs=7).sample(jr.key(0), 4))
    with pytest.raises(ValueError, match="outputs=10"):
        wf.evolve(wf.KernelFlow(R), wf.MLP(3, 1, outputs=10).sample(jr.key(0), 4), [0.0, 1.0])
    exact = wf.Risk(wf.Problem(x=wf.Dataset(X, seen), loss="cross_entropy", outputs=9))
    with pytest.raises(ValueError, match="has 9 output"):
        exact.value(wf.MLP(3, 1, outputs=10).sample(jr.key(0), 4))


def test_particles_bring_their_own_neuron():
    problem = wf.Problem(x=wf.Dataset(X, X[:, 0]))
    with_neuron = wf.Problem(x=wf.Dataset(X, X[:, 0]), neuron=wf.Neuron("tanh"))
    rho = wf.init(with_neuron).sample(jr.key(0), 5)
    assert wf.Risk(problem).value(rho) == wf.Risk(with_neuron).value(rho)


NEEDED = {
    "init": wf.init,
    "reduced": lambda problem: problem.reduced(),
    "symmetry": lambda problem: problem.symmetry(),
    "D": lambda problem: problem.D,
    "limit": lambda problem: wf.limit(problem, LAW, [0.0, 1.0]),
    "potential": lambda problem: wf.Risk(problem).V(np.ones((2, 4))),
}
LAW = wf.init(wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf")))


@pytest.mark.parametrize("name", NEEDED)
def test_what_needs_a_neuron_says_so(name):
    with pytest.raises(ValueError, match="This problem has no neuron"):
        NEEDED[name](wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf")))


def test_refused():
    with pytest.raises(ValueError, match="d = inf"):
        wf.Problem(x=wf.Gaussian(np.inf), target=wf.single_index("erf"))
    with pytest.raises(ValueError, match="number of classes"):
        wf.Problem(x=wf.Gaussian(3), target=lambda x: x[0] > 0, loss="cross_entropy")
    with pytest.raises(ValueError, match=r"Problem\(outputs\) must be a whole number"):
        wf.Problem(x=wf.Dataset(X, X[:, 0]), outputs=0)
    with pytest.raises(ValueError, match="that of the neuron, 1"):
        wf.Problem(x=wf.Dataset(X, X[:, 0]), neuron=wf.Neuron("tanh"), outputs=2)
    with pytest.raises(ValueError, match="needs y of shape"):
        wf.Problem(x=wf.Dataset(X, X[:, 0]), outputs=2)
