"""The verdict answers the study's question: sentences on rows made by hand, and the question of a spec."""

import re

import pytest

from study.specs import spec
from wideflow import presets
from wideflow.spec.reading import load
from wideflow.study.answers import answer
from wideflow.study.answers.base import MOST
from wideflow.study.answers.convergence import compared
from wideflow.study.questions import question
from wideflow.verdicts import AGREE, DIFFER, QUESTIONS, REGIMES, UNDECIDED


def number(value, error=None):
    return {"value": value, "error": error}


def settled(value, error=0.0, drift=0.0, way=1.0):
    return {"value": value, "error": error, "drift": drift, "way": way}


def row(name="net", **more):
    """What `results` says of a group: a network of 4 neurons that is lazy, compared with nothing."""
    keys = ("kernel movement", "risk", "risk of limit", "free energy error")
    gaps = [f"{what} gap to {which}" for what in ("risk", "function") for which in ("limit", "frozen kernel")]
    fixed = {
        "name": name,
        "method name": name,
        "method": "langevin",
        "width": 4,
        "scaling": "α = 1",
        "seeds": 2,
        "ended": 2,
        "status": "ok",
        "linearised": False,
        "same scale as limit": True,
        "verdict": "lazy",
        "temperature": 0.0,
        "family": "",
        "coordinates": 3,
        "settled": {"free energy": None, "energy": None, "risk": settled(1.0)},
    }
    return dict.fromkeys((*keys, *gaps)) | fixed | more


def at(free, temperature=0.0, error=0.0, **more):
    """A row that settled at this free energy."""
    entries = {"free energy": settled(free, error, **more), "energy": settled(free), "risk": settled(free)}
    return {"settled": entries, "temperature": temperature, "family": str(temperature)}


def test_the_regime_has_the_numbers_behind_it():
    moved = {"kernel movement": number(0.25, 0.01)}
    said = answer("regime", [row(), row(width=9, **moved)])
    assert re.search(r"n = 9.*is lazy.* 25(\.0)? ± 1(\.0)? %", said.lead)
    assert "n = 4" not in said.lead + "".join(said.points)  # the widest speaks for all
    assert "no verdict" in answer("regime", [row(verdict=""), row(width=None)]).lead


def test_five_networks_are_told_and_the_rest_counted():
    rows = [row(scaling=f"α = {i}", **{"kernel movement": number(i / 100)}) for i in range(1, 10)]
    lead, points = answer("regime", rows)
    assert lead == "All 9 networks are lazy (their kernels moved by 1 to 9 %)."
    assert len(points) == MOST + 1 and points[-1] == "4 more in the table of results."
    assert "α = 1)" in points[0] and "α = 9)" in points[-2]  # both ends of the sweep
    rows[0]["verdict"] = "feature-learning"
    lead = answer("regime", rows).lead
    assert lead.startswith("Net (n = 4, α = 1) learns features") and "8 of 9 networks are lazy" in lead


def test_starts_that_come_together_and_starts_that_do_not():
    hot = [row(f"hot {i}", **at(0.5 + 0.001 * i, 1 / 60, 0.002)) for i in range(3)]
    cold = [row(f"cold {i}", **at(0.1 * (i + 1))) for i in range(3)]
    lead, points = answer("convergence", cold + hot)
    assert lead.startswith("With noise (β = 60) all 3 starts end at the same free energy F, F = 0.501")
    assert "largest difference 0.0020 ± 0.0028" in lead  # √2 · 0.002
    assert lead.endswith(
        "without noise they do not come to the same free energy F: F ends between 0.1 and 0.3."
    )
    assert len(points) == 4 and points[0] == "hot 0: F settles at 0.5000 ± 0.0020."
    assert "lazy" not in lead
    assert "nothing to compare" in answer("convergence", [row(**at(0.5))]).lead
    broken = [row("a", **at(0.5)), row("b", status="diverged", **at(0.7))]
    assert "nothing to compare" in answer("convergence", broken).lead


def test_no_question_is_answered_where_no_network_came_to_its_end():
    broken = [row("a", status="diverged", ended=0, verdict=""), row("limit", width=None)]
    for word in QUESTIONS:
        assert answer(word, broken).lead == "There is no verdict: no network came to its end."


# Differences and errors on a way of length 1: chance, below a fiftieth, real, hidden by error bars.
SAME = {
    "chance": ([settled(0.5, 0.02), settled(0.55, 0.01)], AGREE),
    "small": ([settled(0.5, 1e-4), settled(0.515, 1e-4)], AGREE),
    "real": ([settled(0.5, 0.01), settled(0.6, 0.01)], DIFFER),
    "hidden": ([settled(0.5, 0.1), settled(0.6, 0.1)], UNDECIDED),
    "exact": ([settled(0.5, way=0.0), settled(0.5, way=0.0)], AGREE),
}


@pytest.mark.parametrize("name", SAME)
def test_when_values_agree(name):
    entries, word = SAME[name]
    assert compared(entries).word == word


def test_what_still_moves_is_counted():
    assert compared([settled(0.5, drift=-0.1), settled(0.5)]).moving == 1
    lead = answer("convergence", [row("a", **at(0.1, drift=-0.1)), row("b", **at(0.9))]).lead
    assert lead.endswith("0.9, 1 of 2 still moving.")


def test_the_distance_is_that_of_the_closest_and_falls_with_the_width():
    def wide(n):
        gaps = {
            "risk gap to limit": number(1 / n, 0.01 / n),
            "function gap to limit": number(n**-0.5, 0.01 * n**-0.5),
        }
        return row(width=n, **gaps)

    lead, points = answer("distance", [wide(n) for n in (100, 400, 1600)])
    assert lead.startswith(
        "Net (n = 1600, α = 1) stays within (6.250 ± 0.063) × 10⁻⁴ of the infinite-width limit"
    )
    assert re.search(r"n\^\(−0\.5000 ± 0\.00\d+\)\.$", lead) and len(points) == 3
    assert answer("distance", [wide(n) for n in (100, 400)]).lead.endswith(
        "at n = 400 the gap is 0.5 of that at n = 100."
    )
    frozen = row(**{"risk gap to frozen kernel": number(0.25), "same scale as limit": False})
    assert "0.25 of its own frozen kernel" in answer("distance", [frozen]).lead
    assert 'method = "limit"' in answer("distance", [row()]).lead


def test_the_cost_of_noise_is_a_difference_with_its_error():
    rows = [row("cold", **at(0.1, 0.0, 0.003)), row("hot", **at(0.5, 0.1, 0.004))]
    for one, error in zip(rows, (0.003, 0.004), strict=True):
        one["settled"] |= {name: one["settled"][name] | {"error": error} for name in ("risk", "energy")}
    lead, points = answer("noise", rows)
    assert lead == (
        "Noise raises the risk from 0.1000 ± 0.0030 without noise to 0.5000 ± 0.0040 at β = 10 "
        "(0.4000 ± 0.0050 more)."
    )
    assert "D/(2β) = 0.15 more" in points[0]  # 3 coordinates at 1/β = 0.1
    assert "no run without noise" in answer("noise", rows[1:]).lead
    assert "no noise to weigh" in answer("noise", rows[:1]).lead


def test_the_question_is_that_of_the_spec_or_of_its_dynamics():
    gd = {"method": "gradient_descent", "step": 0.1, "width": 6}
    noisy = lambda beta: {"method": "langevin", "step": 0.1, "beta": beta, "name": f"{beta}"}
    start = lambda a: gd | {"start": {"a": a}, "name": f"{a}"}
    cases = {
        "regime": [gd],
        "convergence": [start(1.0), start(2.0)],
        "noise": [noisy(float("inf")), noisy(10.0)],
        "distance": [gd, {"method": "limit"}],
    }
    for word, dynamics in cases.items():
        assert question(spec(dynamics=dynamics)) == word
    assert question(spec(dynamics=[gd | {"alpha": 3.0}, {"method": "limit"}])) == "regime"
    assert question(spec("question=noise")) == "noise"
    assert set(cases) == set(QUESTIONS)


def test_every_preset_names_its_question():
    asked = {
        name: load(presets.file(name).read_text("utf-8"), name).spec.question for name in presets.names()
    }
    assert all(asked.values())
    assert asked["global-convergence"] == "convergence" and asked["noisy"] == "noise"


def test_the_words_of_all_verdicts_have_a_meaning():
    assert all(all(meaning) for meaning in REGIMES.values())
