"""Programs of presets, compiled ahead of time."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from wideflow.cli.app import app

RUN = """
import sys
import jax
missed = []
jax.monitoring.register_event_listener(
    lambda event, **_: missed.append(event) if event == "/jax/compilation_cache/cache_misses" else None
)
from wideflow.cli.app import main
sys.argv = ["wideflow", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("missed", len(missed))
"""


def test_where_nothing_is_kept_there_is_nothing_to_warm_up(monkeypatch):
    monkeypatch.setenv("WIDEFLOW_CACHE", "off")
    result = CliRunner().invoke(app, ["presets", "noisy", "--warm-up", "--json"])
    assert result.exit_code == 2
    assert "WIDEFLOW_CACHE" in json.loads(result.stdout)["message"]


@pytest.mark.parametrize("args", [["nosy", "--warm-up"], ["noisy", "--warm-up", "--copy", "folder"]])
def test_what_is_refused(args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["presets", *args])
    assert result.exit_code == 2
    assert not list(tmp_path.iterdir())
    assert "noisy" in result.stderr or "--copy" in result.stderr


@pytest.mark.slow
def test_a_run_after_it_compiles_nothing(tmp_path):
    """In a process of its own, which counts what it does not find among the kept programs."""
    env = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    env |= {"WIDEFLOW_CACHE": str(tmp_path / "cache")}
    child = lambda *args: (
        subprocess.run(
            [sys.executable, "-c", RUN, *args],
            capture_output=True,
            text=True,
            check=True,
            env=env,
            cwd=tmp_path,
        ).stdout
    )
    warmed = child("presets", "own-data", "--warm-up")
    assert "own-data" in warmed and int(warmed.split()[-1]) > 0  # the first one does compile
    assert not (tmp_path / "out").exists()
    assert int(child("run", "own-data").split()[-1]) == 0
