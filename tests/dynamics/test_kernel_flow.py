"""The lazy side: flows with a frozen kernel, linearised networks, and the moving kernel beside them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import wideflow as wf

KEY = jax.random.key(1)
TS = np.array([0.0, 0.3, 1.0, 4.0])


def data(m=9, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1], rng.dirichlet(np.ones(m))


def problem(loss="squared", outputs=1, phi="erf"):
    X, y, weights = data()
    if loss == "logistic":
        y = np.sign(y)
    if outputs > 1:
        y = np.stack([y, -(y**2), X[:, 2]], 1) if loss == "squared" else (y > 0).astype(int) + (y > 1)
    dataset = wf.Dataset(X, y, weights)
    return wf.Problem(x=dataset, neuron=wf.Neuron(phi, outputs=outputs), loss=loss)


def kernel_by_hand(rho, x):
    """K = Φ1 + Φ0 ∘ G1 for erf neurons."""
    a, w = np.asarray(rho.theta[:, 0]), np.asarray(rho.theta[:, 1:])
    h = x @ w.T
    slope = 2 / np.sqrt(np.pi) * np.exp(-(h**2))
    value = np.asarray(jax.lax.erf(h))
    return (value @ value.T + (x @ x.T) * ((slope * a**2) @ slope.T)) / len(a)


def test_exact_exponential():
    """u_t = exp(−K₀ diag(ω) t)u₀ with the kernel written out by hand and SciPy's matrix exponential; new
    points follow f_t(x) = f₀(x) + k(x)ᵀΩ∫u."""
    P = problem()
    X, y, weights = data()
    rho = wf.init(P).sample(KEY, 30, alpha=2.5)
    run = wf.evolve(wf.KernelFlow(wf.Risk(P)), rho, TS)
    K, u0 = kernel_by_hand(rho, X), y - np.asarray(rho(X))
    for t, state in zip(run.t, run.states, strict=True):
        # 1e-10: the exponential of a matrix of norm 20 is known to 1e-13, u₀ is of order 1
        np.testing.assert_allclose(y - state(X), expm(-K * weights * t) @ u0, atol=1e-10)
    new = np.random.default_rng(5).normal(size=(4, 3))
    every = np.concatenate([X, new])
    cross = kernel_by_hand(rho, every)[9:, :9]
    # ∫₀ᵗ u ds = (KΩ)^{-1}(u₀ − u_t), as K is regular here (30 neurons of 4 numbers, 9 points)
    integral = np.linalg.solve(K * weights, u0 - expm(-K * weights * TS[-1]) @ u0)
    expected = rho(new) + cross @ (weights * integral)
    # 1e-7: K's smallest eigenvalue divides the rounding of the way by hand
    np.testing.assert_allclose(run.final(new), expected, atol=1e-7)


CASES = [("squared", 1), ("squared", 3), ("logistic", 1), ("cross_entropy", 3), ("huber", 1)]


@pytest.mark.parametrize(("loss", "outputs"), CASES)
def test_kernel_flow_is_the_linearised_flow(loss, outputs):
    """Two ways to one function: coefficients on the kernel matrix, and weights of the linearised network."""
    P = problem(loss, outputs)
    R, x = wf.Risk(P), np.random.default_rng(2).normal(size=(5, 3))
    net = wf.MLP(3, 2, "tanh", outputs=outputs, bias=0.2).sample(KEY, 8, "ntk", alpha=1.5)
    one = wf.evolve(wf.KernelFlow(R, rtol=1e-9), net, TS)
    other = wf.evolve(wf.Linearised(wf.GradientFlow(R, rtol=1e-9)), net, TS)
    assert one.status == other.status == "ok"
    np.testing.assert_allclose(one["risk"], other["risk"], atol=1e-7)  # the time steps' tolerance, summed
    np.testing.assert_allclose(one.final(x), other.final(x), atol=1e-6)


def test_linearised_descent_and_its_largest_step():
    """u_{k+1} = (I − ηKΩ)u_k; stable below 2/λ_max(KΩ), by the kernel's eigenvalues and by the velocity's."""
    P, (X, y, weights) = problem(), data()
    R, rho = wf.Risk(P), wf.init(P).sample(KEY, 20)
    K, u = kernel_by_hand(rho, X), y - np.asarray(rho(X))
    eta, ts = 0.05, np.array([0.0, 0.05, 0.5])
    run = wf.evolve(wf.Linearised(wf.GradientDescent(R, step=eta)), rho, ts)
    for state, k in zip(run.states, (0, 1, 10), strict=True):
        expected = np.linalg.matrix_power(np.eye(9) - eta * K * weights, k) @ u
        np.testing.assert_allclose(y - state(X), expected, atol=1e-12)
    bound = wf.KernelFlow(R).largest_stable_step(rho)
    assert bound == pytest.approx(2 / np.linalg.eigvals(K * weights).real.max(), rel=1e-10)
    # 40 power iterations: a few percent are asked for
    assert wf.largest_stable_step(R, wf.kernels.Linearisation(rho)) == pytest.approx(bound, rel=0.05)
    for factor, calm in ((0.95, True), (1.05, False)):
        step = factor * bound
        risk = wf.evolve(wf.Linearised(wf.GradientDescent(R, step=step)), rho, [0.0, 400 * step])["risk"]
        assert (risk[1] < risk[0]) == calm


def test_a_kernel_given_as_a_function():
    """From f = 0 with a Gaussian kernel, the flow ends at the kernel's interpolant."""
    X, y, _ = data(m=6)
    P = wf.Problem(x=wf.Dataset(X, y), neuron=wf.Neuron("erf"))
    run = wf.evolve(wf.KernelFlow(wf.Risk(P)), wf.kernels.KernelFunction(gaussian), [0.0, 1.0, 1e6])
    new = np.random.default_rng(3).normal(size=(4, 3))
    c = np.linalg.solve(np.asarray(gaussian(X, X)), y)
    np.testing.assert_allclose(run.final(new), gaussian(new, X) @ c, atol=1e-8)
    assert run["risk"][0] == pytest.approx(0.5 * np.mean(y**2))
    onward = wf.evolve(wf.KernelFlow(wf.Risk(P)), run.states[1], [0.0, 1e6])
    np.testing.assert_allclose(onward.final(new), run.final(new), atol=1e-8)


def gaussian(x, z):
    square = jnp.sum(jnp.asarray(x) ** 2, 1)[:, None] + jnp.sum(jnp.asarray(z) ** 2, 1) - 2 * x @ z.T
    return jnp.exp(-0.5 * square)


@pytest.mark.slow
def test_the_lazy_limit_of_a_wide_network(tmp_path):
    """At n = ∞ with the NTK's kernel, and networks of width n with their own: the rms gap over starts falls
    like n^−½, two layers, f₀ = 0 by centring."""
    X, y, _ = data(m=6)
    P = wf.Problem(x=wf.Dataset(X, y), neuron=wf.Neuron("erf"))
    family, flow, ts = wf.MLP(3, 1, "erf"), wf.KernelFlow(wf.Risk(P)), [0.0, 2.0]
    limit = wf.evolve(flow, wf.kernels.KernelFunction(wf.kernels.InfiniteKernel(family)), ts)
    new = np.random.default_rng(3).normal(size=(5, 3))
    gaps = []
    for n in (64, 1024):
        squares = []
        for seed in range(24):
            net = family.sample(jax.random.key(seed), n, "ntk", centred=True)
            squares.append(np.mean((wf.evolve(flow, net, ts).final(new) - limit.final(new)) ** 2))
        gaps.append(np.sqrt(np.mean(squares)))
    # 24 seeds: the rms is known to 1/√48 = 14 %, the slope over log 16 to ± 0.07
    assert np.log(gaps[1] / gaps[0]) / np.log(16) == pytest.approx(-0.5, abs=0.2)
    limit.save(tmp_path)
    np.testing.assert_array_equal(wf.load(tmp_path).final(new), limit.final(new))


def test_the_residual_equation_holds_with_the_moving_kernel():
    """Along the network's own flow, df/dt = K_t Ω u_t: central differences in time against the kernel."""
    P, (X, y, weights) = problem(), data()
    net = wf.MLP(3, 2, "tanh").sample(KEY, 10, "mup")
    h = 1e-3
    pair = wf.diagnostics.coupled(wf.Risk(P), net, [0.0, 0.5 - h, 0.5, 0.5 + h], rtol=1e-10)
    f = [np.asarray(state(X)) for state in pair.moving.states]
    state = pair.moving.states[2]
    K = np.asarray(wf.tangent_kernel(state, X))
    # h² f'''/6 for the difference quotient, with f of order 1 and rates of order 10
    np.testing.assert_allclose((f[3] - f[1]) / (2 * h), K @ (weights * (y - f[2])), atol=1e-3)
    assert pair.movement[0] == 0 and pair.gap[0] == 0
    assert pair.movement[2] > 0.05  # ten tanh units do learn features
    assert set(pair.layers) == {"layer 1", "layer 2", "layer 3"}
    by_hand = np.linalg.norm(K - np.asarray(wf.tangent_kernel(net, X)))
    by_hand /= np.linalg.norm(wf.tangent_kernel(net, X))
    assert pair.movement[2] == pytest.approx(by_hand, rel=1e-10)
    K0 = np.asarray(wf.tangent_kernel(net, X))
    assert pair.alignment[0] == pytest.approx(y @ K0 @ y / (np.linalg.norm(K0) * (y @ y)), rel=1e-10)
    assert "kernel movement" in pair.table()


def test_a_linear_model_keeps_its_kernel():
    """Output weights alone are trained: f is linear in them, K stays, and both runs are one."""
    P, _ = problem(), data()
    frozen_features = wf.MLP(3, 1, "erf").sample(
        KEY, 15, wf.Parametrisation((0.0, 0.5), (0.0, 0.0), (40.0, 0.0))
    )  # the first layer's rate is 15^−40: it does not move
    pair = wf.diagnostics.coupled(wf.Risk(P), frozen_features, [0.0, 2.0], rtol=1e-9)
    assert pair.movement[1] < 1e-12 and pair.gap[1] < 1e-7  # the time steps' tolerance


def test_late_times_and_equal_rows():
    """Two equal rows with different labels: their difference is never learned, and nothing blows up."""
    X, y, _ = data(m=6)
    X, y = np.concatenate([X, X[:1]]), np.concatenate([y, y[:1] + 1])
    for dtype, atol in (
        (jnp.float64, 1e-9),
        (jnp.float32, 2e-3),
    ):  # condition 1e5 times rounding, or its root
        P = wf.Problem(x=wf.Dataset(X, y), neuron=wf.Neuron("erf"))
        net = wf.MLP(3, 1, "erf").sample(KEY, 40, dtype=dtype)
        run = wf.evolve(wf.KernelFlow(wf.Risk(P)), net, [0.0, 1e9, 1e15])
        mean = np.concatenate([[y[0] + 0.5], y[1:6], [y[0] + 0.5]])
        np.testing.assert_allclose(run.states[1](X), mean, atol=atol)
        np.testing.assert_allclose(run.states[2](X), mean, atol=atol)


def test_a_large_scale_keeps_its_digits():
    """The centred linearised network does not depend on α; the flow of the network nears it like 1/α."""
    X, y, _ = data()
    P = wf.Problem(x=wf.Dataset(X, y), neuron=wf.Neuron("tanh"))
    R, family, ts = wf.Risk(P), wf.MLP(3, 1, "tanh"), [0.0, 1.0]
    start = lambda alpha, dtype: family.sample(KEY, 32, alpha=alpha, centred=True, dtype=dtype)
    step = wf.Linearised(wf.GradientDescent(R, step=0.05))
    at = {a: wf.evolve(step, start(a, jnp.float32), ts).final(X) for a in (1.0, 1e3)}
    # α times the rounding of f − f₀; with θ kept in place of θ − θ₀ it was a hundred times as much
    np.testing.assert_allclose(at[1e3], at[1.0], atol=1e-4)
    gaps = [wf.diagnostics.coupled(R, start(a, jnp.float64), ts).gap[1] for a in (1e2, 1e4)]
    assert -1.1 < np.log(gaps[1] / gaps[0]) / np.log(100) < -0.9  # corrections are of relative size 1/α


def test_a_lazy_run_is_kept(tmp_path):
    P, net = problem(), wf.MLP(3, 1, "erf").sample(KEY, 5)
    run = wf.evolve(wf.KernelFlow(wf.Risk(P)), net, TS, checkpoint=tmp_path / "a")
    again = wf.evolve(wf.KernelFlow(wf.Risk(P)), net, TS, checkpoint=tmp_path / "a")
    np.testing.assert_array_equal(run["risk"], again["risk"])
    np.testing.assert_array_equal(wf.load(tmp_path / "a").final(data()[0]), run.final(data()[0]))


GAUSSIAN = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
BAD = [
    (lambda: wf.KernelFlow(wf.Risk(GAUSSIAN, wf.ClosedForm())), "risk on data"),
    (lambda: wf.KernelFlow(wf.Risk(problem()) + wf.SecondMoment()), "alone"),
    (lambda: wf.evolve(wf.KernelFlow(wf.Risk(problem())), np.sin, TS), "KernelFlow starts from"),
    (lambda: wf.kernels.KernelFunction(3.0), "kernel"),
    (lambda: wf.kernels.KernelFunction(gaussian, x=np.zeros((2, 3))), "together"),
    (lambda: wf.evolve(wf.KernelFlow(wf.Risk(problem())), wf.kernels.KernelFunction(flat), TS), "shape"),
    (lambda: wf.kernels.Linearisation(wf.kernels.Linearisation(wf.MLP(3).sample(KEY, 4))), "linearised"),
]


def bent(x, z):
    return jnp.full((len(x), len(z)), jnp.nan)


def flat(x, z):
    return jnp.zeros(len(x))


def test_a_kernel_that_is_not_finite():
    with pytest.warns(UserWarning, match="The kernel or the start is not finite on the data"):
        run = wf.evolve(wf.KernelFlow(wf.Risk(problem())), wf.kernels.KernelFunction(bent), TS)
    assert run.status == "diverged" and len(run.t) == 0


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_input(case):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make()
