"""The figure of coupled dynamics: every layer has a look of its own."""

from types import SimpleNamespace

import numpy as np
import pytest

from wideflow.diagnostics.coupling import Coupled


class _Run(SimpleNamespace):
    def __getitem__(self, name):
        return self.risk


@pytest.mark.parametrize("layers", [7, 18])
def test_no_two_layers_look_alike(layers, tmp_path):
    t = np.linspace(0, 1, 5)
    runs = [_Run(t=t, risk=0.2 * np.exp(-rate * t)) for rate in (1.0, 1.2)]
    moves = {f"layer {i}": i * t for i in range(1, layers + 1)}
    figure = Coupled(*runs, t, 0 * t, t, moves, 1 - t).plot(tmp_path / "coupled.png")
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[1].lines}
    assert len(looks) == layers + 1  # and all of them together
    figure.canvas.draw()
    # Within one decade the ticks of risk are plain numbers, three or more.
    low, high = figure.axes[0].get_ylim()
    shown = [
        label.get_text()
        for label, at in zip(figure.axes[0].get_yticklabels(), figure.axes[0].get_yticks(), strict=True)
        if low <= at <= high
    ]
    assert len(shown) >= 3 and all(0.05 < float(text) < 0.25 for text in shown)
