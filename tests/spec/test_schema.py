"""The published JSON schema: up to date, complete, and of one mind with the typed model."""

import json
import tomllib
from pathlib import Path

import pytest

import wideflow as wf
from spec.examples import EXAMPLES, NEURON
from wideflow.spec import schema
from wideflow.spec.changes import changed
from wideflow.spec.errors import SpecError
from wideflow.spec.reading import read
from wideflow.spec.writing import written

PUBLISHED = json.loads(schema.FILE.read_text(encoding="utf-8"))


def test_the_file_is_up_to_date():
    assert schema.FILE.read_text(encoding="utf-8") == schema.text(), "run python -m wideflow.spec.schema"


def objects(node):
    """Every table of the schema."""
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict) and node.get("type") == "object":
            yield node
        for inner in node.values():
            yield from objects(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from objects(inner)


def test_every_key_is_described_and_no_other_is_allowed():
    tables = list(objects(PUBLISHED))
    assert len(tables) > 30
    for table in tables:
        assert table["additionalProperties"] is False
        for key, field in table["properties"].items():
            assert field.get("description"), (table.get("description"), key)
    assert '"null"' not in json.dumps(PUBLISHED)


@pytest.fixture
def check():
    jsonschema = pytest.importorskip("jsonschema", reason="an oracle of the schema; pip install jsonschema")
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)
    return jsonschema.Draft202012Validator(PUBLISHED).is_valid


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_valid_as_written_and_with_defaults(check, name):
    assert check(tomllib.loads(EXAMPLES[name]))
    assert check(tomllib.loads(written(read(EXAMPLES[name]))))


PRESETS = sorted(Path(wf.__file__).parent.rglob("*.toml"))


@pytest.mark.parametrize("file", PRESETS, ids=lambda file: file.stem)
def test_presets_are_valid(check, file):
    text = file.read_text(encoding="utf-8")
    assert check(tomllib.loads(text))
    assert check(tomllib.loads(written(read(text, file.name))))


CHANGES = [
    'problem.neuron="relu"',
    "problem.neuron={activation='relu'}",
    "problem.neuron={activation={name='relu'}}",
    "problem.neuron={name='relu'}",
    "problem.neuron=3",
    'problem.loss="huber"',
    "problem.loss={name='huber', delta=1.0}",
    'problem.loss="hubert"',
    "dynamics.wide.width=30",
    "dynamics.wide.width=[30, 300]",
    "dynamics.wide.width=0",
    "dynamics.wide.width=[]",
    "dynamics.lazy.alpha='sqrt(n)'",
    "dynamics.lazy.alpha=2",
    "dynamics.lazy.alpha=[2, 'sqrt(n)']",
    "dynamics.lazy.alpha=[]",
    "dynamics.lazy.alpha=-1",
    "dynamics.lazy.parametrisation='mup'",
    "dynamics.lazy.parametrisation=['mup', {a=[0, 0], b=[0, 0], c=[0, 0]}]",
    "dynamics.lazy.parametrisation={a=[0], b=[0, 0], c=[0, 0]}",
    "problem.x.covariance=[[1, 2], [3, 4]]",
    "problem.x.covariance='a'",
    "problem.x.d=inf",
    "problem.x.d=0",
    "problem.x.law='cube'",
    "start.kind='mlp'",
    "start.a={law='signs'}",
    "start.a={sd=1}",
    "risk.expectation.way='sample'",
    "risk.expectation.m=3",
    "nonsense=1",
    "times.count=1",
    "observe.cloud=['a']",
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_schema_and_the_model_agree(check, change):
    """On all but what goes between keys; `start.kind` is set where it leaves keys of another kind behind."""
    data = changed(tomllib.loads(NEURON), [change])
    try:
        read(NEURON, changes=[change])
    except SpecError:
        assert not check(data)
    else:
        assert check(data)
