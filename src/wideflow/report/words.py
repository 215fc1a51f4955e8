"""What was run, in words and equations."""

import math
from typing import Any

from ..page.numbers import short
from ..spec.problem import Activation
from ..spec.study import Spec
from ..study.build import Study
from ..study.cases import Case

_PHI = {
    "relu": r"\max(h, 0)",
    "erf": r"\mathrm{erf}(h)",
    "tanh": r"\tanh(h)",
    "sigmoid": r"1/(1 + e^{-h})",
    "softplus": r"\log(1 + e^{h})",
    "sin": r"\sin(h)",
    "cos": r"\cos(h)",
    "identity": "h",
    "square": "h^2",
    "gelu": r"h \, P(z \le h)",
}
_LOSS = {
    "squared": r"\tfrac12 \, \mathrm{E} (y - f(x))^2",
    "huber": r"\mathrm{E} \, \mathrm{huber}(y - f(x))",
    "logistic": r"\mathrm{E} \log(1 + e^{-y f(x)})",
    "cross_entropy": r"\mathrm{E} \left[ \log \textstyle\sum_c e^{f_c(x)} - f_y(x) \right]",
}
_METHOD = {
    "gradient_flow": (r"\dot\theta_j = -\tfrac1\alpha \nabla \Psi(\theta_j; \rho_t)", "gradient flow"),
    "gradient_descent": (
        r"\theta_j \leftarrow \theta_j - \tfrac{\eta}{\alpha} \nabla \Psi(\theta_j; \rho)",
        "gradient descent",
    ),
    "sgd": (
        r"\theta_j \leftarrow \theta_j + \tfrac{\eta}{\alpha} \, u_k \nabla \sigma_*(x_k; \theta_j)",
        "stochastic gradient descent",
    ),
    "langevin": (
        r"\theta_j \leftarrow (1 - \eta\lambda)\theta_j - \tfrac{\eta}{\alpha} \nabla\Psi "
        r"+ \sqrt{2\eta/\beta} \, g_j",
        "noisy gradient descent (Langevin)",
    ),
    "adam": (
        r"\theta \leftarrow \theta - \eta \, \hat m / (\sqrt{\hat v} + \epsilon) - \eta\lambda\theta",
        "Adam",
    ),
    "kernel_flow": (
        r"\dot f = K_0 \, \mathrm{diag}(\omega) \, u",
        "the flow with the kernel frozen at the start",
    ),
    "limit": (
        r"\partial_t \rho_t = \nabla \cdot \left( \rho_t \nabla \Psi(\theta; \rho_t) \right)",
        "the mean-field limit: infinitely many neurons and samples",
    ),
}


def phi(spec: Activation) -> str:
    """φ(h) in LaTeX."""
    if spec.name == "hermite":
        return rf"\mathrm{{He}}_{{{spec.degree}}}(h)/\sqrt{{{spec.degree}!}}"
    if spec.name == "leaky_relu":
        slope = short(0.01 if spec.slope is None else spec.slope)
        return rf"\max(h, 0) + {slope} \min(h, 0)"
    if spec.name == "piecewise_linear":
        knots = ", ".join(f"({short(x)}, {short(y)})" for x, y in spec.knots or [])
        return rf"\text{{linear through }} {knots}"
    return _PHI[spec.name]


def law(study: Study) -> str:
    """The law of x in LaTeX."""
    x: Any = study.spec.problem.x
    if x.law == "gaussian":
        sigma = "I" if x.covariance is None else r"\Sigma"
        return rf"x \sim N(0, {sigma}) \text{{ in }} \mathbb{{R}}^{{{_dimension(x.d)}}}"
    if x.law == "sphere":
        return rf"x \sim \mathrm{{Unif}}(\sqrt{{d}} \, S^{{d-1}}), \quad d = {_dimension(x.d)}"
    if x.law == "two_gaussians":
        where = rf"\mathbb{{R}}^{{{_dimension(x.d)}}}"
        if x.subspace is not None:
            where += rf" \text{{ (in {x.subspace} coordinates, the others }} N(0, 1))"
        return rf"y = \pm 1, \quad x \sim N(0, (1 \pm {short(x.delta)})^2 I) \text{{ in }} {where}"
    m = getattr(study.whole.x, "m", "m")
    return rf"(x_i, y_i), \quad i = 1, \dots, {m}, \quad x_i \in \mathbb{{R}}^{{{study.whole.d}}}"


def target(spec: Spec) -> str | None:
    """f* in LaTeX, None where the law brings labels."""
    given: Any = spec.problem.target
    if given is None:
        return None
    noise = f" + {short(spec.problem.noise)} z" if spec.problem.noise else ""
    inner = r"\langle w_*, x \rangle"
    if given.kind == "single_index":
        return rf"y = \varphi_*({inner}){noise}, \quad \varphi_*(h) = {phi(given.link)}, \quad |w_*| = 1"
    if given.kind == "teacher":
        k = len(given.w)
        bias = "" if given.b is None else " + b_j^*"
        sum_of = rf"\sum_{{j=1}}^{{{k}}} a_j^* \varphi_*(\langle w_j^*, x \rangle{bias})"
        return rf"y = {sum_of}{noise}, \quad \varphi_*(h) = {phi(given.link)}"
    if given.kind == "hermite":
        return (
            rf"y = \mathrm{{He}}_{{{given.degree}}}({inner})/\sqrt{{{given.degree}!}}{noise}, \quad |w_*| = 1"
        )
    terms = " + ".join(f"{short(c)} {inner}^{{{k}}}" for k, c in enumerate(given.coefficients) if c)
    return rf"y = {terms or 0}{noise}, \quad |w_*| = 1"


def model(spec: Spec) -> str:
    """f in LaTeX."""
    start: Any = spec.start
    if start.kind != "particles":
        kind = "fully connected" if start.kind == "mlp" else "convolutional"
        layers = rf"W_{{{start.depth + 1}}} \varphi(\cdots \varphi(W_1 x))"
        return rf"f(x) = {layers}, \quad \text{{{kind}, {start.depth} hidden layer(s)}}"
    neuron = spec.problem.neuron
    weight = "" if neuron.output == "unit" else "a_j \\, "
    bias = " + b_j" if neuron.bias else ""
    inside = rf"{weight}\varphi(\langle w_j, x \rangle{bias})"
    network = rf"\frac{{\alpha}}{{n}} \sum_{{j=1}}^{{n}} {inside}"
    return rf"f(x) = {network}, \quad \varphi(h) = {phi(neuron.activation)}"


def loss(spec: Spec) -> str:
    """R in LaTeX."""
    extra = (
        f" + {short(spec.risk.second_moment)} \\int \\tfrac12 |\\theta|^2 d\\rho"
        if spec.risk.second_moment
        else ""
    )
    extra += f" + {short(spec.risk.path_norm)} \\int |a||w| d\\rho" if spec.risk.path_norm else ""
    return f"R = {_LOSS[spec.problem.loss.name]}{extra}"


def start(spec: Spec) -> str:
    """Where training starts, in a sentence."""
    if spec.start.kind != "particles":
        return "Weights are independent Gaussians, scaled by the parametrisation."
    own = [method.start is not None for method in spec.dynamics]
    if all(own):
        return "At time 0 neurons are independent, of a law that each dynamics has for itself (see below)."
    but = ", unless said otherwise below" if any(own) else ""
    return f"At time 0 neurons are independent{but}: {start_law(spec, spec.start)}."


def start_law(spec: Spec, given: Any) -> str:
    """The law of neurons of a start."""
    names = {"a": "output weights a", "w": "weights w", "b": "biases b"}
    parts = []
    for name, words in names.items():
        value = getattr(given, name)
        if name == "a" and spec.problem.neuron.output == "unit":
            continue
        if name == "b" and not spec.problem.neuron.bias:
            continue
        parts.append(f"{words} ~ {_marginal(name, value)}")
    mirrored = (
        "; each neuron comes twice, with a and −a, so that f = 0 at the start" if given.mirrored else ""
    )
    return ", ".join(parts) + mirrored


def _marginal(name: str, value: Any) -> str:
    if value is None or isinstance(value, float | int):
        default = 0.0 if name == "b" else 1.0
        scale = default if value is None else float(value)
        square = "" if scale == 1 else f"{short(scale)}² "
        if scale == 0:
            return "0"
        return f"N(0, {square}I/d)" if name == "w" else f"N(0, {square.strip() or '1'})"
    law: Any = value
    if law.law == "normal":
        return f"N({short(law.mean)}, {short(law.sd)}²)"
    if law.law == "uniform":
        return f"Unif[{short(law.low)}, {short(law.high)}]"
    return f"±{short(law.scale)}" if law.law == "signs" else short(law.value)


_NOISE = r"+ \sqrt"  # where the noise of an equation begins
_DEEP = {
    "gradient_flow": r"\dot W_l = -c_l \nabla_{W_l} R",
    "gradient_descent": r"W_l \leftarrow W_l - \eta \, c_l \nabla_{W_l} R",
    "sgd": r"W_l \leftarrow W_l - \eta \, c_l \nabla_{W_l} \ell(f(x_k), y_k)",
    "langevin": r"W_l \leftarrow (1 - \eta\lambda) W_l - \eta \, c_l \nabla_{W_l} R "
    r"+ \sqrt{2\eta c_l/\beta} \, g",
}
_LINEARISED = r"f = f_0 + \langle \nabla f_0, \theta - \theta_0 \rangle"


def method(
    case: Case, widths: list[int | None], scalings: list[str], seeds: int, deep: bool = False
) -> tuple[str, str]:
    """(equation, sentence) of one entry of the dynamics; `deep` for networks with layers W_l at rates c_l."""
    equation, words = _METHOD[case.method.method]
    equation = _DEEP.get(case.method.method, equation) if deep else equation
    if case.linearised and case.method.method != "kernel_flow":
        equation = _LINEARISED
    spec: Any = case.method
    if getattr(spec, "beta", None) == math.inf:
        equation, words = (
            equation.split(_NOISE)[0],
            "gradient descent with decay (Langevin without noise)",
        )
    told = []
    finite = [n for n in widths if n is not None]
    if finite:
        told.append(f"n = {', '.join(map(str, finite))}")
    told.append(", ".join(scalings))
    for field, symbol in (
        ("step", "η"),
        ("beta", "β"),
        ("decay", "λ"),
        ("batch", "batch"),
        ("tol", "tolerance"),
    ):
        value = getattr(spec, field, None)
        if value is not None:
            told.append(f"{symbol} = {'∞' if value == math.inf else short(value)}")
    if seeds > 1:
        told.append(f"{seeds} seeds")
    if case.linearised and case.method.method != "kernel_flow":
        words += ", of the network linearised at its start (its kernel is frozen)"
    return equation, f"{words}; {', '.join(told)}"


def _dimension(d: float) -> str:
    return r"\infty" if d == float("inf") else str(int(d))
