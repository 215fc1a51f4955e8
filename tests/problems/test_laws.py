"""Laws of x: moments within standard errors, quadrature exact to its degree, draws nested."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf

FULL = np.array([[1.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 0.5]])
M = 20_000


def mixture():
    return wf.Mixture([wf.Gaussian(3, FULL), wf.Gaussian(3, [1.0, 0.1, 4.0])], [2.0, -1.0], [0.3, 0.7])


def dataset(weights=None):
    rng = np.random.default_rng(0)
    return wf.Dataset(rng.normal(size=(6, 3)), rng.normal(size=6), weights)


def second_moment(law):
    if isinstance(law, wf.Mixture):
        return 0.3 * FULL + 0.7 * np.diag([1.0, 0.1, 4.0])
    if isinstance(law, wf.Dataset):
        return np.asarray(law.x).T @ (np.asarray(law.weights)[:, None] * np.asarray(law.x))
    return FULL if getattr(law, "root", None) is not None else np.eye(law.d)


def sampler(labelled=False):
    def fn(key, m):
        x = jax.random.normal(key, (m, 3))
        return (x, x[:, 0] > 0) if labelled else x

    return wf.laws.Sampler(fn, 3, labelled=labelled)


LAWS = {
    "standard": wf.Gaussian(3),
    "full covariance": wf.Gaussian(3, FULL),
    "sphere": wf.Sphere(3),
    "mixture": mixture(),
    "data": dataset(),
    "weighted data": dataset([0.0, 1.0, 2.0, 3.0, 0.0, 4.0]),
    "sampler": sampler(),
}


@pytest.mark.parametrize("name", LAWS)
def test_moments(name):
    law = LAWS[name]
    x = np.asarray(law.sample(jax.random.key(1), M)[0])
    mean = np.zeros(3)
    if isinstance(law, wf.Dataset):
        mean = np.asarray(law.weights) @ np.asarray(law.x)
    products = x[:, :, None] * x[:, None, :]
    # 4 standard errors of each sample mean, and of each mean of products
    assert np.all(np.abs(x.mean(0) - mean) <= 4 * x.std(0) / math.sqrt(M) + 1e-15)
    spread = products.std(0) / math.sqrt(M)
    assert np.all(np.abs(products.mean(0) - second_moment(law)) <= 4 * spread + 1e-15)


def test_diagonal_covariance_is_the_matrix():
    z = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    diagonal, matrix = wf.Gaussian(3, [1.0, 4.0, 9.0]), wf.Gaussian(3, np.diag([1.0, 4.0, 9.0]))
    assert np.allclose(diagonal.colour(z), z * np.array([1.0, 2.0, 3.0]), rtol=1e-15)
    assert np.allclose(diagonal.colour(z), matrix.colour(z), rtol=1e-14)


def test_singular_covariance():
    """x on a line: no draw leaves it."""
    law = wf.Gaussian(2, np.outer([1.0, 2.0], [1.0, 2.0]))
    x = np.asarray(law.sample(jax.random.key(0), 100)[0])
    # the root of an eigenvalue that is 0 up to rounding is 1e-8
    assert np.allclose(x[:, 1], 2 * x[:, 0], atol=1e-7)
    assert x[:, 0].std() > 0.5


def covariances():
    """In R⁴⁰: of full rank, of rank 3, that one rounded to single precision, variances over 40 digits."""
    rng = np.random.default_rng(0)
    wide, few = rng.normal(size=(40, 80)), rng.normal(size=(40, 3))
    spread = np.diag(10.0 ** np.linspace(-20, 20, 40))
    return {
        "full": wide @ wide.T,
        "singular": few @ few.T,
        "rounded": (few @ few.T).astype(np.float32).astype(float),
        "spread": spread,
    }


@pytest.mark.parametrize("name", covariances())
def test_the_root_of_a_covariance(name):
    """Σ = RRᵀ, and ⟨w, Rz⟩ = ⟨Rᵀw, z⟩. Entries are sums of 40 products; what rounding to 7 digits has made of
    an eigenvalue 0 is at most 40 ⋅ 6e-8 of the largest one."""
    sigma = covariances()[name]
    law, eye = wf.Gaussian(40, sigma), jnp.eye(40)
    columns = np.asarray(law.colour(eye)).T
    bound = (3e-6 if name == "rounded" else 1e-13) * np.abs(sigma).max()
    assert np.abs(columns @ columns.T - sigma).max() <= bound
    assert np.array_equal(law.adjoint(eye), columns)


@pytest.mark.parametrize("name", ["full", "singular", "spread"])
def test_no_eigenvectors_for_a_root(name, monkeypatch):
    """They take seven times the work of a Cholesky factor, and half a minute on a busy machine (d = 2000)."""
    monkeypatch.delattr(np.linalg, "eigh")
    assert wf.Gaussian(40, covariances()[name]).d == 40


@pytest.mark.parametrize("d", [2, 3, 10])
def test_sphere_radius(d):
    x = np.asarray(wf.Sphere(d).sample(jax.random.key(0), 50)[0])
    assert np.allclose(np.sum(x**2, axis=1), d, rtol=1e-14)  # rounding


def test_mixture_labels():
    x, y = mixture().sample(jax.random.key(0), M)
    share = np.mean(np.asarray(y) == 2.0)
    assert set(np.unique(y)) == {-1.0, 2.0}
    assert abs(share - 0.3) < 4 * math.sqrt(0.3 * 0.7 / M)
    wide = np.asarray(x)[np.asarray(y) == -1.0]
    # variance 4 of 14,000 normal draws, known to √(2/14000)
    assert abs(wide[:, 2].var() / 4 - 1) < 4 * math.sqrt(2 / len(wide))


def test_two_gaussians():
    law = wf.two_gaussians(4, 0.3)
    x, y = law.sample(jax.random.key(0), M)
    for sign in (1, -1):
        part = np.asarray(x)[np.asarray(y) == sign]
        assert abs(part.var() / (1 + 0.3 * sign) ** 2 - 1) < 4 * math.sqrt(2 / part.size)


# --- nested draws --------------------------------------------------------------------------------

PROBLEMS = {
    name: wf.Problem(
        x=law,
        neuron=wf.Neuron("erf"),
        target=None if law.labelled else wf.single_index("erf"),
        noise=0.0 if isinstance(law, wf.Dataset) else 0.5,
    )
    for name, law in (LAWS | {"labelled sampler": sampler(labelled=True)}).items()
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("sizes", [(5, 50), (1, 7)], ids=str)
def test_draw_i_depends_on_key_and_i_only(name, sizes):
    """A short sample is the beginning of a long one, labels and their noise included."""
    problem, key = PROBLEMS[name], jax.random.key(3)
    short, long = (problem.sample(key, m) for m in sizes)
    assert np.array_equal(short.x, long.x[: sizes[0]])
    assert np.array_equal(short.y, long.y[: sizes[0]])
    assert not np.array_equal(short.x, problem.sample(jax.random.key(4), sizes[0]).x) or sizes[0] == 1


def test_noise_is_drawn_apart_from_x():
    quiet, noisy = (
        wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf"), noise=noise)
        for noise in (0.0, 0.5)
    )
    one, other = (p.sample(jax.random.key(0), M) for p in (quiet, noisy))
    noise = np.asarray(other.y - one.y)
    assert np.array_equal(one.x, other.x)
    assert abs(noise.std() - 0.5) < 4 * 0.5 / math.sqrt(2 * M)
    for column in np.asarray(one.x).T:
        assert abs(np.corrcoef(noise, column)[0, 1]) < 4 / math.sqrt(M)


# --- quadrature ----------------------------------------------------------------------------------


def gaussian_moment(powers):
    return math.prod(0 if k % 2 else math.prod(range(k - 1, 0, -2)) for k in powers)


def sphere_moment(powers):
    """E Π x_i^k_i on √d·S^{d−1}: d^{K/2} Γ(d/2) Π Γ((k_i+1)/2) / (Γ((K+d)/2) π^{d/2})."""
    if any(k % 2 for k in powers):
        return 0.0
    d, total = len(powers), sum(powers)
    gammas = math.prod(math.gamma((k + 1) / 2) for k in powers)
    return d ** (total / 2) * math.gamma(d / 2) * gammas / (math.gamma((total + d) / 2) * math.pi ** (d / 2))


def mean_of(rule, powers):
    x, _, weights = rule
    return np.sum(weights * np.prod(x ** np.array(powers), axis=1))


@pytest.mark.parametrize(("d", "order"), [(1, 1), (1, 6), (2, 4), (3, 3)])
def test_gaussian_rule_is_exact_to_its_degree(d, order):
    """Degree 2·order − 1 in each coordinate, and not one further."""
    rule = wf.Gaussian(d).rule(order)
    assert len(rule[2]) == order**d and np.isclose(rule[2].sum(), 1, rtol=1e-15)
    for powers in itertools.product(range(2 * order), repeat=d):
        exact = gaussian_moment(powers)
        # rounding, relative to the same moment of absolute values
        scale = mean_of((np.abs(rule[0]), None, rule[2]), powers)
        assert mean_of(rule, powers) == pytest.approx(exact, abs=1e-12 * (1 + scale))
    beyond = (2 * order,) + (0,) * (d - 1)
    assert abs(mean_of(rule, beyond) - gaussian_moment(beyond)) > 0.5


@pytest.mark.parametrize(("d", "order"), [(2, 1), (2, 5), (2, 8), (3, 1), (3, 4), (3, 7)])
def test_sphere_rule_is_exact_to_its_degree(d, order):
    """Polynomials of degree below the order."""
    rule = wf.Sphere(d).rule(order)
    assert np.allclose(np.sum(rule[0] ** 2, axis=1), d) and np.isclose(rule[2].sum(), 1, rtol=1e-15)
    for powers in itertools.product(range(order), repeat=d):
        if sum(powers) < order:
            assert mean_of(rule, powers) == pytest.approx(sphere_moment(powers), abs=1e-12 * d**order)
    # equispaced angles on the circle miss Re (x_1 + i x_2)^order, the first they cannot see
    angle = np.arctan2(rule[0][:, 1], rule[0][:, 0])
    if d == 2:
        assert abs(np.sum(rule[2] * np.cos(order * angle))) > 0.9


def test_coloured_rule():
    """E x x' = Σ and E (x_1x_2)² = Σ_11Σ_22 + 2Σ_12² (Isserlis), by order 3."""
    x, _, weights = wf.Gaussian(3, FULL).rule(3)
    assert np.allclose(x.T @ (weights[:, None] * x), FULL, atol=1e-14)
    isserlis = FULL[0, 0] * FULL[1, 1] + 2 * FULL[0, 1] ** 2
    assert np.sum(weights * x[:, 0] ** 2 * x[:, 1] ** 2) == pytest.approx(isserlis, rel=1e-13)


def test_mixture_rule():
    x, y, weights = mixture().rule(3)
    assert weights.sum() == pytest.approx(1, rel=1e-14)
    assert np.sum(weights * y) == pytest.approx(0.3 * 2.0 - 0.7, rel=1e-14)
    assert np.allclose(x.T @ (weights[:, None] * x), second_moment(mixture()), atol=1e-13)
    # labels and inputs go together: E y x_3² = 0.3·2·0.5 − 0.7·4
    assert np.sum(weights * y * x[:, 2] ** 2) == pytest.approx(0.3 - 2.8, rel=1e-13)


def test_problem_quadrature_is_without_label_noise():
    problem = PROBLEMS["standard"]
    nodes = problem.quadrature(4)
    assert nodes.m == 64 and np.array_equal(nodes.y, problem.target(nodes.x))
    assert PROBLEMS["data"].quadrature() is None and PROBLEMS["sampler"].quadrature() is None


# --- data sets -----------------------------------------------------------------------------------


def test_dataset_weights_are_scaled_to_one():
    law = dataset([0.0, 1.0, 2.0, 3.0, 0.0, 4.0])
    assert np.allclose(law.weights, np.array([0, 1, 2, 3, 0, 4]) / 10, rtol=1e-15)
    assert not law.equal and dataset().equal and np.allclose(dataset().weights, 1 / 6)
    rows = np.asarray(law.sample(jax.random.key(0), M)[1])
    shares = np.array([(rows == y).mean() for y in np.asarray(law.y)])
    errors = np.sqrt(law.weights * (1 - law.weights) / M)
    assert np.all(np.abs(shares - law.weights) <= 4 * errors) and shares[0] == shares[4] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_dataset_dtypes(dtype):
    """Floats keep their type, whole numbers become floats; labels in unsigned bytes can be negated."""
    law = wf.Dataset(np.arange(6, dtype=dtype).reshape(3, 2), np.array([1, 1, 1], dtype))
    assert law.x.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert float((-law.y * 1.5)[0]) == -1.5
    assert law.weights.dtype == law.x.dtype


def test_sampler():
    assert not sampler().labelled and sampler(labelled=True).labelled
    nodes = PROBLEMS["labelled sampler"].sample(jax.random.key(0), 10)
    assert nodes.y.shape == (10,)


def test_a_covariance_in_place_of_the_dimension():
    with pytest.raises(ValueError, match=r"got an array of shape \(3, 3\).*covariance=C"):
        wf.Gaussian(np.eye(3))


def test_coordinates_in_very_different_units():
    sigma = np.array([[1e16, 0.0, 0.0], [0.0, 1.0, 1.5], [0.0, 1.5, 4.0]])
    root = np.asarray(wf.Gaussian(3, sigma).root)
    np.testing.assert_allclose(root @ root.T, sigma, rtol=1e-14)
