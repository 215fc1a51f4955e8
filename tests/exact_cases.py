"""Problems whose gradient flow is known exactly, each as (risk, start, exact risk at time t, …)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import wideflow as wf


@dataclass(frozen=True)
class Exact:
    """A start and, at every t, the exact risk and any further exact quantity of the particles."""

    name: str
    functional: Any
    start: wf.Particles
    risk: Any  # t → exact risk
    quantity: Any  # particles → array
    exact: Any  # t → its exact value


def _ode(field, start, t):
    """A reference trajectory by SciPy's DOP853 at 1e-13: another code and another method."""
    start = np.asarray(start, float)
    if t == 0:
        return start
    flat = lambda _, v: np.asarray(field(v.reshape(start.shape))).ravel()
    end = solve_ivp(flat, (0, t), start.ravel(), method="DOP853", rtol=1e-13, atol=1e-15)
    return end.y[:, -1].reshape(start.shape)


def linear_neuron(d=4, n=7, decay=0.0, alpha=1.0, seed=0):
    """Case 1: σ* = ⟨θ, x⟩, y = ⟨w*, x⟩. With f = α⟨m, x⟩, m = mean θ_j, the flow is
    θ̇_j = (w* − αm)/α − λθ_j, so ṁ = w*/α − (1 + λ)m and θ_j − m decays like e^{−λt}."""
    rng = np.random.default_rng(seed)
    w_star, theta = rng.normal(size=d), rng.normal(size=(n, d))
    problem = wf.Problem(
        x=wf.Gaussian(d),
        target=wf.teacher(w_star[None], a=[1.0], link="identity"),
        neuron=wf.Neuron("identity", output="unit"),
    )
    functional = wf.Risk(problem) + decay * wf.SecondMoment() if decay else wf.Risk(problem)
    m0, fixed = theta.mean(0), w_star / alpha / (1 + decay)

    def exact(t):
        m = fixed + (m0 - fixed) * np.exp(-(1 + decay) * t)
        return m + (theta - m0) * np.exp(-decay * t)

    risk = lambda t: 0.5 * np.sum((w_star - alpha * exact(t).mean(0)) ** 2)
    start = wf.Particles(theta, alpha=alpha, neuron=problem.neuron)
    return Exact(
        f"linear neuron, decay {decay}, alpha {alpha}", functional, start, risk, lambda p: p.theta, exact
    )


def two_layer_linear(d=3, a2=0.7, s2=0.4):
    """Case 2: σ* = a⟨w, x⟩, y = x_1, with E a² = A, E ww' = S·I and E aw = 0 exactly, by a start
    that is symmetric under signs: τ̇ = 1 − ½(A + S) sinh 2τ, R = ½(1 − ½(A + S) sinh 2τ)²."""
    signs = np.array([[s, r] for s in (1, -1) for r in (1, -1)])
    rows = [[s * np.sqrt(a2), *(r * np.sqrt(s2 * d) * np.eye(d)[i])] for i in range(d) for s, r in signs]
    problem = wf.Problem(x=wf.Gaussian(d), target=wf.single_index("identity"), neuron=wf.Neuron("identity"))
    c = 0.5 * (a2 + s2)

    def exact(t):
        tau = _ode(lambda tau: 1 - c * np.sinh(2 * tau), np.zeros(1), t)[0]
        return 0.5 * (1 - c * np.sinh(2 * tau)) ** 2

    risk = wf.Risk(problem)
    start = wf.Particles(np.array(rows), neuron=problem.neuron)
    return Exact("two-layer linear", risk, start, exact, risk.value, exact)


def two_layer_linear_finite(d=3, n=5, seed=1):
    """Case 2 at any finite n: M = mean (a, w)(a, w)' obeys Ṁ = GM + MG with g = w* − mean(aw)."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n, d + 1))
    problem = wf.Problem(x=wf.Gaussian(d), target=wf.single_index("identity"), neuron=wf.Neuron("identity"))

    def field(moment):
        g = np.eye(d)[0] - moment[0, 1:]
        matrix = np.block([[np.zeros((1, 1)), g[None]], [g[:, None], np.zeros((d, d))]])
        return matrix @ moment + moment @ matrix

    exact = lambda t: _ode(field, theta.T @ theta / n, t)
    risk = lambda t: 0.5 * np.sum((np.eye(d)[0] - exact(t)[0, 1:]) ** 2)
    moment = lambda p: p.theta.T @ (p.weights[:, None] * p.theta)
    start = wf.Particles(theta, neuron=problem.neuron)
    return Exact("two-layer linear, finite n", wf.Risk(problem), start, risk, moment, exact)


def quadratic(d=3, n=6, seed=2):
    """Case 3: σ* = ⟨w, x⟩², y = x'M*x: Ṁ = −(GM + MG), G = 2(2Δ + tr(Δ)I), Δ = M − M*, and
    R = ½(2|Δ|² + (tr Δ)²)."""
    rng = np.random.default_rng(seed)
    teacher, theta = rng.normal(size=(2, d)) / d, rng.normal(size=(n, d)) / 2
    m_star = teacher.T @ teacher
    problem = wf.Problem(
        x=wf.Gaussian(d),
        target=wf.teacher(teacher, a=[1.0, 1.0], link="square"),
        neuron=wf.Neuron("square", output="unit"),
    )

    def field(moment):
        delta = moment - m_star
        g = 2 * (2 * delta + np.trace(delta) * np.eye(d))
        return -(g @ moment + moment @ g)

    def risk(t):
        delta = exact(t) - m_star
        return 0.5 * (2 * np.sum(delta**2) + np.trace(delta) ** 2)

    exact = lambda t: _ode(field, theta.T @ theta / n, t)
    moment = lambda p: p.theta.T @ (p.weights[:, None] * p.theta)
    start = wf.Particles(theta, neuron=problem.neuron)
    return Exact("quadratic", wf.Risk(problem), start, risk, moment, exact)


CASES = [
    linear_neuron(),
    linear_neuron(decay=0.3),
    linear_neuron(decay=0.3, alpha=3.0),
    two_layer_linear(),
    two_layer_linear_finite(),
    quadratic(),
]


def erf_problem(d=5, **kwargs):
    """Learning one neuron: erf link and erf neuron."""
    return wf.Problem(x=wf.Gaussian(d), target=wf.single_index("erf"), neuron=wf.Neuron("erf"), **kwargs)


def slope(x, y, sd=None):
    """Least-squares slope of log y on log x; with standard errors of y also the slope's own."""
    x, logs = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    weights = np.ones_like(x) if sd is None else (np.asarray(y) / np.asarray(sd)) ** 2
    centred = x - np.average(x, weights=weights)
    fitted = np.sum(weights * centred * logs) / np.sum(weights * centred**2)
    return (fitted, 1 / np.sqrt(np.sum(weights * centred**2))) if sd is not None else fitted


def gaussian_jko_step(mean, sd, w_star, step, decay=0.0, beta=np.inf):
    """One minimising movement of case 1 from N(mean, sd²) (independent coordinates), known in closed form.

    For ρ⁺ = N(m, diag s²) and ρ = N(m_k, diag s_k²), W2² = |m − m_k|² + Σ(s_i − s_k,i)², and
    F = ½|w* − m|² + (λ/2)(|m|² + Σs_i²) − β⁻¹Σ log s_i + const. The minimum has
    m = (m_k + τw*)/(1 + τ(1 + λ)) and λs − 1/(βs) + (s − s_k)/τ = 0, so (1 + τλ)s² − s_k s − τ/β = 0, s > 0.
    No other law is better: with T affine from ρ⁺ to ρ, ∇(Ψ_λ + β⁻¹ log ρ⁺)(θ) = (T(θ) − θ)/τ for all θ."""
    mean, sd, w_star = (np.asarray(v, float) for v in (mean, sd, w_star))
    shrink = 1 + step * decay
    spread = (sd + np.sqrt(sd**2 + 4 * shrink * step / beta)) / (2 * shrink)
    return (mean + step * w_star) / (1 + step * (1 + decay)), spread


def gaussian_flow(mean, sd, w_star, t, decay, beta):
    """Mean and standard deviation of case 1's flow from N(mean, sd²), decay > 0."""
    fixed, fades = w_star / (1 + decay), np.exp(-2 * decay * t)
    m = fixed + (mean - fixed) * np.exp(-(1 + decay) * t)
    return m, np.sqrt(sd**2 * fades + (1 - fades) / (beta * decay))
