"""Every preset runs through the command, made small: the same spec, fewer neurons, steps and seeds."""

import json
import re

import pytest
from typer.testing import CliRunner

from wellformed import elements, well_formed
from wideflow import presets
from wideflow.cli.app import app

EVERYWHERE = ["times.count=3", "observe.kernel=8", "observe.test=16", "observe.particles=20"]
# Programs to compile are what it takes: no kernel where there is a limit, which would be lifted for it.
SMALL = {
    "single-neuron": [
        *["problem.x.d=5", "dynamics.limit.tol=0.2", "dynamics.limit.probes=16", "times.end=0.5"],
        *["dynamics.mean-field.width=8", "dynamics.NTK.width=8", "dynamics.frozen kernel.width=8"],
        *["dynamics.*.seeds=1", "observe.kernel=0"],
    ],
    "teacher-student": [
        *["times.end=1", "risk.expectation.m=64", "dynamics.*.seeds=1", "dynamics.mean-field.width=8"],
        *["dynamics.NTK.width=8", "dynamics.frozen kernel.width=8"],
    ],
    "two-gaussians": [
        *["problem.x.d=5", "dynamics.limit.tol=0.5", "dynamics.limit.probes=16", "times.end=0.5"],
        *["dynamics.SGD.width=8", "dynamics.SGD.seeds=2", "observe.kernel=0"],
    ],
    "lazy-to-feature": [
        *["times.end=0.5", "risk.expectation.m=64", "dynamics.*.seeds=1", "dynamics.*.width=8"],
    ],
    "noisy": ["times.end=0.2", "risk.expectation.m=64", "dynamics.*.seeds=1", "dynamics.*.width=8"],
    "global-convergence": ["times.end=0.4", "dynamics.*.width=8"],
    "own-data": ["times.end=1", "dynamics.*.seeds=1", "dynamics.*.width=8"],
}
# One of the library's problems and one of a user's data; the others are a minute together.
QUICK = {"noisy", "own-data"}
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
SECTIONS = ["Verdict", "What was run", "Risk", "Neurons", "How far it moved", "Results", "Provenance"]


def quoted(change):
    """A name with a blank is quoted, as in a shell."""
    return re.sub(r"\.([\w-]+ [\w-]+)\.", r'."\1".', change)


def test_every_preset_is_here():
    assert list(SMALL) == presets.names()


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_runs_and_is_reported(name, tmp_path):
    changes = [word for change in EVERYWHERE + SMALL[name] for word in ("--set", quoted(change))]
    args = ["run", name, *changes, "--out", str(tmp_path / name), "--json"]
    done = CliRunner().invoke(app, args, catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["status"] == "ok" and all(run["status"] == "ok" for run in found["runs"])
    networks = [group for group in found["groups"] if group["width"] and not group["linearised"]]
    assert networks and all(group["verdict"] for group in networks)
    assert all(group["risk"]["value"] >= 0 for group in found["groups"])
    assert found["verdict"].endswith(".")
    page = (tmp_path / name / "report.html").read_text("utf-8")
    assert len(page.encode()) < 6e6 and well_formed(page)
    for title in SECTIONS:
        assert f">{title}<" in page
    pictures = [one for tag, one in elements(page) if tag == "img"]
    assert pictures and all(one["src"].startswith("data:") and one["alt"] for one in pictures)
    assert 'class="wf-player"' in page
