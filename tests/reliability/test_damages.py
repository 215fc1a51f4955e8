"""Nothing that is damaged or edited is taken for whole."""

import pytest

from reliability.damages import attack


def noticed(counts: dict[str, int]) -> None:
    assert counts["silent"] == counts["wrong"] == 0, counts
    # what is harmless is white space in JSON, the seventeenth digit of a double, a letter of a column's name
    assert counts["noticed"] > 0.98 * counts["damages"], counts


def test_random_damage_is_noticed_with_a_files_name():
    noticed(attack(250, seed=0))


@pytest.mark.slow
def test_much_random_damage():
    noticed(attack(4000, seed=1))
