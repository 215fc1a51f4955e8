import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import wideflow as wf
from wideflow.kernels.empirical import signals as compiled
from wideflow.kernels.empirical.layerwise import layerwise_kernels, layerwise_ntk
from wideflow.kernels.empirical.ntk import empirical_ntk

# Relative to the largest entry: sums of some hundred products, each rounded at 1e-16.
DIGITS = 1e-12
N = 6

IMAGE = (6, 6, 2)
FAMILIES = {
    "depth 1": wf.MLP(4, 1, "tanh"),
    "depth 1, 3 outputs": wf.MLP(4, 1, "relu", outputs=3),
    "depth 3": wf.MLP(4, 3, "erf", gain=1.4),
    "depth 3, 3 outputs, bias": wf.MLP(4, 3, "gelu", outputs=3, bias=0.7),
    "5 outputs": wf.MLP(4, 2, "tanh", outputs=5, input_scale="front"),
    "cnn flatten": wf.CNN(IMAGE, 2, "tanh", outputs=2),
    "cnn average, bias": wf.CNN(IMAGE, 2, "relu", head="average", outputs=2, bias=0.5),
    "cnn pool": wf.CNN(IMAGE, 2, "tanh", pool=[3, 1], bias=0.5),
    "cnn stride 2": wf.CNN(IMAGE, 2, "erf", stride=2, outputs=3),
    "cnn valid": wf.CNN(IMAGE, 2, "tanh", padding="VALID", window=2, outputs=2),
    "cnn few positions": wf.CNN(IMAGE, 2, "tanh", stride=3, outputs=3, bias=0.5),
}


def made(case, parametrisation="ntk", **options):
    return FAMILIES[case].sample(jr.key(0), N, parametrisation, **options)


def inputs(case, m=11, key=1):
    return jr.normal(jr.key(key), (m, *FAMILIES[case].inputs))


def close(kernel, reference, digits=DIGITS):
    np.testing.assert_allclose(kernel, reference, rtol=0, atol=digits * abs(reference).max(), strict=True)


def jacobians(network, x):
    """∂f_o(x_i)/∂W_l and its bias, (m, O, P) each, with their rates; by jax.jacrev."""
    f, params, (rates, _) = network.tangent()
    leaves = jax.tree.leaves(_jacobian(f, params, x))
    return [leaf.reshape(len(x), network.outputs, -1) for leaf in leaves], jax.tree.leaves(rates)


@functools.partial(jax.jit, static_argnums=0)
def _jacobian(f, params, x):
    return jax.jacrev(lambda parts: f((parts, params[1]), x))(params[0])


def explicit(network, x, other=None):
    both, rates = jacobians(network, x if other is None else jnp.concatenate([x, other]))
    two = [jacobian[len(x) if other is not None else 0 :] for jacobian in both]
    pairs = zip(rates, (jacobian[: len(x)] for jacobian in both), two, strict=True)
    kernel = sum(rate * np.einsum("iop,jqp->ijoq", a, b) for rate, a, b in pairs)
    return kernel[:, :, 0, 0] if network.outputs == 1 else kernel


def mean_over_outputs(kernel):
    return kernel if kernel.ndim == 2 else np.trace(kernel, axis1=2, axis2=3) / kernel.shape[2]


def own(kernel):
    return kernel[np.arange(len(kernel)), np.arange(len(kernel))]


# --- against explicit Jacobians ----------------------------------------------------------------


@pytest.mark.parametrize("case", FAMILIES)
def test_every_form_equals_explicit_jacobians(case):
    network, x, other = made(case), inputs(case), inputs(case, key=2)
    both = explicit(network, x, jnp.concatenate([x, other]))
    reference, crossed = both[:, : len(x)], both[:, len(x) :]
    close(layerwise_ntk(network, x), reference)
    close(layerwise_ntk(network, x, other), crossed)
    close(layerwise_ntk(network, x, form="trace"), mean_over_outputs(reference))
    close(layerwise_ntk(network, x, other, form="trace"), mean_over_outputs(crossed))
    close(layerwise_ntk(network, x, form="diagonal"), own(reference))


PARAMETRISATIONS = [
    ("depth 3, 3 outputs, bias", "ntk"),
    ("depth 3, 3 outputs, bias", "mup"),
    ("depth 3, 3 outputs, bias", "standard"),
    ("depth 1", "mean_field"),
    ("cnn average, bias", "mup"),
    ("cnn stride 2", "standard"),
    ("depth 3", wf.Parametrisation((0.25, 0.5, 0.0, 1.0), (0.0, 0.25, 0.5, 0.5), (0.5, -1.0, 0.25, 1.0))),
]


@pytest.mark.parametrize(("case", "parametrisation"), PARAMETRISATIONS)
def test_every_parametrisation(case, parametrisation):
    """Rates and multipliers of each layer enter where they should: all differ here."""
    network, x = made(case, parametrisation), inputs(case)
    close(layerwise_ntk(network, x), explicit(network, x))


@pytest.mark.parametrize("case", ["depth 3, 3 outputs, bias", "cnn few positions", "cnn average, bias"])
def test_equals_the_kernel_of_any_function(case):
    network, x = made(case, "mup"), inputs(case)
    f, params, rates = network.tangent()
    for form in ("full", "trace", "diagonal"):
        generic = empirical_ntk(f, params, x, form=form, rates=rates)
        close(layerwise_ntk(network, x, form=form), np.asarray(generic))


def test_two_layers_by_hand():
    """K = Φ1 + Φ0 ∘ G1 of the mean-field two-layer network, with the rates n of both its layers."""
    network, x = made("depth 1", "mean_field"), inputs("depth 1")
    (w, _), (a, _) = network.parts
    h = np.asarray(x @ w)
    features, slopes = np.tanh(h), np.asarray(a[:, 0]) / np.cosh(h) ** 2
    by_hand = features @ features.T / N + np.asarray(x @ x.T) * (slopes @ slopes.T) / N
    close(layerwise_ntk(network, x), by_hand)


# --- ways to the same number ---------------------------------------------------------------------


@pytest.mark.parametrize("memory", [1, 30_000])
@pytest.mark.parametrize("case", ["depth 3, 3 outputs, bias", "cnn stride 2"])
def test_small_tiles_give_the_same(case, memory):
    network, x, other = made(case), inputs(case), inputs(case, 7, key=2)
    for second in (None, other):
        reference = np.asarray(layerwise_ntk(network, x, second))
        close(layerwise_ntk(network, x, second, memory=memory), reference, 1e-14)  # other orders of summation
        close(
            layerwise_ntk(network, x, second, form="trace", memory=memory),
            mean_over_outputs(reference),
            1e-14,
        )
    diagonal = layerwise_ntk(network, x, form="diagonal", memory=memory)
    close(diagonal, own(np.asarray(layerwise_ntk(network, x))), 1e-14)


@pytest.mark.parametrize("way", ["_by_positions", "_by_weights"])
@pytest.mark.parametrize("case", ["cnn average, bias", "cnn few positions"])
def test_both_ways_through_a_convolution(case, way, monkeypatch):
    """Pairs of positions, and gradients of the weights in chunks that do not divide the units."""
    network, x = made(case), inputs(case)
    tile = compiled.signals(network, x)
    corners = [(slice(0, 4), slice(0, 11)), (slice(4, 11), slice(4, 11))]
    monkeypatch.setattr(compiled, "_CHUNK", 4 * 22 * tile[1].b.shape[1] * tile[1].a.shape[2] * 8)
    (jacobian, *_), rates = jacobians(network, x)
    reference = rates[0] * np.einsum("iop,jqp->ijoq", jacobian, jacobian)
    if network.parts[0].b is not None:
        of_bias, rate = jacobians(network, x)[0][1], rates[1]
        reference = reference + rate * np.einsum("iop,jqp->ijoq", of_bias, of_bias)
    for found, (rows, columns) in zip(
        getattr(compiled, way)(tile[0], tile[0], corners), corners, strict=True
    ):
        close(found, reference[rows, columns])


def test_the_cheaper_way_is_taken():
    """Both ways occur among the cases above: 36 positions of 6 channels, and 4 of more."""
    ways = {}
    for case in ("cnn flatten", "cnn few positions"):
        a, b = compiled.signals(made(case), inputs(case))[1]
        ways[case] = compiled.positions_are_cheaper(a, b)
    assert ways == {"cnn flatten": False, "cnn few positions": True}


@pytest.mark.parametrize("form", ["full", "trace", "diagonal"])
@pytest.mark.parametrize("case", ["depth 3, 3 outputs, bias", "cnn average, bias"])
def test_layers_sum_to_the_kernel(case, form):
    network, x = made(case, "mup"), inputs(case)
    parts = layerwise_kernels(network, x, form=form)
    assert len(parts) == len(network.parts)
    close(sum(parts), np.asarray(layerwise_ntk(network, x, form=form)), 1e-14)
    if form == "full":
        found, rates = jacobians(network, x)
        for i, part in enumerate(parts):  # weights and bias of one layer
            pairs = zip(rates[2 * i : 2 * i + 2], found[2 * i : 2 * i + 2], strict=True)
            close(part, sum(rate * np.einsum("iop,jqp->ijoq", j, j) for rate, j in pairs))


@pytest.mark.parametrize("case", ["depth 3, 3 outputs, bias", "5 outputs", "cnn stride 2"])
def test_symmetric_and_positive_semi_definite(case):
    network, x = made(case), inputs(case, 13)
    kernel = np.asarray(layerwise_ntk(network, x))
    matrix = kernel.transpose(0, 2, 1, 3).reshape(13 * network.outputs, -1)
    values = np.linalg.eigvalsh(matrix)
    close(matrix, matrix.T, 1e-15)  # two orders of summation inside a block of outputs
    assert values[0] > -1e-14 * values[-1]  # rounding of entries, times √n


def test_scale_and_centre_do_not_enter():
    """F = αf at the rates over α²."""
    x = inputs("depth 3")
    plain, scaled = made("depth 3"), made("depth 3", alpha=30.0, centred=True)
    np.testing.assert_array_equal(layerwise_ntk(plain, x), layerwise_ntk(scaled, x))


def test_many_samples_in_single_precision():
    """More samples than strips of the triangle, and dtypes: the kernel follows the network."""
    network, x = made("5 outputs"), inputs("5 outputs", 53)
    single = made("5 outputs", dtype=jnp.float32)
    single = eqx.tree_at(
        lambda n: n.parts, single, jax.tree.map(lambda w: w.astype(jnp.float32), network.parts)
    )
    kernel = layerwise_ntk(single, x)
    assert kernel.dtype == jnp.float32
    reference = np.asarray(layerwise_ntk(network, x))
    close(np.float64(kernel), reference, 1e-5)  # a hundred roundings of 6e-8
    close(reference, explicit(network, x))


def test_rows_of_images_may_be_flat():
    network, x = made("cnn flatten"), inputs("cnn flatten")
    np.testing.assert_array_equal(layerwise_ntk(network, x.reshape(11, -1)), layerwise_ntk(network, x))


# --- compilation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_other_weights_and_parametrisations_do_not_compile_anew(form):
    case, seen = "depth 3, 3 outputs, bias", []

    def listen(event, _, **kwargs):
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(kwargs.get("fun_name"))

    x, other = inputs(case, 9), inputs(case, 9, key=3)
    networks = made(case), FAMILIES[case].sample(jr.key(5), N, "mup", alpha=2.0)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        layerwise_ntk(networks[0], x, form=form)
        first = len(seen)
        layerwise_ntk(networks[1], other, form=form)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert first and len(seen) == first


# --- bad input -----------------------------------------------------------------------------------

BAD = {
    "form": ({"form": "ful"}, "Did you mean 'full'"),
    "memory": ({"memory": 0}, "memory must be"),
    "shape": ({"x1": np.ones((3, 5))}, "x1 must have rows of shape"),
    "x2": ({"x2": np.ones((3, 5))}, "x2 must have rows of shape"),
    "diagonal": ({"x2": np.ones((3, 4)), "form": "diagonal"}, "x1 alone"),
    "nan": ({"x1": np.full((3, 4), np.nan)}, "x1 must be finite"),
    "no rows": ({"x1": np.ones((0, 4))}, "at least one sample"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    changed, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        layerwise_ntk(**{"network": made("depth 1"), "x1": np.ones((3, 4)), **changed})


@pytest.mark.parametrize("form", ["full", "trace", "diagonal"])
def test_the_first_sample_without_a_finite_kernel_is_named(form):
    x = np.ones((6, 4))
    x[3] = 1e200  # its square is beyond float64
    with pytest.raises(ValueError, match=r"x1\[3\]"):
        layerwise_ntk(made("depth 1"), x, form=form)
    if form != "diagonal":
        with pytest.raises(ValueError, match=r"x2\[3\]"):
            layerwise_ntk(made("depth 1"), np.full((2, 4), 1e150), x, form=form)
