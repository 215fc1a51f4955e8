"""Exponents in the width from mean squares over seeds, and the verdict that they give."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...parametrisations import Exponents
from ...verdicts import (
    ADVICE,
    FALLS,
    FEATURES,
    FLAT,
    GENERAL_ADVICE,
    GROWS,
    KERNEL_FALLS,
    KNOWN,
    LAZY,
    SIGMAS,
    TRIVIAL,
    UNDECIDED,
    UNSTABLE,
    Regime,
    Verdict,
)
from ..scaling import Slope, fit_slope, rms_and_error
from .family_trial import Squares


@dataclass(frozen=True)
class Curve:
    """rms over rows, units and seeds at every width with its standard error, its power of n (None where it is
    0 or not finite somewhere), and the predicted power (None where there is none)."""

    values: np.ndarray
    errors: np.ndarray
    slope: Slope | None
    predicted: float | None


def curves(
    widths: Sequence[int], squares: dict[int, Squares], predicted: Exponents | None, steps: int
) -> dict[str, Curve]:
    """All by name: |Δh_l|, |Δf|, |f(0)|, |h_l(t)|, |f(t)|, kernel movement, linearisation gap."""
    known = {} if predicted is None else _predictions(predicted, steps)
    names = [name for name in squares[widths[0]] if name not in ("K", "ΔK", "gap")]
    order = sorted(names, key=lambda name: (not name.startswith("Δ"), name.endswith("(t)")))
    out = {}
    for name in order:
        points = [_rms(squares[n][name]) for n in widths]
        out[name] = _curve(widths, points, known.get(name))
    for name, top, bottom in (("kernel movement", "ΔK", "K"), ("linearisation gap", "gap", "Δf")):
        points = [_ratio(squares[n][top], squares[n][bottom]) for n in widths]
        out[name] = _curve(widths, points, None)
    return out


def worst_error(fitted: dict[str, Curve]) -> float:
    """The largest error bar of the exponents that are compared with the theory, or decide."""
    compared = [c for name, c in fitted.items() if c.slope and (c.predicted is not None or name[0] == "Δ")]
    return max((c.slope.error for c in compared if c.slope), default=0.0)


def _predictions(exponents: Exponents, steps: int) -> dict[str, float]:
    """After several steps the last layer has moved too, and features follow it."""
    moved = exponents.features if steps == 1 else exponents.trained
    return {"Δf": exponents.df, "f(0)": exponents.f0} | {f"Δh{i}": v for i, v in enumerate(moved, 1)}


def _rms(squares: np.ndarray) -> tuple[float, float]:
    if not np.isfinite(squares).all() or not squares.any():
        return float(np.sqrt(np.mean(squares))), float("nan")
    value, error = rms_and_error(squares)
    return value, max(error, 1e-12 * value)  # a fit needs an error, even where nothing scatters


def _ratio(top: np.ndarray, bottom: np.ndarray) -> tuple[float, float]:
    """√(Σ top/Σ bottom), and its standard error to first order."""
    if not (np.isfinite(top).all() and np.isfinite(bottom).all()) or not (top.any() and bottom.any()):
        return (0.0 if not top.any() else float("nan")), float("nan")
    value = np.sqrt(top.mean() / bottom.mean())
    scatter = top / top.mean() - bottom / bottom.mean()
    error = value * scatter.std(ddof=1) / (2 * np.sqrt(len(top)))
    return float(value), float(max(error, 1e-12 * value))


def _curve(widths: Sequence[int], points: list[tuple[float, float]], predicted: float | None) -> Curve:
    values, errors = (np.array(column) for column in zip(*points, strict=True))
    usable = np.isfinite(values).all() and (values > 0).all()
    return Curve(values, errors, fit_slope(widths, values, errors) if usable else None, predicted)


def verdict_of_widths(fitted: dict[str, Curve], theory: bool) -> Verdict:
    """The verdict from the measured exponents alone; `theory` where h is known to be of size 1."""
    word, reasons = _decide(fitted, theory)
    known = ADVICE if theory else GENERAL_ADVICE
    advice = known[word] if word != UNDECIDED else "Take wider networks, more seeds, or steps=2."
    return Verdict(word, tuple(reasons), advice)


def _decide(fitted: dict[str, Curve], theory: bool) -> tuple[Regime, list[str]]:
    broken = [name for name, c in fitted.items() if not np.isfinite(c.values).all()]
    if broken:
        return UNSTABLE, [f"not finite at some width: {', '.join(broken)}"]
    sized = [name for name in fitted if name[0] == "h" and name.endswith("(0)")]
    moved = [name for name in fitted if name.startswith("Δh")]
    off = [name for name in ("f(0)", "Δf", *sized, *moved) if _low(fitted[name]) > GROWS]
    off += [name for name in sized if theory and _high(fitted[name]) < -GROWS]
    off = [name for name in off if _error(fitted[name]) <= KNOWN]
    if off:
        return UNSTABLE, [f"{name} {_describe(fitted[name])}, not {_expected(name)}" for name in off]
    decides = moved or ["kernel movement"]
    top = max(decides, key=lambda name: _exponent(fitted[name]))
    still = _high(fitted["Δf"]) < -FLAT
    idle = [f"f itself does not move either: Δf {_describe(fitted['Δf'])}"] if still else []
    summary = (
        f"{top} {_describe(fitted[top])}, the most of all layers"
        if len(decides) > 1
        else f"{top} {_describe(fitted[top])}"
    )
    if _high(fitted[top]) < (FALLS if moved else KERNEL_FALLS):
        vanishes = f"{summary}: it vanishes with the width"
        if still:
            return TRIVIAL, [vanishes, *idle]
        return LAZY, [vanishes, f"Δf {_describe(fitted['Δf'])}"]
    if abs(_exponent(fitted[top])) <= FLAT + SIGMAS * _error(fitted[top]) and _error(fitted[top]) <= FLAT / 2:
        stays = [] if still else [f"Δf {_describe(fitted['Δf'])}"]
        return FEATURES, [f"{summary}: it stays at every width", *stays, *idle]
    missing = [] if moved else ["hidden layers decide sooner: give features(params, x)"]
    bound = f"{FALLS if moved else KERNEL_FALLS:g} by {SIGMAS:g} error bars"
    if _error(fitted[top]) > FLAT / 2:
        return UNDECIDED, [f"{summary}: the error bar is above {FLAT / 2:g}", *missing]
    return UNDECIDED, [f"{summary}, neither flat nor below {bound}", *missing]


def _exponent(curve: Curve) -> float:
    """What is 0 at every width falls faster than any power."""
    return curve.slope.value if curve.slope else -np.inf


def _error(curve: Curve) -> float:
    return curve.slope.error if curve.slope else 0.0


def _low(curve: Curve) -> float:
    return _exponent(curve) - SIGMAS * _error(curve)


def _high(curve: Curve) -> float:
    return _exponent(curve) + SIGMAS * _error(curve)


def _describe(curve: Curve) -> str:
    if curve.slope is None:
        return "is 0"
    return f"~ n^{curve.slope.value:+.2f} (± {curve.slope.error:.2f})"


def _expected(name: str) -> str:
    return "of order 1" if name[0] == "h" else "bounded"
