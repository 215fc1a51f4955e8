"""One frame of a cloud as a small SVG: for print, and where no script runs."""

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from .axis import LEVELS, Axis
from .palette import ABSENT, colours

_WIDTH, _HEIGHT = 170, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 8, 6, 20
_SHADES = 9  # so that a path for each is short
_FINE = 4  # places of points are whole numbers of this fraction of a unit
_TICK = 4
_LETTER = 7  # about the breadth of a digit
_WIDE_TEXT = 5  # characters that fit left of the axis at full size


def still(x: np.ndarray, y: np.ndarray, colour: np.ndarray, axes: Sequence[Axis], alt: str) -> Markup:
    """Levels (n,) of x, y (0 … 65535) and colour (0 … 255) as a picture with ticks."""
    inner = Markup("").join([_frame(axes), _points(x, y, colour)])
    return Markup('<svg class="wf-frame" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, alt, inner
    )


def _points(x: np.ndarray, y: np.ndarray, colour: np.ndarray) -> Markup:
    """One path per shade: dots are strokes of no length with round ends."""
    present = colour != ABSENT
    if not present.any():
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        return Markup('<text x="{}" y="{}" text-anchor="middle">no finite point</text>').format(
            middle, _HEIGHT / 2
        )
    across = np.rint((_LEFT + x / LEVELS * (_WIDTH - _LEFT - _RIGHT)) * _FINE).astype(int)
    down = np.rint((_HEIGHT - _BOTTOM - y / LEVELS * (_HEIGHT - _TOP - _BOTTOM)) * _FINE).astype(int)
    shade = np.minimum(colour.astype(int) * _SHADES // ABSENT, _SHADES - 1)
    paths = []
    for k, name in enumerate(colours(_SHADES)):
        chosen = present & (shade == k)
        places = sorted(set(zip(across[chosen].tolist(), down[chosen].tolist(), strict=True)))
        if places:
            d = "".join(f"M{i} {j}h0" for i, j in places)
            paths.append(Markup('<path stroke="{}" d="{}"/>').format(name, d))
    size = _FINE * (2.2 if len(x) > 100 else 3.6)
    group = Markup('<g class="wf-dots" transform="scale({})" stroke-width="{}">{}</g>')
    dots = group.format(1 / _FINE, size, Markup("").join(paths))
    return dots + _together(across[present] / _FINE, down[present] / _FINE)


def _together(across: np.ndarray, down: np.ndarray) -> Markup:
    """A note above one dot that stands for many."""
    if len(across) < 2 or np.ptp(across) or np.ptp(down):
        return Markup("")
    text = f"all {len(across)} points"
    half = 3 * len(text)
    centre = min(max(float(across[0]), _LEFT + half), _WIDTH - _RIGHT - half)
    return _text(centre, float(down[0]) - 7, "middle", text)


def _frame(axes: Sequence[Axis]) -> Markup:
    """The two axes with their ticks and numbers."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    lines, texts = [f"M{_LEFT} {_TOP}V{bottom}H{right}"], []
    across = axes[0].ticks()
    broadest = _LETTER * max(len(number) for _, number in across) + _LETTER
    every = math.ceil(broadest / ((across[1][0] - across[0][0]) * (right - _LEFT)))  # numbers must not touch
    for i, (place, number) in enumerate(across):
        at = round(_LEFT + place * (right - _LEFT), 1)
        lines.append(f"M{at} {bottom}v{_TICK}")
        texts += [] if i % every else [_text(at, bottom + 16, "middle", number)]
    for place, number in axes[1].ticks():
        at = round(bottom - place * (bottom - _TOP), 1)
        lines.append(f"M{_LEFT} {at}h-{_TICK}")
        texts.append(_text(_LEFT - 6, at + 4, "end", number))
    path = Markup('<path class="wf-lines" d="{}"/>').format("".join(lines))
    return Markup("").join([path, *texts])


def _text(x: float, y: float, anchor: str, text: str) -> Markup:
    """A text; a long number left of the axis is squeezed, so that it is not cut off."""
    fit = Markup(' textLength="{}" lengthAdjust="spacingAndGlyphs"').format(_LEFT - 8)
    squeeze = fit if anchor == "end" and len(text) > _WIDE_TEXT else ""
    return Markup('<text x="{}" y="{}" text-anchor="{}"{}>{}</text>').format(x, y, anchor, squeeze, text)
