"""The table of claims is whole, and is read without loading what it lists."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wideflow.experiments
from wideflow.experiments.catalogue import _ALL, EXPERIMENTS, chosen, listing
from wideflow.references import REFERENCES

FOLDER = Path(wideflow.experiments.__file__).parent


def _runs(path):
    """Whether a file has a function `run(say, settings)` of its own: that makes it an experiment."""
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return any(f.name == "run" and [a.arg for a in f.args.args] == ["say", "settings"] for f in functions)


def test_every_experiment_of_the_folder_is_listed_once():
    files = {path.stem for path in FOLDER.glob("*.py") if _runs(path)}
    assert files == {experiment.module for experiment in EXPERIMENTS.values()}
    assert len(EXPERIMENTS) == len(_ALL) == len({experiment.claim for experiment in _ALL})


@pytest.mark.parametrize("experiment", _ALL, ids=lambda e: e.name)
def test_each_loads_and_has_sources(experiment):
    full, reduced = experiment.load(), experiment.load(reduced=True)
    assert full.func.__module__ == f"wideflow.experiments.{experiment.module}"
    sizes = full.keywords["settings"], reduced.keywords["settings"]
    assert full.func is reduced.func and type(sizes[0]) is type(sizes[1])
    assert sizes[0] is full.func.__defaults__[0] is not sizes[1]
    assert experiment.sources and set(experiment.sources) <= set(REFERENCES)
    assert experiment.minutes > 0 and experiment.claim.endswith(".")


def test_a_list_loads_neither_jax_nor_experiments():
    """Pages and records are read without them too."""
    code = (
        "import sys; from wideflow.experiments import catalogue, pages, records, reproduction\n"
        "catalogue.listing(), catalogue.chosen()\n"
        "slow = {'jax', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "slow |= {e.name for e in catalogue._ALL if 'wideflow.experiments.' + e.module in sys.modules}\n"
        "sys.exit(', '.join(sorted(slow)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_rows_and_names():
    rows = listing()
    assert [row["name"] for row in rows] == list(EXPERIMENTS)
    assert all(row.keys() == {"name", "claim", "source", "minutes"} for row in rows)
    assert chosen() == list(_ALL)
    assert [e.name for e in chosen(["three-ways", "abc-table", "three-ways"])] == ["three-ways", "abc-table"]
    with pytest.raises(ValueError, match="Did you mean 'sgd-tracks-flow'"):
        chosen(["abc-table", "sgd-track-flow"])
