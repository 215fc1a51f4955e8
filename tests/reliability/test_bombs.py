"""Files that would fill the memory, block forever or run code are refused in words."""

import pytest

from reliability.bombs import attack


def refused(counts: dict[str, int]) -> None:
    assert counts["dead"] == counts["wrong"] == counts["slow"] == counts["harmless"] == 0, counts
    assert counts["refused"] == counts["files"]


def test_some_hostile_files():
    refused(attack(30, seed=0))


@pytest.mark.slow
def test_all_hostile_files():
    counts = attack(1000, seed=0)
    refused(counts)
    assert counts["kinds"] >= 40
