"""Short attacks of both kinds; the long ones are run by hand (`python tests/reliability/kills.py 1000 0`)."""

import pytest

from reliability import faults, kills


def test_a_disk_that_fails_is_survived_or_told():
    counts = faults.attack(20, 1, names=("Adam", "GradientFlow"))
    assert counts["silent"] == 0
    assert counts["survived"] + counts["told"] == counts["runs"] == 20
    assert min(counts["survived"], counts["told"]) >= 4 and counts["faults"] > 40


def test_a_process_that_is_killed_loses_nothing():
    counts = kills.attack(5, 1, names=("Langevin",))
    assert counts["kills"] >= 5 and counts["resumed"] == counts["kills"] and counts["lost"] == 0


@pytest.mark.slow
def test_more_of_them_lose_nothing():
    counts = kills.attack(16, 2, names=("BirthDeath", "limit", "command"))
    assert counts["resumed"] == counts["kills"] >= 16 and counts["lost"] == 0
