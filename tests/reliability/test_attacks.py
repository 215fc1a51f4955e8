"""Short attacks by kills and faults of the disk; `make reliability` runs the long ones."""

import jax
import pytest

from reliability import faults, kills


def test_a_disk_that_fails_is_survived_or_told():
    counts = faults.attack(16, 1, names=("Adam", "GradientFlow"))
    assert counts["silent"] == 0
    assert counts["survived"] + counts["told"] == counts["runs"] == 16
    assert min(counts["survived"], counts["told"]) >= 3 and counts["faults"] > 30


def test_a_process_that_is_killed_loses_nothing():
    counts = kills.attack(4, 1, ("Langevin",), jax.config.jax_compilation_cache_dir)
    assert counts["kills"] >= 4 and counts["resumed"] == counts["kills"] and counts["lost"] == 0


@pytest.mark.slow
def test_more_of_them_lose_nothing():
    counts = kills.attack(5, 2, ("limit", "command"), jax.config.jax_compilation_cache_dir)
    assert counts["resumed"] == counts["kills"] >= 5 and counts["lost"] == 0
