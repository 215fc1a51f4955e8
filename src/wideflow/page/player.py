"""Clouds of points that move in time, side by side, with one button and one slider.

Coordinates have 16 bits, colours 8, and are stored once, in base64: 20/3 bytes per point and frame.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from .. import _checks
from .._data import Data
from .._shown import shown
from .axis import Axis, spanned
from .numbers import short
from .palette import ABSENT, Scale, centred, colours
from .stills import still
from .templating import render

_MOST = 4
_LEGEND = 15


@dataclass(frozen=True, eq=False)
class Cloud:
    """n points at T times: t (T,) increasing; x, y, colour (T, n). What is not finite is not drawn."""

    label: str
    t: np.ndarray
    x: np.ndarray
    y: np.ndarray
    colour: np.ndarray

    def __post_init__(self) -> None:
        t = _checks.finite("t", self.t).astype(np.float64)
        if t.ndim != 1 or t.size == 0 or (np.diff(t) <= 0).any():
            shown = f"shape {t.shape}" if t.ndim != 1 or t.size == 0 else str(t.tolist())
            raise ValueError(f"t must be a vector of strictly increasing times, got {shown}.")
        object.__setattr__(self, "t", t)
        arrays = {name: _real(name, getattr(self, name)) for name in ("x", "y", "colour")}
        for name, values in arrays.items():
            if values.ndim != 2 or len(values) != len(t) or values.shape[1] == 0:
                raise ValueError(
                    f"{name} must have shape (T, n), n >= 1, with a row for each of the {len(t)} times, "
                    f"got {values.shape}."
                )
            if values.shape != arrays["x"].shape:
                raise ValueError(f"{name} must have the shape of x, {arrays['x'].shape}, got {values.shape}.")
            object.__setattr__(self, name, values)


def player(
    clouds: Sequence[Cloud],
    *,
    x_label: str,
    y_label: str,
    colour_label: str,
    height: int = 280,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
) -> Markup:
    """1 to 4 clouds in panels with the same axes and colours, each at its frame nearest to the shared time.

    The ranges are those of `axis.spanned` unless they are given; points outside are drawn on the border.
    `height` is that of a panel in pixels where it is broad enough.
    """
    clouds = list(clouds)
    if not 1 <= len(clouds) <= _MOST:
        raise ValueError(f"clouds must be 1 to {_MOST} clouds, got {len(clouds)}. Try several players.")
    axes = (
        _axis(x_label, "x_range", x_range, [cloud.x for cloud in clouds]),
        _axis(y_label, "y_range", y_range, [cloud.y for cloud in clouds]),
    )
    scale = centred(colour_label, [cloud.colour for cloud in clouds])
    coded = [_coded(cloud, axes, scale) for cloud in clouds]
    times = _shared([cloud.t for cloud in clouds])
    data: Data = {
        "height": _checks.count("height", height, least=80),
        "labels": [f"t = {short(t, 4)}" for t in times],
        "ticks": [axis.ticks() for axis in axes],
        "colours": colours(),
        "clouds": [_packed(cloud, code, times) for cloud, code in zip(clouds, coded, strict=True)],
    }
    outside = any(axes[0].outside(c.x) or axes[1].outside(c.y) for c in clouds)
    return render(
        "player.html",
        axes=axes,
        clouds=clouds,
        data=_json(data),
        first=data["labels"][0],
        last=len(times) - 1,
        legend=colours(_LEGEND),
        limit=short(scale.limit, 2),
        outside=outside,
        scale=scale,
        stills=[_still(i, c, k, axes) for i in (0, -1) for c, k in zip(clouds, coded, strict=True)],
    )


def _real(name: str, array: object) -> np.ndarray:
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {values.dtype}.")
    return values.astype(np.float64)


def _axis(label: str, name: str, range_: tuple[float, float] | None, values: list[np.ndarray]) -> Axis:
    if range_ is None:
        return spanned(label, values)
    low, high = (_checks.number(name, end) for end in range_)
    if low >= high:
        raise ValueError(f"{name} must be (low, high) with low < high, got {shown(range_)}.")
    return Axis(label, low, high)


def _shared(ts: list[np.ndarray]) -> np.ndarray:
    """All times of all clouds; those that differ by rounding (of float32) are one."""
    every = np.unique(np.concatenate(ts))
    apart = np.diff(every) > 1e-6 * np.abs(every[1:])
    return every[np.concatenate([[True], apart])]


def _coded(cloud: Cloud, axes: tuple[Axis, Axis], scale: Scale) -> tuple[np.ndarray, ...]:
    """Levels (T, n) of x, y and colour; a point that is not finite is absent."""
    finite = np.isfinite(cloud.x) & np.isfinite(cloud.y) & np.isfinite(cloud.colour)
    colour = np.where(finite, scale.levels(cloud.colour), ABSENT).astype(np.uint8)
    return axes[0].levels(cloud.x), axes[1].levels(cloud.y), colour


def _packed(cloud: Cloud, code: tuple[np.ndarray, ...], times: np.ndarray) -> Data:
    """All x, all y (16 bits, low byte first), all colours (8 bits); and the frame of each shared time."""
    x, y, colour = code
    joined = x.astype("<u2").tobytes() + y.astype("<u2").tobytes() + colour.tobytes()
    nearest = np.abs(times[:, None] - cloud.t).argmin(axis=1)
    return {"points": x.shape[1], "frame": nearest.tolist(), "data": base64.b64encode(joined).decode()}


def _still(frame: int, cloud: Cloud, code: tuple[np.ndarray, ...], axes: tuple[Axis, Axis]) -> Data:
    when = f"t = {short(cloud.t[frame], 4)}"
    x, y, colour = (levels[frame] for levels in code)
    return {
        "label": cloud.label,
        "when": when,
        "picture": still(x, y, colour, axes, f"{cloud.label}, {when}"),
    }


def _json(data: object) -> Markup:
    """As JSON that cannot end the <script> it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
