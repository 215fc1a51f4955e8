"""Exponents of parametrisations against networks of growing width, and the symmetry against training.

The networks are relu perceptrons in NumPy on one input: of the library, only n^−a, n^−b and n^−c enter."""

import numpy as np
import pytest

from wideflow.parametrisations import Parametrisation

P = Parametrisation
X = np.array([0.6, -1.1, 0.8])


# --- the small network ---------------------------------------------------------------------------


def start(p, n, seed):
    rng, shapes = np.random.default_rng(seed), [(n, X.size), *[(n, n)] * (p.depth - 1), (1, n)]
    return [p.sd(i, n) * rng.standard_normal(shape) for i, shape in enumerate(shapes)]


def forward(p, weights, n):
    """What enters each layer, and h_1, …, h_L, f."""
    x, inputs, h = X, [], []
    for i, w in enumerate(weights):
        inputs.append(x)
        h.append(p.multiplier(i, n) * w @ x)
        x = np.maximum(h[-1], 0)
    return inputs, h


def gradient(p, weights, n):
    """∂f/∂W_l."""
    inputs, _ = forward(p, weights, n)
    back, grads = np.ones(1), []
    for i in reversed(range(len(weights))):
        grads.append(p.multiplier(i, n) * np.outer(back, inputs[i]))
        back = p.multiplier(i, n) * weights[i].T @ back * (inputs[i] > 0)
    return grads[::-1]


def update(p, weights, n, optimiser, residual=1.0):
    """Adam's first step, and every one with β1 = β2 = 0, is the sign of the gradient."""
    move = (lambda g: residual * g) if optimiser == "sgd" else np.sign
    return [p.rate(i, n) * move(g) for i, g in enumerate(gradient(p, weights, n))]


def moves(p, weights, n, dw):
    """The sizes of Δh_1, …, Δh_L, Δf to first order in the step."""
    inputs, h = forward(p, weights, n)
    dx, sizes = np.zeros_like(X), []
    for i, (w, d) in enumerate(zip(weights, dw, strict=True)):
        dh = p.multiplier(i, n) * (d @ inputs[i] + w @ dx)
        sizes.append(np.sqrt(np.mean(dh**2)))
        dx = dh * (h[i] > 0)
    return np.array(sizes)


def slopes(measure, widths=(128, 1024), draws=8192):
    """The power of n between two widths of the mean of |measure| over draws/n seeds (whose scatter falls
    like n^−½ each)."""
    means = [np.mean([np.abs(measure(n, seed)) for seed in range(draws // n)], 0) for n in widths]
    return np.log(means[1] / means[0]) / np.log(widths[1] / widths[0])


# --- measured ------------------------------------------------------------------------------------

NAMED = [
    P.ntk(1),
    P.naive(),
    P.compromise(),
    P.mean_field(),
    P.ntk(3),
    P.standard(3),
    P.mup(3),
    P.scaled(0.75),
]
# Hidden layers that shrink and grow: relu is homogeneous, so their sizes are carried exactly.
OFF_SIZE = [
    P((0.25, 0.5, 0.5), (0, 0.25, 0.5), (0, 0.5, 1)),
    P((0, 0.25, 0.5, 0.75), (-0.25, 0, 0.25, 0.5), (0.5, 0, 0.5, -0.5)),
    P((0.5, -0.5, 0.25, 1), (-1, 0.5, 0.5, 0), (0.25, 1.5, 0.5, 0)),
]
ADAM = [P.mup(2, "adam"), P.ntk(2, "adam"), P.standard(3), P.standard(2, "adam"), *OFF_SIZE[1:]]
ADAM.append(P((0.25, 0.5, 0.5), (0, 0.25, 0.5), (0.25, 0.5, 1)))
CASES = [(p, "sgd") for p in NAMED + OFF_SIZE] + [(p, "adam") for p in ADAM]


@pytest.mark.parametrize(("p", "optimiser"), CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_first_step_has_the_predicted_exponents(p, optimiser):
    def measure(n, seed):
        weights = start(p, n, seed)
        residual = n**predicted.residual  # its own exponent is measured below
        return moves(p, weights, n, update(p, weights, n, optimiser, residual))

    predicted = p.exponents(optimiser)
    # Predictions differ by multiples of ¼, so 0.1 decides. What moves f by less, n^−½ of the rest, tilts the
    # slope by up to ½ · 128^−½ = 0.05; scatter as for the kernel below.
    np.testing.assert_allclose(slopes(measure), [*predicted.features, predicted.df], rtol=0, atol=0.1)


@pytest.mark.parametrize("p", [*NAMED, *OFF_SIZE], ids=lambda p: p.name)
def test_parts_of_the_kernel_have_the_predicted_exponents(p):
    def measure(n, seed):
        grads = gradient(p, start(p, n, seed), n)
        return np.array([p.rate(i, n) * np.sum(g**2) for i, g in enumerate(grads)])

    # Each relu layer makes |x_l|² scatter by √(5/n), as E x⁴/(E x²)² − 1 = 5 for x = max(0, z). Three layers,
    # 8192/n seeds: √(15/8192) = 0.043, and the slope by √2 · 0.043/log 8 = 0.029. Three of that.
    np.testing.assert_allclose(slopes(measure), p.kernel_layers(), rtol=0, atol=0.09)
    predicted = p.exponents()
    assert predicted.df == predicted.residual + max(p.kernel_layers())


@pytest.mark.parametrize("p", [P.two_layer(0.25, 0, 0), P.two_layer(1, -0.75, 0.5), OFF_SIZE[1], P.mup(1)])
def test_the_output_at_the_start_and_the_residual(p):
    def measure(n, seed):
        weights = start(p, n, seed)
        f = forward(p, weights, n)[1][-1][0]
        return np.array([f, moves(p, weights, n, update(p, weights, n, "sgd", 0.1 - f))[0]])

    measured, predicted = slopes(measure, (16, 128), 1 << 16), p.exponents()
    # The mean |f| of 512 Gaussians (at n = 128; more at 16) scatters by 0.75/√512 = 0.033, the slope by
    # 0.033/log 8 = 0.016. Five of that, as relu layers in a row have heavier tails.
    assert abs(measured[0] - predicted.f0) < 0.08
    if predicted.residual > 0:  # else y and f(0) are of one size, and the slope is not yet that of y alone
        assert abs(measured[1] - predicted.features[0]) < 0.08


def test_a_small_last_layer_moves_the_features_in_the_second_step():
    p = P.two_layer(1, 0.5, -1)

    def measure(n, seed):
        weights = start(p, n, seed)
        first = update(p, weights, n, "sgd")
        later = [w + d for w, d in zip(weights, first, strict=True)]
        second = update(p, later, n, "sgd")
        return np.array([moves(p, weights, n, first)[0], moves(p, later, n, second)[0]])

    exponents = p.exponents()
    predicted = [exponents.features[0], exponents.trained[0]]
    assert predicted == [-0.5, 0] and p.regime().verdict == "feature-learning"
    # The start is n^−½ of what the last layer has moved, which tilts the second slope by ½ · 128^−½ = 0.05.
    np.testing.assert_allclose(slopes(measure), predicted, rtol=0, atol=0.08)


# --- symmetry ------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_shift_leaves_the_trained_function_unchanged(optimiser):
    n, rng = 16, np.random.default_rng(1)

    def trained(p):
        weights, out = start(p, n, 0), []
        for _ in range(6):
            f = forward(p, weights, n)[1][-1][0]
            out.append(f)
            step = update(p, weights, n, optimiser, 1 - f)
            sign = 1.0 if optimiser == "sgd" else np.sign(1 - f)
            weights = [w + 0.05 * sign * d for w, d in zip(weights, step, strict=True)]
        return np.array(out)

    p = P.mup(2, optimiser)
    reference = trained(p)
    assert abs(reference[-1] - reference[0]) > 0.01  # it does train
    for _ in range(20):
        s = rng.normal(size=3)
        shifted = p.shift(s, optimiser)
        assert p.equivalent(shifted, optimiser) and shifted.regime(optimiser).verdict == "feature-learning"
        # Six steps of a few hundred roundings of 1e-16.
        np.testing.assert_allclose(trained(shifted), reference, rtol=1e-12)
        other = "adam" if optimiser == "sgd" else "sgd"
        wrong = p.shift(s, other)
        assert not p.equivalent(wrong, optimiser)
        assert np.abs(trained(wrong) - reference).max() > 1e-4
