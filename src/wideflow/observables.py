"""What can be observed of a run: one table of names, formulas and labels. Plain data, no JAX.

A name is the same in a spec (`observe.norms`), in `wf.evolve(observe=[…])`, in `run[name]` and in reports;
`observers` has the function behind each.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Observable:
    """A quantity by name: `label` in tables and legends, `symbol` on axes, `formula` what it is, `unit` what
    it is measured in, `scale` the axis that it is drawn on."""

    name: str
    label: str
    symbol: str
    formula: str
    unit: str = ""
    scale: Literal["linear", "log"] = "linear"

    @property
    def axis(self) -> str:
        """The label of an axis."""
        return f"{self.label} {self.symbol}" + (f" ({self.unit})" if self.unit else "")


_ROWS = (
    Observable("risk", "risk", "R", "E ℓ(f(x), y)", scale="log"),
    Observable("energy", "regularised risk", "R$_λ$", "R/α² + (λ/2)∫|θ|²dρ, and further penalties"),
    Observable("free_energy", "free energy", "F", "R_λ − S(ρ)/β"),
    Observable(
        "free_energy_estimate",
        "free energy, estimated",
        "F",
        "R_λ − S/β, the entropy S of particles estimated by their nearest neighbours; ∞ where they coincide",
    ),
    Observable("free_energy_error", "error of the free energy", "δF", "one standard error of this estimate"),
    Observable(
        "kernel_movement",
        "kernel movement",
        "‖K$_t$ − K$_0$‖/‖K$_0$‖",
        "of the tangent kernel K, Frobenius norm",
    ),
    Observable(
        "weight_movement", "weight movement", "‖θ$_t$ − θ$_0$‖/‖θ$_0$‖", "√(∫|θ_t − θ_0|²dρ / ∫|θ_0|²dρ)"
    ),
    Observable("second_moment", "second moment", "½∫|θ|²dρ", "½∫|θ|²dρ over the trained coordinates"),
    Observable("path_norm", "path norm", "∫|a||w|dρ", "∫|a||(w, b)|dρ"),
    Observable("mass", "mass", "∫dρ", "∫dρ, which every dynamics keeps at 1"),
    Observable("f", "predictions", "f(x)", "f at the test points"),
    Observable("cloud", "cloud", "θ", "two coordinates and the output weight of some neurons"),
    Observable("feature", "feature", "", "quantiles of one coordinate of the neurons"),
)
OBSERVABLES = {row.name: row for row in _ROWS}


def label(name: str) -> str:
    """What tables and legends call an observation; one of the user's own by its name."""
    return OBSERVABLES[name].label if name in OBSERVABLES else name


def axis(name: str) -> str:
    """The label of an axis for an observation."""
    return OBSERVABLES[name].axis if name in OBSERVABLES else name
