"""The published claims: what each one is, who made it, how long it takes. Listing them loads no
experiment."""

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from .._checks import nearest
from .._shown import shown
from ..references import REFERENCES


@dataclass(frozen=True)
class Experiment:
    """A published claim, from `sources` (keys of `REFERENCES`); `minutes` is a rough time on two cores."""

    name: str
    claim: str
    sources: tuple[str, ...]
    minutes: float

    @property
    def module(self) -> str:
        """The file of the experiment, in this folder: `run(say, settings) -> Outcome` does the work. `FULL`
        is the size of the published run, `REDUCED` that of a small one with the same checks."""
        return self.name.replace("-", "_")

    @property
    def source(self) -> str:
        return " ".join(REFERENCES[key] for key in self.sources)

    def load(self, reduced: bool = False) -> Callable[[Callable[[str], None]], Any]:
        """`run(say)` of the experiment's module, imported now, at its full or at its reduced size."""
        return partial(self._imported.run, settings=self._settings(reduced))

    def settings(self, reduced: bool = False) -> str:
        """A hash of the settings that it runs with."""
        text = re.sub(r" at 0x[0-9a-f]+", "", repr(self._settings(reduced)))  # of functions among them
        return hashlib.sha256(text.encode()).hexdigest()

    def _settings(self, reduced: bool) -> Any:
        return self._imported.REDUCED if reduced else self._imported.FULL

    @property
    def _imported(self) -> Any:
        return import_module(f".{self.module}", __package__)


_ALL = (
    Experiment(
        "sgd-tracks-flow",
        "One-pass SGD with n neurons and step η follows the mean-field flow up to η^½ and n^−½.",
        ("mei2019",),
        2,
    ),
    Experiment(
        "node-order",
        "The risk of the limit converges spectrally with the order of its Gauss nodes, relu included; a "
        "kink that is not cut leaves a power law.",
        ("mei2018",),
        1,
    ),
    Experiment(
        "limit-digits",
        "The limit has the digits of the reference table, and d = inf is what finite dimensions "
        "extrapolate to.",
        ("mei2018",),
        2,
    ),
    Experiment(
        "three-ways",
        "The mean-field limit of a single-index target is the same from the reduced flow, from neurons in"
        " R^d and from SGD.",
        ("mei2018",),
        5,
    ),
    Experiment(
        "single-neuron-samples",
        "A single neuron is learned to a given error by O(1) neurons from O(d) samples; lazy training on "
        "as many samples fits no more than the linear part of the target.",
        ("mei2019",),
        1,
    ),
    Experiment(
        "single-neuron-widths",
        "Learning a single neuron from m ~ d samples, the test error deteriorates with the width under NTK "
        "scaling, to what no linear function fits, and stays low under mean-field scaling.",
        ("ghorbani2021", "montanari2022", "mei2019"),
        2,
    ),
    Experiment(
        "two-gaussians-dynamics",
        "On two centred Gaussians, risk and mean radius of SGD with 800 neurons follow the mean-field limit.",
        ("mei2018",),
        2,
    ),
    Experiment(
        "two-gaussians-threshold",
        "One sphere of weights is optimal for two centred Gaussians up to Δ*, which tends to 0.47 as d "
        "grows.",
        ("mei2018",),
        1,
    ),
    Experiment(
        "two-gaussians-failure",
        "With an activation that is not monotone SGD fails from a start κ = 0.1 and succeeds from κ = 0.4.",
        ("mei2018",),
        2,
    ),
    Experiment(
        "naive-scaling",
        "The NTK's network at a rate √n moves f by √n: squared loss diverges, cross-entropy still trains.",
        ("yang2021",),
        1,
    ),
    Experiment(
        "abc-table",
        "Exponents of |Δh| and |Δf| in n tell lazy, trivial, unstable and feature-learning scalings "
        "apart; |h| does not.",
        ("yang2021",),
        0.5,
    ),
    Experiment(
        "abc-lattice",
        "The inequalities on (a, b, c) decide between unstable, trivial, lazy and feature-learning.",
        ("yang2021",),
        0.5,
    ),
    Experiment(
        "lazy-to-mean-field",
        "The scale α alone leads from the mean-field limit to the NTK limit; the linearisation gap falls "
        "like α⁻² (mirrored neurons) or α⁻¹ (independent ones).",
        ("chizat2019",),
        2,
    ),
    Experiment(
        "lazy-threshold",
        "With the prefactor α_M/√M training is lazy for α_M ≳ √(m²/(M d)): sufficient, not necessary; "
        "features move below √(m/(M d)).",
        ("chizat2019",),
        2,
    ),
    Experiment(
        "feature-and-lazy",
        "Feature and lazy training are divided at α* ~ h^−½, and F varies over starts like 1/h on either "
        "side.",
        ("geiger2020",),
        3,
    ),
    Experiment(
        "noise-annealing",
        "Annealed noise ends at a lower risk than plain descent from most starts, for spikes on the 2-torus.",
        ("chizat2022",),
        1,
    ),
    Experiment(
        "exact-noise",
        "A linear neuron with noise stays Gaussian: particles, grids, minimising movements and the fixed "
        "point find its mean, covariance and free energy.",
        ("jordan1998", "scharfetter1969", "mei2018"),
        1.5,
    ),
    Experiment(
        "global-convergence",
        "With noise the mean-field flow reaches the same ρ* from every start, bad ones included; without, it "
        "ends at another risk from each.",
        ("mei2018", "hu2021"),
        0.6,
    ),
    Experiment(
        "cost-of-noise",
        "The risk with decay at rest under noise is above its infimum by D/(2β): slope −1 in β.",
        ("mei2018",),
        0.7,
    ),
    Experiment(
        "log-sobolev-rate",
        "F − F* falls exponentially, faster than the logarithmic Sobolev inequality guarantees; with β in "
        "proportion to D the rate collapses exponentially in D.",
        ("holley1987", "nitanda2022", "chizat2022"),
        1.5,
    ),
    Experiment(
        "several-ways",
        "Particles, grids, minimising movements and characteristics find the same risks and densities, "
        "without noise and with it, the reduced coordinates having their radial drift.",
        ("mei2018", "jordan1998"),
        3,
    ),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def listing() -> list[dict[str, Any]]:
    """One row for each claim: name, claim, source, minutes."""
    return [{"name": e.name, "claim": e.claim, "source": e.source, "minutes": e.minutes} for e in _ALL]


def chosen(names: Iterable[str] = ()) -> list[Experiment]:
    """The experiments of these names, each once; all of them where no name is given."""
    names = list(dict.fromkeys(names))
    for name in names:
        if name not in EXPERIMENTS:
            known = ", ".join(EXPERIMENTS)
            raise ValueError(f"No experiment {shown(name)}; known: {known}.{nearest(name, EXPERIMENTS)}")
    return [EXPERIMENTS[name] for name in names or EXPERIMENTS]
