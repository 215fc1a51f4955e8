"""Numbers as text: a measured value with its error, and a short value."""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from .._shown import shown

NOTHING = "–"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Between these powers of ten a number is written out; beyond them its zeros are hard to count.
_SMALLEST, _LARGEST = -3, 5
# Nobody reads more digits than this; the error is then written with its own power of ten.
_DIGITS = 10


def plus_minus(value: object, error: object) -> str:
    """ "0.01234 ± 0.00040": the error to two significant digits, the value to the same place.

    Powers of ten stand behind both: "(1.23 ± 0.40) × 10⁻⁵". A value that is None, NaN or infinite is "–";
    an error of that kind is "–" behind the value.
    """
    value, error = _number(value), _number(error)
    if error < 0:
        raise ValueError(f"error must be a number >= 0, got {shown(error)}. Try abs(error).")
    if not math.isfinite(value):
        return NOTHING
    if not math.isfinite(error):
        return f"{short(value)} ± {NOTHING}"
    if error == 0:
        return f"{short(value, _DIGITS)} ± 0"
    place = _exponent(error, 2) - 1
    top = max(_exponent(value, 17) if value else place, place + 1)
    if top - place >= _DIGITS:
        return f"{short(value, _DIGITS)} ± {short(error, 2)}"
    # A zero before the decimal point does not say whether it is a digit: "12340 ± 680" is not written.
    power = 0 if _SMALLEST <= top <= _LARGEST and place <= 0 else top
    digits = [_rounded(v, place, power) for v in (value, error)]
    return f"({digits[0]} ± {digits[1]}){_power(power)}" if power else f"{digits[0]} ± {digits[1]}"


def estimate(entry: Mapping[str, object] | None, digits: int = 3) -> str:
    """{"value": …, "error": …} with its error, or to `digits` digits where that is 0 or not known."""
    if entry is None:
        return "–"
    value, error = entry["value"], entry["error"]
    return plus_minus(value, error) if error else short(value, digits)


def short(value: object, digits: int = 3) -> str:
    """`value` to a few significant digits, as "0.0123", "1.2 × 10⁻⁵" or "3000"; "–" for None, NaN, ±inf.

    Whole numbers below a million are written in full.
    """
    value = _number(value)
    if not math.isfinite(value):
        return NOTHING
    if value == round(value) and abs(value) < 10 ** (_LARGEST + 1):
        return _signed(f"{value:.0f}")
    exponent = _exponent(value, digits)
    power = 0 if _SMALLEST <= exponent <= _LARGEST else exponent
    text = _rounded(value, exponent - digits + 1, power)
    return (text.rstrip("0").rstrip(".") if "." in text else text) + _power(power)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _exponent(value: float, digits: int) -> int:
    """e, where |value| rounded to `digits` significant digits is d.ddd × 10^e."""
    return int(f"{value:.{digits - 1}e}".split("e")[1])


def _rounded(value: float, place: int, power: int) -> str:
    """value / 10^power, where the last digit that is kept stands for 10^place (in decimals: no overflow)."""
    kept = Decimal(round(Decimal(value).scaleb(-place))).scaleb(place - power)
    return _signed(f"{kept:.{max(power - place, 0)}f}")


def power_of_ten(value: float) -> int:
    """e, where `value` is to be written as a multiple of 10^e; 0 where it is written out."""
    exponent = _exponent(value, 17) if value else 0
    return 0 if _SMALLEST <= exponent <= _LARGEST else exponent


def ten_to(power: int) -> str:
    """The power as text, such as 10⁻⁵."""
    return f"10{str(power).translate(_SUPERSCRIPTS)}"


def _power(power: int) -> str:
    return f" × {ten_to(power)}" if power else ""


def _signed(text: str) -> str:
    """With a true minus, and none before zero."""
    zero = not text.strip("-0.")
    return text.removeprefix("-") if zero else text.replace("-", "−")
