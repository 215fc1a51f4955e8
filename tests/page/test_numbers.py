"""Numbers as text, read back: nothing may be lost but what rounding takes."""

import math
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wideflow.page.numbers import plus_minus, short

DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
ABOVE = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"


def read(text):
    """(value, what one unit of its last digit stands for) of a printed number, exactly."""
    digits, _, power = text.strip().partition(" × 10")
    number = Decimal(digits.translate(DIGITS))
    scale = int(power.translate(DIGITS) or 0)
    return number.scaleb(scale), Decimal(1).scaleb(number.as_tuple().exponent + scale)


def read_pair(text):
    """The same for both sides of a ±, a common power taken in."""
    both = re.fullmatch(rf"\((.*) ± (.*)\)( × 10[{ABOVE}]+)", text)
    parts = [both[1] + both[3], both[2] + both[3]] if both else text.split(" ± ")
    return [read(part) for part in parts]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0123, 0.0004, "0.01230 ± 0.00040"),
        (-0.0123, 0.0004, "−0.01230 ± 0.00040"),
        (1.23456, 0.0996, "1.23 ± 0.10"),  # rounding makes the error one digit longer
        (12345.0, 678.0, "(1.234 ± 0.068) × 10⁴"),  # 12345 is a tie, which goes to the even digit
        (1.234e-5, 1.2e-6, "(1.23 ± 0.12) × 10⁻⁵"),
        (1.234e8, 1.2e6, "(1.234 ± 0.012) × 10⁸"),
        (0.0, 0.02, "0.000 ± 0.020"),
        (-1e-9, 0.02, "0.000 ± 0.020"),  # no minus before nothing
        (0.5, 0, "0.5 ± 0"),
        (1 / 3, 1e-14, "0.3333333333 ± 1 × 10⁻¹⁴"),  # an error far below the digits that are shown
        (None, 1, "–"),
        (math.nan, 1, "–"),
        (math.inf, 1, "–"),
        (0.5, None, "0.5 ± –"),
        (0.5, math.inf, "0.5 ± –"),
        (np.float32(0.5), np.array(0.25), "0.50 ± 0.25"),
    ],
)
def test_a_value_with_its_error(value, error, text):
    assert plus_minus(value, error) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(0, "0"), (-0.0, "0"), (3000, "3000"), (123456, "123456"), (0.5, "0.5"), (0.012345, "0.0123")],
        *[(-1.5e-5, "−1.5 × 10⁻⁵"), (1e7, "1 × 10⁷"), (9.996, "10"), (1234.5, "1230"), (True, "1")],
        *[(None, "–"), (math.nan, "–"), (-math.inf, "–")],
    ],
)
def test_a_short_value(value, text):
    assert short(value) == text


def test_an_error_below_zero_is_refused():
    with pytest.raises(ValueError, match="error must be a number >= 0"):
        plus_minus(1.0, -0.1)


magnitudes = st.floats(1e-300, 1e300)
signed = st.tuples(magnitudes, st.sampled_from([1, -1])).map(lambda pair: pair[0] * pair[1])
# Errors between all of the value and a millionth of it: there the two share a place.
shares = st.floats(1e-6, 1)


@given(signed, shares)
def test_what_is_read_back_is_within_rounding(value, share):
    error = abs(value) * share
    (shown, place), (shown_error, place_error) = read_pair(plus_minus(value, error))
    assert place == place_error
    # Half a unit of the last place, exactly: decimals do not round here.
    assert abs(shown - Decimal(value)) <= place / 2
    assert abs(shown_error - Decimal(error)) <= place / 2
    # Two significant digits: 10 to 99 units of the last place.
    assert 10 <= shown_error / place <= 99


@given(signed, magnitudes)
def test_no_pair_is_shown_wrong(value, error):
    """Also where error and value are of unlike size."""
    (shown, place), (shown_error, place_error) = read_pair(plus_minus(value, error))
    # An error far below the value has a power of its own: ten digits of the value, two of the error.
    apart = error < abs(value) * 1e-8
    assert abs(shown - Decimal(value)) <= (abs(Decimal(value)) * Decimal("5e-10") if apart else place / 2)
    assert abs(shown_error - Decimal(error)) <= (Decimal(error) / 20 if apart else place_error / 2)
    assert len(plus_minus(value, error)) <= 40


@given(signed, st.integers(1, 8))
def test_a_short_value_is_within_rounding(value, digits):
    shown, _ = read(short(value, digits))
    # Half of the last of so many digits is at most 5·10^−digits of the value.
    assert abs(shown - Decimal(value)) <= abs(Decimal(value)) * 5 * Decimal(10) ** -digits
