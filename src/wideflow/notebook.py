"""How runs show themselves in a notebook: a table, the risk against time, the neurons as they move."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ._data import Data
from .figures import COLOURS, DASHES, line, panels, svg
from .page.document import Section, fragment
from .page.numbers import short
from .page.parts import join, paragraph, picture, table
from .page.player import Cloud, player
from .states.particles import Particles
from .states.state import AbstractState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 800  # points of a cloud
_PANELS = 4


def html(runs: Data, head: list[str], rows: list[list[str]]) -> str:
    """HTML of runs by name, with a table of what is known about each."""
    parts = [table(head, rows)]
    started = {name: run for name, run in runs.items() if run.rows}
    if started:
        several = any(np.ndim(run["risk"]) > 1 for run in started.values())
        caption = "Risk against time." + (" Bands: 10–90 % over replicas." if several else "")
        parts.append(picture(svg(_risks(started)), f"Risk against time of {', '.join(started)}.", caption))
    drawn = [cloud for name, run in started.items() if (cloud := _cloud(name, run)) is not None]
    alike = [cloud for cloud in drawn if cloud[1:] == drawn[0][1:]][:_PANELS] if drawn else []
    if alike:
        x, y, colour = alike[0][1:]
        parts.append(player([cloud[0] for cloud in alike], x_label=x, y_label=y, colour_label=colour))
    parts += [
        paragraph(f"**{name}** {run.status}: {run.message}") for name, run in runs.items() if run.message
    ]
    return fragment([Section("", join(*parts))])


def row_of(run: Any) -> list[str]:
    """Method, status, saved times, last time and risk."""
    method = str(run.provenance.get("dynamics", {}).get("name", ""))
    if not run.rows:
        return [method, run.status, "0", "–", "–"]
    return [method, run.status, str(len(run.rows)), short(run.t[-1]), short(np.mean(run["risk"][-1]), 4)]


HEAD = ["method", "status", "saved times", "t", "risk at t"]


def _risks(runs: Data) -> "Figure":
    with panels(1, width=7.0, height=3.6) as (figure, (axes,)):
        for i, (name, run) in enumerate(runs.items()):
            style = {"color": COLOURS[i % len(COLOURS)], "ls": DASHES[i % len(DASHES)]}
            line(axes, run.t, run["risk"], label=name, **style)
        positive = all((np.asarray(run["risk"]) > 0).all() for run in runs.values())
        axes.set(xlabel="time t", ylabel="risk R", yscale="log" if positive else "linear")
        if len(runs) > 1 or np.ndim(next(iter(runs.values()))["risk"]) > 1:
            axes.legend()
    return figure


def _cloud(name: str, run: Any) -> tuple[Cloud, str, str, str] | None:
    """The neurons of a run that kept snapshots, at two of their coordinates, with the names of these."""
    states = [_particles(state) for state in run.states]
    if len(states) < 2 or any(state is None or state.weights.ndim > 1 for state in states):
        return None
    first: Any = states[0]
    names = first.neuron.coordinates(first.D)
    inner = [i for i, one in enumerate(names) if not one.startswith("a")]
    heads = [i for i, one in enumerate(names) if one.startswith("a")]
    pair = [*inner[:2], *heads, 0][:2] if len(names) > 1 else [0, 0]
    weights = np.asarray(first.weights)
    rows = np.flatnonzero(weights == 0 if (weights == 0).any() else weights >= 0)[:_MOST]
    theta = np.stack([np.asarray(state.theta, float)[rows] for state in states if state is not None])
    colour = theta[..., heads[0]] if heads else np.zeros(theta.shape[:2])
    x, y = theta[..., pair[0]], theta[..., pair[1]]
    labels = names[pair[0]], names[pair[1]], "output weight a" if heads else ""
    return Cloud(name, run.t[: len(states)], x, y, colour), *labels


def _particles(state: AbstractState) -> Particles | None:
    return state.cloud
