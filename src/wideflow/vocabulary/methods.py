"""Dynamics: one row each."""

import enum
import math
from dataclasses import dataclass

from .optimisers import OPTIMISERS
from .word import Kind, Option, Vocabulary, Word


class Moves(enum.Enum):
    """What a method moves, hence which starts it takes and which fields an entry of it has."""

    NETWORK = "neurons or a deeper network"
    PARTICLES = "neurons"
    MEASURE = "neurons, or a density on a grid"
    DENSITY = "a density on a grid"
    LAW = "a law of neurons"  # infinitely many


@dataclass(frozen=True)
class Method(Word):
    """A row of `dynamics`.

    - `moves`: which states; `called` what a report calls it.
    - `deep`: the formula for networks with layers W_l at rates c_l.
    - `noise`: the terms of its formulas that vanish at β = ∞; `cold` what it is called then.
    - `descends`: whether its limit at infinite width is the mean-field limit; `frozen`, whether its kernel is
      that of the start; `relabels`, whether particle j may become a copy of another.
    - `padded`: whether particles of weight 0 change nothing: the others meet in f alone, and steps do not
      depend on how many there are. Widths then share programs."""

    moves: Moves = Moves.NETWORK
    called: str = ""
    deep: str = ""
    noise: tuple[str, ...] = ()
    cold: str = ""
    descends: bool = False
    frozen: bool = False
    relabels: bool = False
    padded: bool = False

    @property
    def doc(self) -> str:
        return f"{self.called[:1].upper()}{self.called[1:]}. {super().doc}"


_STEP = Option("step", Kind.POSITIVE, "step size η; time is t = kη", symbol="η")
_BATCH = Option("batch", Kind.COUNT, "rows per step; the full velocity by default", None, "batch")
_PASS = Option("one_pass", Kind.FLAG, "fresh data each step; the default for a law of x", None)
_DECAY = Option("decay", Kind.NOT_NEGATIVE, "weight decay λ", 0.0, "λ")
_BETA = Option("beta", Kind.TEMPERATURE, "inverse temperature β; inf is no noise", math.inf, "β")
_REACTION = Option("reaction", Kind.NOT_NEGATIVE, "rate κ at which masses move", 1.0, "κ")
_DIFFUSION = r"\partial_t \rho = \nabla \cdot (\rho \nabla \Psi_\lambda)"
_NOISE = r" + \beta^{-1} \Delta \rho"
_REACT = r"\kappa \rho \left( \Psi_\lambda - \textstyle\int \Psi_\lambda d\rho \right)"

METHODS = Vocabulary(
    "method",
    Method(
        "limit",
        "mean_field.limit.limit",
        "∂tρ = ∇·(ρ∇Ψ(θ; ρ))",
        r"\partial_t \rho_t = \nabla \cdot \left( \rho_t \nabla \Psi(\theta; \rho_t) \right)",
        (
            Option("tol", Kind.POSITIVE, "absolute tolerance of the risk", 1e-6, "tolerance"),
            Option("alpha", Kind.POSITIVE, "scale α of the output", 1.0),
            Option("probes", Kind.INDEX, "points carried along for pictures", 256),
            Option("work", Kind.POSITIVE, "most evaluations of φ for one velocity", 3e8),
        ),
        sources=("mei2018", "chizat2018"),
        moves=Moves.LAW,
        called="the mean-field limit: infinitely many neurons and samples",
    ),
    Method(
        "gradient_flow",
        "dynamics.flow.GradientFlow",
        "θ̇_j = −(1/α)∇Ψ(θ_j; ρ_t)",
        r"\dot\theta_j = -\tfrac1\alpha \nabla \Psi(\theta_j; \rho_t)",
        (
            Option("rtol", Kind.POSITIVE, "relative tolerance of a step; by precision by default", None),
            Option("atol", Kind.POSITIVE, "absolute tolerance of a step; rtol/100 by default", None),
            Option("max_steps", Kind.COUNT, "give up after this many steps", 20_000),
        ),
        about="by an adaptive Runge–Kutta method",
        sources=("chizat2018", "kidger2021", "tsitouras2011"),
        called="gradient flow",
        deep=r"\dot W_l = -c_l \nabla_{W_l} R",
        descends=True,
    ),
    Method(
        "gradient_descent",
        "dynamics.gradient_descent.GradientDescent",
        "θ_j ← θ_j − (η/α)∇Ψ(θ_j; ρ)",
        r"\theta_j \leftarrow \theta_j - \tfrac{\eta}{\alpha} \nabla \Psi(\theta_j; \rho)",
        (_STEP,),
        about="with full batches",
        sources=("chizat2018",),
        called="gradient descent",
        deep=r"W_l \leftarrow W_l - \eta \, c_l \nabla_{W_l} R",
        descends=True,
        padded=True,
    ),
    Method(
        "sgd",
        "dynamics.sgd.SGD",
        "θ_j ← θ_j + (η/α) · batch mean of u ∇σ*(x; θ_j)",
        r"\theta_j \leftarrow \theta_j + \tfrac{\eta}{\alpha} \, u_k \nabla \sigma_*(x_k; \theta_j)",
        (_STEP, Option("batch", Kind.COUNT, "rows per step", 1, "batch"), _PASS),
        sources=("robbins1951", "mei2018", "mei2019"),
        called="stochastic gradient descent",
        deep=r"W_l \leftarrow W_l - \eta \, c_l \nabla_{W_l} \ell(f(x_k), y_k)",
        descends=True,
        padded=True,
    ),
    Method(
        "langevin",
        "dynamics.langevin.Langevin",
        "θ ← (1 − ηλ)θ + (η/α)E[u∇σ*] + √(2η/β) g, g ~ N(0, I)",
        r"\theta_j \leftarrow (1 - \eta\lambda)\theta_j - \tfrac{\eta}{\alpha} \nabla\Psi "
        r"+ \sqrt{2\eta/\beta} \, g_j",
        (
            _STEP,
            Option(
                "beta",
                Kind.SCHEDULE,
                "inverse temperature β, inf for no noise; or a table that says how it changes in time",
                symbol="β",
            ),
            _DECAY,
            _BATCH,
            _PASS,
            Option(
                "noise_on",
                Kind.COORDINATES,
                'coordinates with noise, such as "w" or ["w1", "a"]; all trained ones by default',
                None,
                "noise on",
            ),
        ),
        sources=("mei2018", "hu2021"),
        called="noisy gradient descent (Langevin)",
        deep=r"W_l \leftarrow (1 - \eta\lambda) W_l - \eta \, c_l \nabla_{W_l} R "
        r"+ \sqrt{2\eta c_l/\beta} \, g",
        noise=(r"+ \sqrt{2\eta/\beta} \, g_j", r"+ \sqrt{2\eta c_l/\beta} \, g"),
        cold="gradient descent with decay (Langevin without noise)",
        padded=True,
    ),
    Method(
        "adam",
        "dynamics.optax.Adam",
        "θ ← θ − η · rate · m̂/(√v̂ + ε) − ηλθ",
        r"\theta \leftarrow \theta - \eta \, \hat m / (\sqrt{\hat v} + \epsilon) - \eta\lambda\theta",
        (
            Option("step", Kind.POSITIVE, "learning rate; time is t = k · step", symbol="η"),
            Option("batch", Kind.COUNT, "rows per step; the full gradient by default", None, "batch"),
            _PASS,
            Option("b1", Kind.FRACTION, "memory of the first moment", 0.9),
            Option("b2", Kind.FRACTION, "memory of the second moment", 0.999),
            Option("eps", Kind.POSITIVE, "what is added to the root of the second moment", 1e-8),
            Option("decay", Kind.NOT_NEGATIVE, "weight decay λ, apart from the moments", 0.0, "λ"),
        ),
        sources=("kingma2015",),
        called="Adam",
        padded=True,
    ),
    Method(
        "optax",
        "dynamics.optimisers.named",
        "θ ← θ + update(g), g the gradient",
        "$optimiser",
        (
            Option(
                "optimiser",
                Kind.OPTIMISER,
                "which optimiser of optax",
                latex=lambda name: OPTIMISERS[name].latex,
            ),
            Option("step", Kind.POSITIVE, "learning rate; time is t = k · step", symbol="η"),
            Option("batch", Kind.COUNT, "rows per step; the full gradient by default", None, "batch"),
            _PASS,
        ),
        sources=("deepmind2020",),
        called="an optimiser of optax, by name",
    ),
    Method(
        "kernel_flow",
        "dynamics.kernel_flow.KernelFlow",
        "u̇ = −K diag(ω) u",
        r"\dot f = K_0 \, \mathrm{diag}(\omega) \, u",
        (Option("rtol", Kind.POSITIVE, "tolerance for losses other than the squared one", None),),
        about="on data, exact in time for the squared loss",
        sources=("jacot2018", "lee2019"),
        called="the flow with the kernel frozen at the start",
        frozen=True,
    ),
    Method(
        "grid_flow",
        "dynamics.grid.flow.GridFlow",
        "∂tρ = ∇·(ρ∇Ψ_λ(θ; ρ)) + β⁻¹Δρ",
        _DIFFUSION + _NOISE,
        (
            _BETA,
            _DECAY,
            Option("tol", Kind.POSITIVE, "error of a step in L1", 1e-6, "tolerance"),
            Option("max_steps", Kind.COUNT, "give up after this many steps", 1_000_000),
        ),
        about="by finite volumes",
        sources=("scharfetter1969", "koren1993", "chizat2018", "jordan1998"),
        moves=Moves.DENSITY,
        called="the flow of the density on a grid",
        noise=(_NOISE,),
        cold="the flow of the density on a grid, without noise",
    ),
    Method(
        "jko",
        "dynamics.jko.jko.JKO",
        "ρ_{k+1} = argmin F(ρ) + W2²(ρ, ρ_k)/(2τ)",
        r"\rho_{k+1} = \mathrm{argmin}_\rho \; F(\rho) + W_2^2(\rho, \rho_k)/(2\eta)",
        (
            Option("step", Kind.POSITIVE, "step size τ; time is t = kτ", symbol="η"),
            _BETA,
            _DECAY,
            Option(
                "epsilon",
                Kind.POSITIVE,
                "blur of the entropic transport; by the cells by default",
                None,
                on_grid=True,
            ),
            Option("tol", Kind.POSITIVE, "residual of the inner solve; by precision by default", None),
        ),
        about="minimising movements of F = R/α² + (λ/2)∫|θ|²dρ − S/β",
        sources=("jordan1998", "peyre2015"),
        moves=Moves.MEASURE,
        called="minimising movements (Jordan, Kinderlehrer, Otto)",
    ),
    Method(
        "fisher_rao",
        "dynamics.fisher_rao.FisherRao",
        "ω_j ← ω_j e^{−ηΨ_λ(θ_j; ρ)}/Z",
        r"\omega_j \leftarrow \omega_j e^{-\eta \Psi_\lambda(\theta_j; \rho)} / Z",
        (
            _STEP,
            Option(
                "beta",
                Kind.TEMPERATURE,
                "inverse temperature β, on a grid; inf is no entropy",
                math.inf,
                "β",
                on_grid=True,
            ),
            _DECAY,
        ),
        about="masses move, positions stay",
        sources=("beck2003",),
        moves=Moves.MEASURE,
        called="mirror descent on the masses (Fisher–Rao)",
    ),
    Method(
        "wasserstein_fisher_rao",
        "dynamics.wasserstein_fisher_rao.WassersteinFisherRao",
        "θ_j ← θ_j − η∇Ψ_λ(θ_j; ρ) and ω_j ← ω_j e^{−ηκΨ_λ(θ_j; ρ)}/Z",
        _DIFFUSION + " - " + _REACT,
        (_STEP, _REACTION, _DECAY),
        about="positions and masses move",
        sources=("chizat2018", "chizat2022b"),
        moves=Moves.PARTICLES,
        called="conic particle descent (Wasserstein–Fisher–Rao)",
    ),
    Method(
        "birth_death",
        "dynamics.birth_death.BirthDeath",
        "∂tρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ − κρ(Ψ_λ − ∫Ψ_λ dρ)",
        _DIFFUSION + _NOISE + " - " + _REACT,
        (_STEP, _REACTION, _BETA, _DECAY),
        about="steps of descent, then neurons die and are copied",
        sources=("rotskoff2019",),
        moves=Moves.PARTICLES,
        called="descent with births and deaths of neurons",
        noise=(_NOISE,),
        relabels=True,
    ),
)
