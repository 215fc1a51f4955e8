"""The kernel of ridge neurons, against the general one."""

import numpy as np
import pytest

import wideflow as wf


@pytest.mark.parametrize("output", ["trained", "frozen", "unit"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_neurons_take_the_short_way_to_the_same_kernel(output, bias, activation):
    """Two matrix products against the general kernel of the same function, part by part."""
    neuron = wf.Neuron(activation, bias=bias, output=output)
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.1, 1.0, 7)
    state = wf.Particles(rng.normal(size=(7, neuron.size(4))), weights / weights.sum(), 2.5, neuron)
    x, other = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    f, params, rates = state.tangent()
    general = wf.empirical_ntk(f, params, x, other, rates=rates, per_leaf=True)[0]
    short = wf.kernels.tangent_kernels(state, x, other)
    assert set(short) == {name for name, K in general._asdict().items() if K is not None}
    for name, kernel in short.items():
        # sums of 7 products: rounding of numbers of order 10
        np.testing.assert_allclose(kernel, getattr(general, name), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(wf.tangent_kernel(state, x, other), sum(short.values()), rtol=1e-14)
