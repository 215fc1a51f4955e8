"""What a message quotes of a value that somebody gave: enough to find it again, never 10⁸ letters of it."""

import math
import reprlib
from typing import Any

_LONGEST = 200  # letters
_MOST = 20  # elements of a container
_DIGITS = 40  # of a whole number


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxfrozenset = self.maxarray = _MOST
        self.maxstring = self.maxother = _LONGEST
        self.maxlevel, self.fillvalue = 4, "…"

    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to write out whole numbers of more than a few thousand digits."""
        digits = math.ceil(x.bit_length() * math.log10(2))
        if digits <= _DIGITS:
            return repr(x)
        return f"a {'negative ' if x < 0 else ''}whole number of about {digits} digits"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x[:_LONGEST]) + ("…" if len(x) > _LONGEST else "")


_SHORT = _Short()


def shown(value: Any) -> str:
    """`value` as Python writes it, shortened in the middle where it is long."""
    text = _SHORT.repr(value)
    if len(text) <= 2 * _LONGEST:
        return text
    return f"{text[:_LONGEST]}…{text[-_LONGEST // 2 :]}"
