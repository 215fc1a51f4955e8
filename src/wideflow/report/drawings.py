"""The figures of a report, in their order on the page. A new one is a function, and a row here."""

from . import curves, densities, sweeps
from .drawing import Drawing, Maker, Shown

FIGURES: dict[str, Maker] = {
    "risk": curves.risks,
    "gap to the limit": curves.gaps,
    "energy": curves.energies,
    "movement": curves.movements,
    "features": curves.features,
    "widths": sweeps.widths,
    "scales": sweeps.scales,
    "densities": densities.densities,
}


def drawings(shown: Shown) -> list[Drawing]:
    """All figures for which there are data."""
    return [drawing for make in FIGURES.values() for drawing in make(shown)]
