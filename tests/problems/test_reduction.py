"""The reduced problem against the one it came from: laws, neurons, velocities, noise."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy.special import betainc, ndtr

import wideflow as wf
from wideflow.problems import sphere_mean as sphere_mean_module
from wideflow.problems.activations import Activation, activation
from wideflow.problems.gauss import gauss_legendre
from wideflow.problems.neurons import Ridge
from wideflow.problems.sphere_mean import sphere_mean

RAMPS = activation("piecewise_linear", knots=((0.5, -2.5), (1.5, 7.5)))


def single_index(link="erf", d=5, direction=None, law=None, **neuron):
    law = wf.Gaussian(d) if law is None else law
    return wf.Problem(x=law, target=wf.single_index(link, direction), neuron=wf.Neuron(link, **neuron))


# --- the mean over a sphere ---------------------------------------------------------------------


def exact_mean(phi, h, rho, dim):
    """By adaptive quadrature in the angle, cut at the kinks."""
    root = 1.0 if math.isinf(dim) else math.sqrt(dim)
    end = 12.0 if math.isinf(dim) else min(math.pi / 2, 12 / root)
    point = (lambda z: z) if math.isinf(dim) else (lambda z: root * math.sin(z))
    mass = (lambda z: math.exp(-z * z / 2)) if math.isinf(dim) else (lambda z: math.cos(z) ** (dim - 2))
    cuts = [(k - h) / rho / root for k in phi.kinks]
    cuts = cuts if math.isinf(dim) else [math.asin(c) for c in cuts if abs(c) < 1]
    cuts = [c for c in cuts if abs(c) < end]
    integral = lambda f: integrate.quad(f, -end, end, points=[0.0, *cuts], epsabs=1e-13, limit=400)[0]
    return integral(lambda z: float(phi(jnp.asarray(h + rho * point(z)))) * mass(z)) / integral(mass)


@pytest.mark.parametrize("dim", [2, 3, 49, 10_000, math.inf])
@pytest.mark.parametrize("phi", ["erf", "relu", RAMPS], ids=["erf", "relu", "ramps"])
def test_sphere_mean(phi, dim):
    phi = activation(phi)
    h, rho = jnp.array([0.3, -1.2, 0.0]), jnp.array([0.8, -1.1, 0.4])
    found = sphere_mean(phi, h, rho, dim, 48)
    wanted = [exact_mean(phi, float(a), float(b), dim) for a, b in zip(h, rho, strict=True)]
    assert np.allclose(found, wanted, rtol=0, atol=2e-11)  # 48 Hermite nodes give erf 11 digits here


@pytest.mark.parametrize("dim", [2, 49, math.inf])
@pytest.mark.parametrize("phi", ["tanh", "relu", RAMPS], ids=["tanh", "relu", "ramps"])
def test_sphere_mean_derivatives(phi, dim):
    """Against central differences, whose error is 1e-10 (step² times a third derivative, and rounding)."""
    phi, step = activation(phi), 1e-5
    h, rho = jnp.array([0.3, -1.2]), jnp.array([0.8, -1.1])
    mean = lambda h, rho: sphere_mean(phi, h, rho, dim, 32)
    by_h, by_rho = jax.grad(lambda h, rho: jnp.sum(mean(h, rho)), argnums=(0, 1))(h, rho)
    assert np.allclose(by_h, (mean(h + step, rho) - mean(h - step, rho)) / (2 * step), atol=1e-8)
    assert np.allclose(by_rho, (mean(h, rho + step) - mean(h, rho - step)) / (2 * step), atol=1e-8)


def test_a_broken_line_is_the_cut_rule():
    """The closed way for piecewise linear φ against the cut quadrature for any φ with kinks."""
    same = Activation("my ramps", RAMPS.fn, kinks=RAMPS.kinks)
    h, rho = jnp.linspace(-3, 3, 13), jnp.linspace(0.2, 2, 13)
    for dim in (3, 40, math.inf):
        assert np.allclose(
            sphere_mean(RAMPS, h, rho, dim, 40), sphere_mean(same, h, rho, dim, 40), atol=1e-11
        )


@pytest.mark.parametrize("dim", [2, 3, 7, 40, 1000, math.inf])
def test_distribution_of_one_coordinate(dim):
    """P(u < c) as a series, against the incomplete beta function and the normal distribution function."""
    reach = sphere_mean_module.reach_of(dim)
    angle = np.linspace(-reach, reach, 501)
    found = sphere_mean_module._distribution(jnp.asarray(angle), dim)
    sine = np.sin(angle / math.sqrt(dim)) if math.isfinite(dim) else angle
    exact = ndtr(angle)
    if math.isfinite(dim):
        exact = 0.5 + 0.5 * np.sign(sine) * betainc(0.5, (dim - 1) / 2, sine**2)
    # cos^{dim−2} loses a digit for each of dim
    assert np.max(np.abs(found - exact)) < 1e-14 * (1 + dim / 50 if math.isfinite(dim) else 1)


def test_a_function_that_is_only_called_relu():
    """A closed form is chosen for the library's own activations, not for a name."""
    fn = lambda h: jnp.maximum(h, 0.0) ** 2
    named, other = (Activation(name, fn, kinks=(0.0,)) for name in ("relu", "ramp squared"))
    h, rho = jnp.array([0.3, -1.0]), jnp.array([0.7, 1.2])
    assert np.allclose(sphere_mean(named, h, rho, 9, 24), sphere_mean(other, h, rho, 9, 24), atol=1e-14)


def test_no_spread_is_the_activation():
    h = jnp.array([-1.0, 0.2, 1.0, 2.0])
    for phi in ("relu", "erf", RAMPS):
        phi = activation(phi)
        assert np.allclose(sphere_mean(phi, h, jnp.zeros(4), 7, 16), phi(h), atol=1e-14)


# --- laws of (x_S, q) ---------------------------------------------------------------------------

PROBLEMS = {
    "gaussian": single_index(d=5),
    "gaussian, tilted": single_index(d=6, direction=np.array([1.0, 2.0, 0.0, 0.0, -1.0, 0.5])),
    "gaussian, scaled": single_index(d=5, law=wf.Gaussian(5, 2.25)),
    "gaussian, two variances": single_index(d=7, law=wf.Gaussian(7, [1.0] * 3 + [0.25] * 4)),
    "sphere": single_index(law=wf.Sphere(6)),
    "two directions": wf.Problem(
        x=wf.Gaussian(6), target=wf.multi_index(lambda s: s[0] * s[1], 2), neuron=wf.Neuron("tanh")
    ),
    "two directions, sphere": wf.Problem(
        x=wf.Sphere(7), target=wf.multi_index(lambda s: s[0] * s[1], 2), neuron=wf.Neuron("tanh")
    ),
    "teacher": wf.Problem(
        x=wf.Gaussian(6), target=wf.teacher(np.outer([0.4, 0.8], [1, 0, 1, 0, 0, 0]), link="erf"),
        neuron=wf.Neuron("erf", bias=True),
    ),
    "two gaussians": wf.Problem(x=wf.two_gaussians(8, 0.4), neuron=wf.Neuron(RAMPS, output="unit")),
    "subspace": wf.Problem(x=wf.two_gaussians(7, 0.4, subspace=3), neuron=wf.Neuron("tanh")),
}  # fmt: skip
SHAPES = {"two gaussians": (0, 1), "subspace": (0, 2), "gaussian, two variances": (1, 2)}
ORDER = {1: 48, 2: 48, 3: 20}  # of the product rule, by its dimension
SHAPES |= {"two directions": (2, 1), "two directions, sphere": (2, 1)}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_left(name):
    """(k, blocks) is what the symmetry says, and dimensions add up."""
    problem = PROBLEMS[name]
    symmetry, (k, blocks) = problem.symmetry(), SHAPES.get(name, (1, 1))
    assert (symmetry.k, len(symmetry.blocks)) == (k, blocks)
    assert symmetry.k + sum(symmetry.blocks) == problem.d
    assert problem.reduced().d == k + blocks


@pytest.mark.parametrize("name", PROBLEMS)
def test_risk_and_labels_agree_with_the_unreduced_problem(name):
    """Monte-Carlo over (x, y) and over random lifts: 4 standard errors of the difference."""
    problem = PROBLEMS[name]
    reduced = problem.reduced()
    rho = wf.init(problem, w=1.5).reduced().sample(jax.random.key(0), 5)
    exact = float(wf.Risk(reduced, wf.Quadrature(ORDER[reduced.d])).value(rho))
    # f of the lifted measure is the mean over rotations: many copies, whose own chance adds to the bar
    risks = [
        float(wf.Risk(problem, wf.Sample(4000, seed)).value(wf.lift(problem, rho, jax.random.key(seed), 200)))
        for seed in range(6)
    ]
    bar = np.std(risks, ddof=1) / math.sqrt(6)
    # a finite number of copies c raises the risk by (variance over rotations)/(2c n), below 1e-2 here
    assert abs(np.mean(risks) - exact) < 4 * bar + 0.01 * exact


@pytest.mark.parametrize("name", PROBLEMS)
def test_rule_and_sample_are_one_law(name):
    """Moments of (x_S, q, y) by the rule, against a sample, in standard errors."""
    reduced = PROBLEMS[name].reduced()
    rule, drawn = reduced.quadrature(ORDER[reduced.d]), reduced.sample(jax.random.key(1), 20_000)
    columns = lambda n: np.concatenate([n.x, n.x**2, n.x[:, :1] * n.x[:, -1:], (n.y * n.y)[:, None]], axis=1)
    by_rule, by_sample = np.asarray(rule.weights) @ columns(rule), columns(drawn)
    bar = by_sample.std(axis=0) / math.sqrt(drawn.m)
    assert np.all(np.abs(by_rule - by_sample.mean(axis=0)) <= 4.5 * bar + 1e-12)  # 60 numbers in all


def test_infinite_dimension_is_the_limit_of_finite_ones():
    """R_d(ρ̄) = R_∞(ρ̄) + c/d: the slope of the difference is −1."""
    theta = np.array([[1.0, 0.4, 0.9], [-0.7, 0.1, 1.2]])
    value = lambda d: float(
        wf.Risk(single_index("tanh", d).reduced(), wf.Quadrature(60)).value(
            wf.Particles(theta, neuron=single_index("tanh", d).reduced(60).neuron)
        )
    )
    dims = np.array([50, 100, 200, 400])
    gaps = [abs(value(int(d)) - value(math.inf)) for d in dims]
    assert wf.diagnostics.fit_slope(dims, gaps, 0.01 * np.array(gaps)).value == pytest.approx(-1, abs=0.05)


# --- velocities ---------------------------------------------------------------------------------


def zonal_lift(problem, rho, nodes=80):
    """Neurons in R^d whose second direction is aligned with the axis e of the block: θ̄_j in the directions
    c_l e ± √(1 − c_l²) e', with Gauss nodes in the angle of c_l, is an exact mean over rotations for
    whatever is seen from a point along e. The first n neurons lie along e and weigh nothing."""
    symmetry, d = problem.symmetry(), problem.d
    signal, k = np.asarray(symmetry.signal), symmetry.k
    dim = symmetry.blocks[0]
    basis = np.linalg.svd(np.concatenate([signal, np.zeros((1, d))]))[2][k:]  # of the block
    angle, w = gauss_legendre(nodes)  # in the angle, in which a relu's dual is smooth at 0 too
    angle = 0.5 * math.pi * (1 + angle)
    c, w = np.cos(angle), w * np.sin(angle) ** (dim - 2)
    w = w / w.sum()
    along = lambda c, s: c[:, None] * basis[0] + s[:, None] * basis[1]
    directions = np.concatenate([along(c, np.sqrt(1 - c**2)), along(c, -np.sqrt(1 - c**2))])
    mass = np.concatenate([w, w]) / 2
    parts = rho.parts
    s, r = np.asarray(parts.w[:k]).T @ signal, np.asarray(parts.w[k])
    far = (s[:, None] + r[:, None, None] * directions).reshape(-1, d)
    near = s + r[:, None] * basis[0]
    repeat = lambda v: None if v is None else np.concatenate([v, np.repeat(v, len(mass))])
    theta = problem.neuron.pack(
        Ridge(repeat(parts.a), jnp.asarray(np.concatenate([near, far]).T), repeat(parts.b))
    )
    weights = np.concatenate([np.zeros(rho.n), np.outer(rho.weights, mass).ravel()])
    return wf.Particles(theta, weights, rho.alpha, problem.neuron), signal, basis[0]


@pytest.mark.parametrize("alpha", [1.0, 3.0])
@pytest.mark.parametrize(("link", "d"), [("erf", 5), ("erf", 50), ("relu", 5), ("relu", 50)])
def test_unreduced_velocity_of_lifted_particles(link, d, alpha):
    """The closed form over pairs in R^d, and the reduced quadrature: 1e-10, two ways that share nothing."""
    problem = single_index(link, d, np.arange(1.0, d + 1))
    reduced = problem.reduced(96)
    start = wf.init(problem).reduced().sample(jax.random.key(2), 4, alpha)
    rho = wf.Particles(start.theta, alpha=alpha, neuron=reduced.neuron)
    lifted, signal, axis = zonal_lift(problem, rho)
    full = np.asarray(wf.Risk(problem, wf.ClosedForm()).velocity(lifted))[:4]
    few = np.asarray(wf.Risk(reduced, wf.Quadrature(110)).velocity(rho))
    # in few dimensions E_u relu is not smooth in x1 where the kink leaves the sphere, (1 − u²)^½ at d = 5:
    # the rule in x1 is then of algebraic order, and 110 nodes give 5 digits
    tolerance = 1e-5 if (link, d) == ("relu", 5) else 1e-10
    assert np.abs(full[:, 0] - few[:, 0]).max() < tolerance
    assert np.abs(full[:, 1:] @ signal[0] - few[:, 1]).max() < tolerance
    assert np.abs(full[:, 1:] @ axis - few[:, 2]).max() < tolerance
    rest = full[:, 1:] - np.outer(full[:, 1:] @ signal[0], signal[0]) - np.outer(full[:, 1:] @ axis, axis)
    assert np.abs(rest).max() < tolerance


@pytest.mark.slow
def test_velocity_is_the_gradient_of_psi():
    """In every reduced problem, by automatic differentiation of Ψ; with frozen and unit outputs too."""
    chosen = ("gaussian", "two directions, sphere", "two gaussians", "subspace")
    problems = [PROBLEMS[name] for name in chosen]
    problems += [single_index("relu", 6, bias=True), single_index("erf", 6, output="frozen")]
    for problem in problems:
        reduced = problem.reduced(16)
        start = wf.init(problem, **({"b": 0.3} if problem.neuron.bias else {})).reduced()
        rho = wf.Particles(start.sample(jax.random.key(3), 4).theta, alpha=2.0, neuron=reduced.neuron)
        risk = wf.Risk(reduced, wf.Quadrature(12))
        slope = jax.grad(lambda t, risk=risk, rho=rho: jnp.sum(risk.psi(t, rho)))(rho.theta)
        wanted = -np.asarray(slope) / 2.0
        if problem.neuron.output == "frozen":
            wanted[:, 0] = 0
        assert np.allclose(risk.velocity(rho), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in PROBLEMS if "sphere" not in n])
def test_lift_and_reduce_are_inverse(name):
    problem = PROBLEMS[name]
    rho = wf.init(problem).reduced().sample(jax.random.key(4), 6)
    back = wf.reduce(problem, wf.lift(problem, rho, jax.random.key(5), copies=3))
    assert np.allclose(back.theta, np.repeat(rho.theta, 3, axis=0), rtol=1e-12, atol=1e-13)
    assert np.allclose(back.weights, np.repeat(rho.weights, 3) / 3)


# --- what has no symmetry -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (wf.Problem(x=wf.Gaussian(5), target=lambda x: x[0], neuron=wf.Neuron("erf")), "multi_index"),
        (single_index("erf", 2), "in 1 of 2 dimensions"),
        (wf.Problem(x=wf.Gaussian(3), target=wf.multi_index(lambda s: s[0], 2), neuron=wf.Neuron("erf")),
         "in 2 of 3 dimensions"),
        (wf.Problem(x=wf.Dataset(np.eye(4), np.ones(4)), neuron=wf.Neuron("erf")), "Dataset"),
        (wf.Problem(x=wf.Gaussian(4), target=lambda x: x[0],
                    neuron=wf.CustomNeuron(lambda x, t: t @ x, dim=4)), "a φ"),
        (single_index("erf", 4, law=wf.Gaussian(4, [1.0, 2.0, 3.0, 4.0])), "one eigenvalue"),
    ],
    ids=["any function", "d = k + 1", "k = 2, d = 3", "data", "own neuron", "anisotropic"],
)  # fmt: skip
def test_no_symmetry_says_why(problem, says):
    with pytest.raises(wf.types.NoSymmetryError, match=says):
        problem.reduced()


def test_covariances_without_common_axes():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    skew = turn @ np.diag([1.0, 2.0, 3.0, 3.0]) @ turn.T
    law = wf.Mixture([wf.Gaussian(4, [4.0, 1, 1, 1]), wf.Gaussian(4, (skew + skew.T) / 2)], [1.0, -1.0])
    with pytest.raises(wf.types.NoSymmetryError, match="common eigenvectors"):
        wf.Problem(x=law, neuron=wf.Neuron("erf")).reduced()


def test_a_law_of_w_that_is_not_invariant():
    for w in (wf.laws.Uniform(), wf.laws.Normal(1.0, 1.0), wf.laws.Rademacher(0.3)):
        with pytest.raises(wf.types.NoSymmetryError, match="rotation invariant"):
            wf.init(single_index("erf", 5), w=w).reduced()


def test_infinite_dimension_is_only_seen_reduced():
    problem = single_index("erf", math.inf)
    for call in (
        lambda: problem.sample(jax.random.key(0), 3),
        lambda: wf.init(problem).sample(jax.random.key(0), 3),
        lambda: wf.init(problem).nodes(3),
    ):
        with pytest.raises(ValueError, match="reduced"):
            call()
    with pytest.raises(ValueError, match="first axes"):
        single_index("erf", math.inf, direction=np.ones(3))
    with pytest.raises(ValueError, match="in proportion to d"):
        wf.Langevin(wf.Risk(problem.reduced()), 0.1, beta=10.0)
    with pytest.raises(ValueError, match="finite d"):
        rho = wf.init(problem).reduced().sample(jax.random.key(0), 3)
        wf.lift(problem, rho, jax.random.key(0))
