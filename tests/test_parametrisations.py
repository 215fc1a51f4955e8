"""Parametrisations against theory and published tables (against networks: test_parametrisations_measured)."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest

from wideflow.parametrisations import Parametrisation, lattice, named
from wideflow.store.records import decode, encode

P = Parametrisation
TWO_LAYER = {
    "ntk": (0.5, 0, 0),
    "naive": (0.5, 0, -0.5),
    "compromise": (1, 0, -0.5),
    "mean_field": (1, 0, -1),
}


# --- theory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "feature", "output", "verdict"),
    [
        ("ntk", -0.5, 0, "lazy"),
        ("naive", 0, 0.5, "unstable"),
        ("compromise", -0.5, -0.5, "trivial"),
        ("mean_field", 0, 0, "feature-learning"),
    ],
)
def test_the_table_of_the_lectures(name, feature, output, verdict):
    p = named(name, 1)
    assert p == P.two_layer(*TWO_LAYER[name])
    exponents = p.exponents()
    assert exponents.features == (feature,) and exponents.df == output
    assert p.regime().verdict == verdict


def two_layer_theory(A, B, C):  # noqa: N803
    e = max(0, 0.5 - A - B)
    return 0.5 - A - B, e - (A + B + C), e + 1 - 2 * A - C + max(0, -2 * B)


def verdict_of(f0, features, df):
    """The regime read off the sizes of what moves."""
    if max(f0, df, *features) > 0:
        return "unstable"
    return "trivial" if df < 0 else "feature-learning" if max(features) == 0 else "lazy"


def test_two_layer_exponents_and_regime_agree_with_theory_on_the_lattice():
    seen = Counter()
    for p in lattice(1):
        A, B, C = p.a[1], p.b[1], p.c[1]
        f0, dh, df = two_layer_theory(A, B, C)
        exponents = p.exponents()
        # Quarter-integers are exact in binary, so equality is.
        assert (exponents.f0, exponents.features, exponents.df) == (f0, (dh,), df)
        if (
            A + B <= 2 * A + C
        ):  # else the last layer's first step exceeds its start, and the second step decides
            assert p.regime().verdict == verdict_of(f0, (dh,), df), p
            seen[p.regime().verdict] += 1
    assert min(seen[v] for v in ("unstable", "trivial", "lazy", "feature-learning")) >= 4


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_regime_agrees_with_exponents_at_depth_two(optimiser):
    seen = Counter()
    for p in lattice(2, low=-1, high=1.5):
        _, q = p._invariants(optimiser)
        if optimiser == "adam" or p.a[-1] + p.b[-1] <= q[-1]:
            e = p.exponents(optimiser)
            seen[p.regime(optimiser).verdict] += 1
            assert p.regime(optimiser).verdict == verdict_of(e.f0, e.features, e.df), p
    assert min(seen[v] for v in ("unstable", "trivial", "lazy", "feature-learning")) >= 40


def test_the_lattice_has_a_hundred_of_each_class_and_no_two_alike():
    for optimiser in ("sgd", "adam"):
        found = list(lattice(2))
        count = Counter(p.regime(optimiser).verdict for p in found)
        assert len(count) == 4 and min(count.values()) >= 100, count
        assert len({p._invariants(optimiser) for p in found}) == len(found) == 13**4


def theorem(a, b, c):
    """Yang and Hu with one rate c, word by word."""
    A, B, L = a[-1], b[-1], len(a) - 1
    r = min(A + B, 2 * A + c) + c - 1 + min(2 * a[i] + (i == 0) for i in range(L))
    hidden = a[0] + b[0] == 0 and all(a[i] + b[i] == 0.5 for i in range(1, L))
    if not (hidden and A + B >= 0.5 and r >= 0 and 2 * A + c >= 1 and A + B + r >= 1):
        return "unstable", r
    if not (2 * A + c == 1 or A + B + r == 1):
        return "trivial", r
    return ("feature-learning" if r == 0 else "lazy"), r


def test_layerwise_rates_are_classified_like_their_common_rate():
    rng, seen = np.random.default_rng(0), Counter()
    for p in itertools.islice(lattice(3, step=0.5), 0, None, 3):
        verdict, r = theorem(p.a, p.b, p.c[0])
        layerwise = p.shift(rng.integers(-4, 5, 4) / 4)
        for q in (p, layerwise):
            assert q.regime().verdict == verdict and q.regime().r == r
            assert q.exponents().r == r == -max(q.exponents().trained)
        seen[verdict] += len(set(layerwise.c)) > 1
    assert min(seen.values()) >= 20 and len(seen) == 4, seen


def test_hidden_layers_off_their_size_are_unstable():
    for a, way in (((0.25, 0, 1), "h1 vanishes"), ((0, -0.25, 1), "h2 diverges")):
        regime = P(a, (0, 0.5, 0), (0, 0, -1)).regime()
        assert regime.verdict == "unstable" and way in regime.reasons[0]


# --- published tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_yang_hu_table(depth):
    """TP4, Table 1: r is ½ for the standard and the NTK parametrisation, 0 for muP."""
    for p, r in ((P.standard(depth), 0.5), (P.ntk(depth), 0.5), (P.mup(depth), 0)):
        assert p.regime().r == r and p.regime().verdict == ("lazy" if r else "feature-learning")
    assert P.standard(depth).kernel_layers() == (-1, *(0,) * depth)  # the first layer drops out
    assert P.ntk(depth).kernel_layers() == (0,) * (depth + 1)
    assert P.ntk(depth).nngp_exponent == 0 and P.mup(depth).nngp_exponent == -0.5


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_mup_of_adam_is_the_published_one(depth):
    """TP5, Table 3: variances 1, 1/n, 1/n² and rates 1, 1/n, 1/n, without multipliers."""
    p = P.mup(depth, "adam")
    between = depth - 1
    published = P((0,) * (depth + 1), (0, *(0.5,) * between, 1), (0, *(1,) * between, 1))
    assert p.equivalent(published, "adam")
    assert not p.equivalent(published.shift(0.5, "sgd"), "adam")
    assert p.regime("adam").verdict == "feature-learning"
    assert p.exponents("adam").features == (0,) * depth and p.exponents("adam").df == 0


def test_mup_with_one_hidden_layer_is_mean_field():
    for optimiser in ("sgd", "adam"):
        assert P.mup(1, optimiser).equivalent(P.mean_field(optimiser=optimiser), optimiser)
    assert not P.mup(1).equivalent(P.ntk(1)) and not P.mup(1).equivalent(P.mup(2))
    assert P.mup(2).regime("adam").verdict == "unstable"  # the rates of one are not those of the other


def test_adam_in_the_standard_parametrisation():
    """Rate 1/n: W_{L+1}(0), of size n^−½, meets features that move by 1 with its signs: √n."""
    deep = P.standard(3)
    assert deep.regime("adam").verdict == "unstable" and deep.exponents("adam").df == 0.5
    assert deep.regime("adam").reasons == ("a4 + b4 + r = 0.5 < 1: the moved features move f by n^0.5",)
    for p in (P.standard(1, "adam"), P.standard(3, "adam"), P.ntk(1, "adam"), P.ntk(3, "adam")):
        assert p.regime("adam").verdict == "lazy" and p.exponents("adam").df == 0
    faster = dataclasses.replace(P.standard(3, "adam"), c=(1.25,) * 4)
    assert faster.regime("adam").verdict == "unstable"


def test_scale_between_mean_field_and_ntk():
    assert P.scaled(1) == P.mean_field() and P.scaled(0.5) == P.ntk(1)
    for A in (0.5, 0.6, 0.75, 0.9):
        regime = P.scaled(A).regime()
        # One rounding of numbers of size 1.
        assert regime.verdict == "lazy" and regime.r == pytest.approx(1 - A, abs=1e-15)
    assert P.scaled(1.1).regime().verdict == P.scaled(0.4).regime().verdict == "unstable"
    n, A = 400, 0.7
    alpha = n ** (1 - A)
    np.testing.assert_allclose(P.scaled(A).multiplier(1, n), alpha / n, rtol=1e-14)  # roundings of a power
    np.testing.assert_allclose(P.scaled(A).rate(0, n), n / alpha**2, rtol=1e-14)


# --- biases -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("optimiser", "k"), [("sgd", 2), ("adam", 1)])
def test_biases_follow_the_shifts(optimiser, k):
    """multiplier · sd and multiplier^k · rate are all that the trained function knows of a bias."""

    def sizes(p, layer):
        m = p.bias_multiplier(layer, 100)
        return m * p.bias_sd(layer, 100), m**k * p.bias_rate(layer, 100)

    p = P.standard(2, optimiser)
    shifted = p.shift((0.3, -0.2, 0.45), optimiser)
    for layer in range(3):
        np.testing.assert_allclose(sizes(shifted, layer), sizes(p, layer), rtol=1e-13)  # roundings of powers
        expected = (1, 1) if layer == 2 else (1, 100 ** -p.c[0])
        np.testing.assert_allclose(sizes(p, layer), expected, rtol=1e-13)


def test_biases_of_the_mean_field_network():
    p, n = P.mean_field(), 49
    assert (p.bias_multiplier(0, n), p.bias_sd(0, n), p.bias_rate(0, n)) == (1, 1, n)
    assert (p.bias_multiplier(1, n), p.bias_sd(1, n), p.bias_rate(1, n)) == (1, 1, 1)


# --- a value -------------------------------------------------------------------------------------


def test_a_parametrisation_is_a_value():
    p = P([-0.5, 0, 0.5], np.full(3, 0.5), (0, -0.0, 0))
    assert p == P.mup(2) and hash(p) == hash(P.mup(2)) and p.name != P.mup(2).name
    assert p.depth == 2 and p.shift(0) == p
    n = 64
    assert (p.multiplier(0, n), p.sd(1, n), p.rate(2, n), p.multiplier(2, n)) == (8, 1 / 8, 1, 1 / 8)
    assert repr(p) == "Parametrisation(a=(-0.5, 0, 0.5), b=(0.5, 0.5, 0.5), c=(0, 0, 0))"
    assert eval(repr(P.mup(2))) == p
    assert str(P.mup(2)).splitlines()[3].split() == ["output", "0.5", "0.5", "0"]


def test_a_parametrisation_is_recorded_as_data():
    p, arrays = P.mup(2), {}
    again = decode(encode(p, arrays), arrays)
    assert again == p and again.name == "mup"


def test_reasons_name_the_inequality_with_its_numbers():
    regime = P.mup(2).regime()
    assert "min(1, 1) - 1 + min(0, 0) = 0: features move" in regime.reasons[-1]
    assert str(regime).startswith("feature-learning: the hidden layers") and regime.reasons[-1] in str(regime)
    assert P.compromise().regime().reasons == (
        "2a2 + c2 = 1.5 > 1 and a2 + b2 + r = 1.5 > 1: f does not move",
    )
    assert len(P.naive().regime().reasons) == 2 and not P.naive().regime().stable
    assert P.compromise().regime().trivial and not P.ntk().regime().trivial
    assert str(P.naive().exponents()) == "f(0) +0; first step (sgd): Δh1 +0, Δf +0.5; r = 0"


def test_rounding_does_not_decide():
    p = P.mup(3).shift((0.1, 1 / 3, -0.7, np.pi))
    assert p.regime().verdict == "feature-learning" and p.equivalent(P.mup(3))
    near = P.two_layer(0.5, 0, -1e-3).regime()  # but a small true difference does
    assert near.verdict == "unstable" and len(near.reasons) == 2
    assert (
        P.two_layer(1, 0, -1.001).regime().r < 0 and P.two_layer(0.5, 0, 1e-3).regime().verdict == "trivial"
    )


def test_names():
    assert named("muP", 2) == P.mup(2) and named("mean-field", 1) == P.mean_field()
    assert named("mup", 3, "adam") == P.mup(3, "adam") and named("naive", 1).name == "naive"
    p = P.two_layer(0.7, 0.1, 0)
    assert named(p, 1) is p


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: P((0, 0.5), (0, 0, 0), (0, 0)), "one a, b and c per layer, got 2, 3 and 2"),
        (lambda: P((0,), (0,), (0,)), "at least two layers"),
        (lambda: P((0, np.inf), (0, 0), (0, 0)), r"a\[1\] must be a finite number, got inf"),
        (lambda: P((0, 0), (0, "x"), (0, 0)), r"b\[1\] must be a finite number"),
        (lambda: P((0, 0), (0, 0), 1.0), "c must hold one exponent per layer"),
        (lambda: P.two_layer(np.nan, 0, 0), "finite"),
        (lambda: P.mup(0), "depth must be a whole number >= 1"),
        (lambda: P.mup(2, "adamw"), "optimiser must be 'sgd' or 'adam', got 'adamw'. Did you mean 'adam'"),
        (lambda: P.mup(2).regime(None), "optimiser must be 'sgd' or 'adam', got None"),
        (lambda: P.mup(2).multiplier(3, 10), r"layer must be 0..2 at depth 2, got 3"),
        (lambda: P.mup(2).sd(-1, 10), "layer must be a whole number >= 0"),
        (lambda: P.mup(2).rate(0, 0), "n must be a whole number >= 1"),
        (lambda: P.mup(2).shift((1, 2)), r"s must be one number, or one per layer \(3\), got 2"),
        (lambda: P.mup(2).shift(np.inf), "s must be a finite number"),
        (lambda: P.mup(2).equivalent("mup"), "needs a Parametrisation"),
        (lambda: named("standart", 2), "Did you mean 'standard'"),
        (lambda: named(3, 2), "one of compromise, mean_field, mup, naive, ntk, standard, got 3"),
        (lambda: named(P.mup(2), 3), r"The network has 3 hidden layer\(s\), but .* is for 2"),
        (lambda: named("mean_field", 3), "With more layers it is 'mup'"),
        (lambda: named("naive", 2), "has one hidden layer, but the network has 2"),
        (lambda: named("naive", 1, "adam"), "defined by its rate for SGD"),
        (lambda: lattice(2, low=1, high=0), "low <= high"),
        (lambda: lattice(2, step=0), "step must be a number > 0"),
    ],
)
def test_bad_input(bad, message):
    with pytest.raises(ValueError, match=message):
        bad()
