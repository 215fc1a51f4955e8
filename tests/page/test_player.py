"""The player's data, decoded here as a browser would decode it, against what was handed in."""

import base64
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from page_cases import cloud, diverged, played
from wellformed import elements, text_of, well_formed
from wideflow.page.axis import LEVELS, Axis, spanned
from wideflow.page.document import Section, document
from wideflow.page.palette import ABSENT, centred, colours
from wideflow.page.player import Cloud, _json


def data_of(made):
    return json.loads(re.search(r'class="wf-data">(.*?)</script>', made, re.DOTALL)[1])


def decoded(coded):
    """x, y, colour (T, n) of one cloud."""
    raw = base64.b64decode(coded["data"])
    size = len(raw) // 5
    parts = np.frombuffer(raw, "<u2", size), np.frombuffer(raw, "<u2", size, 2 * size)
    shape = (-1, coded["points"])
    return *(p.reshape(shape) for p in parts), np.frombuffer(raw, "u1", size, 4 * size).reshape(shape)


# --- what is stored ----------------------------------------------------------------------------


def test_points_are_stored_to_sixteen_bits():
    one = cloud()
    axis_x, axis_y = Axis("x", -5.0, 6.0), Axis("y", -7.0, 8.0)  # all points lie inside
    made = played([one], x_range=(-5, 6), y_range=(-7, 8))
    x, y, colour = decoded(data_of(made)["clouds"][0])
    for given_values, stored, axis in ((one.x, x, axis_x), (one.y, y, axis_y)):
        length = axis.high - axis.low
        back = axis.low + stored / LEVELS * length
        # Half a level, and the rounding of a few operations on numbers of order one.
        assert np.abs(back - given_values).max() <= length / LEVELS / 2 + 1e-12
    limit = np.quantile(np.abs(one.colour), 0.99, method="nearest")
    shown = np.clip(one.colour, -limit, limit)
    assert np.abs((colour.astype(float) - 127) / 127 * limit - shown).max() <= limit / 127 / 2 + 1e-12


def test_four_large_clouds_stay_small():
    made = played([cloud(f"cloud {i}", frames=41, points=1000, seed=i) for i in range(4)])
    assert len(made.encode()) < 1.5e6


def test_points_that_are_not_finite_are_absent():
    one = cloud()
    x, y, c = one.x.copy(), one.y.copy(), one.colour.copy()
    x[1, 2], y[3, 4], c[5, 6] = np.nan, np.inf, -np.inf
    _, _, colour = decoded(data_of(played([Cloud("a", one.t, x, y, c)]))["clouds"][0])
    assert np.argwhere(colour == ABSENT).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_a_diverged_cloud_is_shown_until_it_diverged_and_flattens_none():
    good, bad = cloud(), diverged()
    both, alone = (data_of(played(clouds)) for clouds in ([good, bad], [good]))
    _, _, colour = decoded(both["clouds"][1])
    assert (colour[:5] != ABSENT).all()
    assert (colour[5:] == ABSENT).all()
    # Both start as N(0, 1), so that the axes can differ by a tail only, not by exp(3 t).
    assert abs(np.ptp(decoded(both["clouds"][0])[0]) / np.ptp(decoded(alone["clouds"][0])[0]) - 1) < 0.2
    assert "Points beyond the axes" in played([good, bad])


def test_a_cloud_of_nothing_but_nan_is_a_player_too():
    one = cloud()
    made = played([Cloud("a", one.t, one.x * np.nan, one.y, one.colour)])
    assert (decoded(data_of(made)["clouds"][0])[2] == ABSENT).all()
    assert text_of(made).count("no finite point") == 2  # the first still and the last


def test_each_cloud_shows_its_frame_nearest_to_the_shared_time():
    first = Cloud("a", [0.0, 1.0, 2.0], *np.zeros((3, 3, 1)))
    # float32 makes 1 + 1e-7 of a time that was 1: it is the same time.
    second = Cloud("b", [0.0, 0.9, np.nextafter(np.float32(1), 2), 5.0], *np.zeros((3, 4, 1)))
    made = data_of(played([first, second]))
    assert made["labels"] == ["t = 0", "t = 0.9", "t = 1", "t = 2", "t = 5"]
    assert made["clouds"][0]["frame"] == [0, 1, 1, 2, 2]
    assert made["clouds"][1]["frame"] == [0, 1, 2, 2, 3]


def test_times_on_a_logarithmic_scale_stay_apart():
    t = [0.0, 1e-6, 1e-3, 1.0, 1e3]
    assert len(data_of(played([Cloud("a", t, *np.zeros((3, 5, 1)))]))["labels"]) == 5


# --- axes and colours --------------------------------------------------------------------------


def test_one_runaway_does_not_flatten_the_picture():
    one = cloud(points=1000)
    x = one.x.copy()
    x[:, 0] = 1e6  # one of a thousand, at all times
    axis = spanned("x", [x])
    assert axis.high < 1.1 * one.x.max()
    assert axis.outside(x)
    assert (axis.levels(x)[:, 0] == LEVELS).all()


def test_the_axes_fit_the_whole_motion():
    """A cloud that starts at one point and spreads: all of its frames lie inside, none on the border."""
    spread = np.linspace(0, 1, 21)[:, None] * np.random.default_rng(0).normal(size=400)
    axis = spanned("x", [spread, np.zeros((21, 400))])
    assert not axis.outside(spread)
    length = np.ptp(spread)
    assert axis.low == pytest.approx(spread.min() - 0.04 * length)
    assert axis.high == pytest.approx(spread.max() + 0.04 * length)
    assert "beyond the axes" not in played([Cloud("a", np.arange(21.0), spread, spread, spread)])


def test_many_points_at_one_place_say_so():
    t, still = np.arange(3.0), np.full((3, 400), 0.5)
    moved = still + np.array([0.0, 1.0, 2.0])[:, None] * np.linspace(0, 1, 400)
    made = text_of(played([Cloud("a", t, moved, still, still)]))
    assert made.count("all 400 points") == 1  # in the first still, and not in the last


def test_a_narrow_network_is_not_lost_beside_a_wide_one():
    wide, narrow = np.zeros((10, 10000)), np.array([[-3.0, 3.0]])
    axis = spanned("x", [wide, narrow])
    assert axis.low < -3
    assert axis.high > 3


numbers = st.floats(allow_nan=True, allow_infinity=True)


@settings(deadline=None)
@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=numbers))
def test_any_numbers_make_an_axis(values):
    axis, scale = spanned("x", [values]), centred("c", [values])
    assert np.isfinite([axis.low, axis.high, scale.limit]).all()
    assert axis.low < axis.high
    assert scale.limit > 0
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 6
    assert all(-1e-6 <= place <= 1 + 1e-6 for place, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)
    assert scale.levels(values).max() < ABSENT
    axis.levels(values)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (-1.04, 1.04, ["−1", "−0.5", "0", "0.5", "1"]),
        (0.0, 9.9, ["0", "2", "4", "6", "8"]),
        (-2.1e-5, 2.1e-5, ["−2", "−1", "0", "1", "2"]),
        (1000.1, 1000.9, ["1000.2", "1000.4", "1000.6", "1000.8"]),
    ],
)
def test_ticks_are_round(low, high, texts):
    assert [text for _, text in Axis("x", low, high).ticks()] == texts


def test_a_power_of_ten_stands_beside_the_label():
    assert Axis("x", -2.1e-5, 2.1e-5).name == "x (in 10⁻⁵)"
    assert Axis("x", 0.0, 30.0).name == "x"
    assert "a &lt; b (in 10⁷)" in played([cloud()], x_range=(0, 1e7), x_label="a < b")


def test_colours_are_centred_at_grey():
    scale = centred("c", [np.array([[-2.0, 0.0, 1.0, np.nan]])])
    assert scale.limit == 2
    assert scale.levels(np.array([-5.0, -2.0, 0.0, 2.0, 5.0])).tolist() == [0, 0, 127, 254, 254]
    middle = colours()[127]
    assert len({middle[1:3], middle[3:5], middle[5:7]}) == 1
    blue, orange = (tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in (colours()[0], colours()[-1]))
    assert blue[2] > blue[0]
    assert orange[0] > orange[2]


# --- what is written ---------------------------------------------------------------------------


def test_labels_cannot_break_out():
    nasty = '</script><script>alert(1)</script> & "'
    one = cloud(nasty)
    page = document("a", [Section("b", played([one], x_label=nasty, y_label=nasty, colour_label=nasty))])
    assert well_formed(page)
    assert [a for tag, a in elements(page) if tag == "script"] == [
        {"type": "application/json", "class": "wf-data"},
        {},
    ]


def test_data_cannot_end_its_script():
    made = _json({"a": "</script><!--&"})
    assert not set("<>&") & set(made)
    assert json.loads(made) == {"a": "</script><!--&"}


def test_first_and_last_frame_are_drawn_without_a_script():
    made = played([cloud(), cloud("another", end=5.0)])
    assert [a["aria-label"] for tag, a in elements(made) if a.get("class") == "wf-frame"] == [
        *["a cloud, t = 0", "another, t = 0", "a cloud, t = 10", "another, t = 5"],
    ]
    drawn = re.search(r'<g class="wf-dots".*?</g>', made)[0]
    assert drawn.count("h0") == 40  # a dot for each point; none of the 40 coincide


def test_controls_have_names():
    found = elements(played([cloud()]))
    for tag, name in (("button", "Play"), ("input", "Time")):
        assert [a["aria-label"] for t, a in found if t == tag] == [name]
    assert all(a["aria-label"] for tag, a in found if tag == "canvas")


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(t=np.zeros((2, 2))), r"t must be a vector of strictly increasing times, got shape \(2, 2\)"),
        (dict(t=[]), "t must be a vector"),
        (dict(t=[0.0, 0.0]), r"strictly increasing times, got \[0.0, 0.0\]"),
        (dict(t=[0.0, np.nan]), "t must be finite"),
        (dict(x=np.zeros(2)), r"x must have shape \(T, n\), n >= 1, .* 2 times, got \(2,\)"),
        (dict(y=np.zeros((3, 5))), r"y must have shape .* got \(3, 5\)"),
        (dict(y=np.zeros((2, 4))), r"y must have the shape of x, \(2, 5\), got \(2, 4\)"),
        (dict(colour=np.zeros((2, 0))), r"colour must have shape .* got \(2, 0\)"),
        (dict(colour=np.array([["a"] * 5] * 2)), "colour must hold real numbers, got dtype <U1"),
    ],
)
def test_shapes_that_do_not_fit_are_named(change, message):
    good = dict(label="a", t=[0.0, 1.0], x=np.zeros((2, 5)), y=np.zeros((2, 5)), colour=np.zeros((2, 5)))
    with pytest.raises(ValueError, match=message):
        Cloud(**(good | change))


def test_counts_and_ranges_are_checked():
    with pytest.raises(ValueError, match="clouds must be 1 to 4 clouds, got 0"):
        played([])
    with pytest.raises(ValueError, match=r"got 5\. Try several players"):
        played([cloud()] * 5)
    with pytest.raises(ValueError, match=r"x_range must be \(low, high\) with low < high"):
        played([cloud()], x_range=(1, 1))
    with pytest.raises(ValueError, match="height must be a whole number >= 80"):
        played([cloud()], height=10)
