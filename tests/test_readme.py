"""The README's example and the preset `single-neuron` are one study, with the same numbers."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

from wideflow import presets
from wideflow.spec.reading import read
from wideflow.study.build import build
from wideflow.study.perform import in_precision, perform

README = Path(__file__).parents[1] / "README.md"
# The limit to fewer digits than either asks for, in both: the same call, in a quarter of the time.
TOLERANCE = "1e-2"


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    """The names that the README's Python block leaves behind."""
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert code.count("tol=1e-4") == 1 and code.count('"figure.png"') == 1
    figure = tmp_path_factory.mktemp("readme") / "figure.png"
    names = {}
    with jax.enable_x64(False):  # what a user has who sets nothing
        exec(code.replace("tol=1e-4", f"tol={TOLERANCE}").replace('"figure.png"', repr(str(figure))), names)
    assert figure.stat().st_size > 10_000
    return names


@pytest.fixture(scope="module")
def by_spec(tmp_path_factory):
    """The runs of the preset with the same names: its first seed, its widest network."""
    text = presets.file("single-neuron").read_text(encoding="utf-8")
    assert next(m for m in read(text).dynamics if m.method == "limit").tol == 1e-4
    spec = read(text, changes=[f"dynamics.limit.tol={TOLERANCE}"])
    folder = tmp_path_factory.mktemp("preset")
    with in_precision(spec):
        study = build(spec, presets.HERE)
        wanted = {"limit": "limit", "mean-field, n = 3000": "net", "frozen kernel": "lazy"}
        chosen = {wanted[c.group]: c for c in study.cases if c.group in wanted and c.seed == spec.seed}
        return {name: perform(study, case, folder / name) for name, case in chosen.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["net", "lazy"])
def test_the_readme_and_the_preset_have_the_same_bits(name, by_hand, by_spec):
    one, other = by_hand[name], by_spec[name]
    assert one.status == other.status == "ok"
    np.testing.assert_array_equal(one.t, other.t)
    np.testing.assert_array_equal(one["risk"], other["risk"])


@pytest.mark.slow
def test_the_readme_and_the_preset_have_the_same_limit(by_hand, by_spec):
    """The preset carries probes along for its pictures, which count in the norm that chooses the time steps:
    the risk is the same up to the tolerance of these steps, a fraction of the error that is reported."""
    one, other = by_hand["limit"], by_spec["limit"]
    assert one.status == other.status == "ok" and one.info["resolution"] == other.info["resolution"]
    error = min(one.info["error"], other.info["error"])
    np.testing.assert_allclose(one["risk"], other["risk"], rtol=0, atol=error)
