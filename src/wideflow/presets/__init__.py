"""Specs that teach, as they come with the package."""

from pathlib import Path

HERE = Path(__file__).parent
# in the order in which they are best read
ORDER = (
    "single-neuron",
    "teacher-student",
    "two-gaussians",
    "lazy-to-feature",
    "noisy",
    "global-convergence",
    "own-data",
)


def names() -> list[str]:
    """All presets."""
    return list(ORDER)


def file(name: str) -> Path:
    """The spec file of a preset; its data lie beside it."""
    return HERE / f"{name}.toml"


def data(name: str) -> list[Path]:
    """The data files that a preset reads."""
    return sorted(path for path in HERE.glob(f"{name}.*") if path.suffix != ".toml")
