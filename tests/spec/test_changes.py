"""`--set` reaches every field of every table, short forms and lists included, and says what it cannot do."""

import json
import tomllib

import pytest
from pydantic import ValidationError

from spec.examples import EXAMPLES, NEURON, POLYNOMIAL
from wideflow.spec import forms
from wideflow.spec.changes import changed, located, read_value
from wideflow.spec.errors import SpecError
from wideflow.spec.paths import dotted, parsed
from wideflow.spec.places import places
from wideflow.spec.reading import load, read
from wideflow.spec.words import choices

FIELDS = [(place, key) for place in places() for key in place.table.model_fields]
# What must stand beside a field whose table says that two keys go together.
BESIDE = {
    **{key: {"end": 5.0} for key in ["times.end", "times.count", "times.spacing"]},
    "times.first": {"end": 5.0, "spacing": "log"},
}


def candidates(form):
    """Values of every kind, the more telling first."""
    yield from reversed(choices(form))
    yield from [
        3,
        2,
        0.25,
        True,
        False,
        "some text",
        [0, 1, 2],
        [1, 2],
        [1, 2, 3],
        ["p", "q"],
        [[0, 1], [1, 0]],
    ]
    yield from [list(reversed(choices(form.item)))] if form.item is not None else []
    yield from ({tag: word} for tag, word in [("law", "normal"), ("way", "sample"), ("kind", "mlp")])
    yield from [{"end": 1.0}, {"mirrored": True}, {"noise": 1.0}, {"path_norm": 1.0}, {"kernel": 3}]
    for table in form.tables:
        yield minimal(table, form.tag)
    if form.item is not None:
        yield from ([minimal(table, form.item.tag)] for table in form.item.tables)


def minimal(table, tag):
    """The least that makes such a table."""
    made = {tag: forms.tag_value(table, tag)} if tag else {}
    for key, info in table.model_fields.items():
        if info.is_required() and key not in made:
            made[key] = value_for(forms.of(table, key))
    return made | ({"end": 1.0} if "spacing" in table.model_fields else {})


def value_for(form, default=None):
    """A valid value that is not the default."""
    for value in candidates(form):
        try:
            if form.adapter.validate_python(value) != default:
                return value
        except ValidationError:
            pass
    raise AssertionError(f"no value for {form.annotation}")


GRID = "{low=-1.0, high=1.0, cells=4}"
# Options of densities, that neurons do not have: a grid has to be there first.
ON_GRID = {("Jko", "epsilon"), ("FisherRao", "beta")}


def toml(value):
    """A value as one would type it; inline tables are TOML too."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def there(place):
    """The changes that put a table, and all that must be around it, in its place."""
    above = there(place.parent) if place.parent is not None else []
    name = place.name.replace("*", "0")
    return [*above, f"{name}={toml(minimal(place.table, place.form.tag))}"] if name else above


@pytest.mark.parametrize("place, key", FIELDS, ids=[f"{p.table.__name__}-{p.field(k)}" for p, k in FIELDS])
def test_every_field_is_reached(place, key):
    name = place.field(key).replace("*", "0")
    form, info = forms.of(place.table, key), place.table.model_fields[key]
    tagged = key == place.form.tag
    default = None if info.is_required() or tagged else info.get_default(call_default_factory=True)
    value = forms.tag_value(place.table, key) if tagged else value_for(form, default)
    before = there(place)
    if place.name == "times":
        before += [f"times={toml(BESIDE.get(name, {'at': [0, 1]}))}"]
    if (place.table.__name__, key) in ON_GRID:
        before += [f"dynamics.0.grid={GRID}"]
    spec = read(NEURON, changes=[*before, f"{name}={toml(value)}"])
    found = spec
    for part in parsed(name):
        found = found[int(part)] if isinstance(found, list) else getattr(found, part)
    assert found == form.adapter.validate_python(value)
    assert tagged or found != default


def test_an_element_goes_by_its_name_its_method_or_its_index():
    assert read(NEURON, changes=["dynamics.wide.step=0.5"]).dynamics[1].step == 0.5
    assert read(NEURON, changes=["dynamics.1.step=0.5"]).dynamics[1].step == 0.5
    assert read(NEURON, changes=["dynamics[1].step=0.5"]).dynamics[1].step == 0.5
    assert read(POLYNOMIAL, changes=["dynamics.gradient_flow.width=7"]).dynamics[0].width == [7]
    assert read(POLYNOMIAL, changes=['dynamics."twice as wide".width=7']).dynamics[1].width == [7]
    assert read(POLYNOMIAL, changes=["dynamics.twice as wide.width=7"]).dynamics[1].width == [7]


def test_a_star_is_every_element_that_has_the_field():
    spec = read(NEURON, changes=["dynamics.*.seeds=9", "dynamics.*.alpha=2"])
    assert [getattr(method, "seeds", None) for method in spec.dynamics] == [None, 9, 9]
    assert [method.alpha for method in spec.dynamics] == [2, [2], [2]]


def test_one_past_the_end_is_a_new_element():
    spec = read(NEURON, changes=["dynamics.3.method=adam", "dynamics.adam.step=1e-3", "dynamics.1.width.3=5"])
    assert spec.dynamics[3].method == "adam"
    assert spec.dynamics[1].width == [30, 300, 3000, 5]


def test_short_forms_are_written_out():
    spec = read(
        NEURON, changes=["problem.neuron.bias=true", "problem.loss.name=huber", "problem.loss.delta=2"]
    )
    assert spec.problem.neuron.bias and spec.problem.neuron.activation.name == "erf"
    assert spec.problem.loss.delta == 2
    deep = read(
        NEURON, changes=["problem.neuron.activation.name=hermite", "problem.neuron.activation.degree=2"]
    )
    assert deep.problem.neuron.activation.degree == 2
    assert read(NEURON, changes=["dynamics.lazy.width.0=4"]).dynamics[2].width == [4]
    number = read(NEURON, changes=["start.a.law=signs"])
    assert number.start.a.law == "signs"


@pytest.mark.parametrize(
    "raw, value",
    [
        ("20", 20),
        ("1e-2", 0.01),
        ("inf", float("inf")),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ("{a = 1}", {"a": 1}),
        ('"20"', "20"),
        ("'a'", "a"),
        ("mlp", "mlp"),
        ("sqrt(n)", "sqrt(n)"),
        ("two words", "two words"),
        ("[1, 2", "[1, 2"),
        ("1\nother = 2", "1\nother = 2"),
        ("9" * 5000, "9" * 5000),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_a_value_is_toml_or_else_text(raw, value):
    assert read_value(raw) == value and type(read_value(raw)) is type(value)


def refused(*changes, text=NEURON):
    with pytest.raises(SpecError) as caught:
        read(text, changes=changes)
    return str(caught.value)


@pytest.mark.parametrize(
    "change, said",
    [
        ("dynamics.wide.stpe=1", "unknown key; did you mean 'step'?"),
        ("dynamics.wied.step=1", "no element of dynamics is called 'wied'; did you mean 'wide'?"),
        ("dynamics.7.step=1", "no element of dynamics is called '7'; There are: limit, wide, lazy"),
        ("dynamics.*.nonsense=1", "no element of dynamics has 'nonsense'"),
        ("problm.noise=1", "unknown key; did you mean 'problem'?"),
        ("seed=", "nothing after =; write a value, or seed='\"\"' for an empty text"),
        ("seed.x=1", "seed is not a table, so there is no 'x' in it"),
        ("seed", "a change is key=value, such as problem.x.d=20"),
        ("a..b=1", '"a..b" names no field; write it as in dynamics.sgd.step=0.01'),
        ("=1", '"" names no field'),
        ("dynamics.wide.step=-1", "must be a number > 0, got -1 (step size η; time is t = kη)"),
        ("problem.x.d=ten", 'must be a whole number >= 1 and < 2^53, or inf, got "ten"'),
    ],
)
def test_an_error_names_the_change(change, said):
    assert any(line.startswith(f"--set {change}: ") and said in line for line in refused(change).split("\n"))


def test_what_a_change_leaves_missing_is_said_of_the_change():
    assert refused("start.b.sd=2").startswith("--set start.b.sd=2: start.b.law: missing: it says which table")


def test_leftovers_of_another_kind_are_named_with_the_kind_they_go_with():
    said = refused("problem.x.law=sphere", text=POLYNOMIAL)
    assert 'unknown key with law = "sphere"; it goes with "gaussian"' in said
    assert "spec.toml:1: problem.x.covariance" in said


def test_two_of_a_name_are_told_apart_by_index():
    twice = NEURON.replace('name = "lazy"', 'name = "wide"')
    assert "write dynamics.1 or dynamics.2" in refused("dynamics.wide.step=1", text=twice)


def test_all_wrong_changes_are_reported_with_the_mistakes_of_the_file():
    said = refused("seed=", "dynamics.no.step=1", text=NEURON.replace("neuron =", "nueron ="))
    assert len(said.split("\n")) == 3 and "did you mean 'neuron'?" in said


@pytest.mark.parametrize("depth", [40, 200, 300, 400, 480, 5000])
def test_a_value_without_end_is_refused(depth):
    said = refused("problem.x=" + "[" * depth + "]" * depth)
    assert said.startswith("--set problem.x=[[") and ("nested" in said or "must be a table" in said)


def test_later_changes_are_made_on_top_and_the_data_stay_as_they_were():
    data = tomllib.loads(NEURON)
    made = changed(data, ["seed=1", "seed=2", "dynamics.0={method='limit'}", "dynamics.limit.tol=0.1"])
    assert made["seed"] == 2 and made["dynamics"][0] == {"method": "limit", "tol": 0.1}
    assert data == tomllib.loads(NEURON)


def test_the_seed_of_the_command_line():
    assert read(NEURON, seed=8).seed == 8
    with pytest.raises(SpecError, match=r"^--seed -1: seed: must be a whole number >= 0"):
        read(NEURON, seed=-1)


def test_every_name_that_an_error_prints_is_one_that_set_understands():
    for text in EXAMPLES.values():
        document = load(text).document
        for path in document.lines:
            name = dotted(path, document.data)
            assert located(name, document.data) == path
            assert parsed(name) is not None
