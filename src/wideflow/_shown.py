"""What a message quotes of a value that somebody gave: enough to find it again, never 10⁸ letters of it."""

import math
import re
import reprlib
from typing import Any

_LONGEST = 200  # letters
_MOST = 20  # elements of a container
_DIGITS = 40  # of a whole number
_WORD = re.compile(r"\S{1000,}")  # longer than any name of a file that somebody has


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
    """`value` as Python writes it, shortened in the middle where it is long; its type, if it does not write
    itself."""
    try:
        text = _SHORT.repr(value)
    except Exception:  # a message about what is wrong must not fail for it
        text = f"a {type(value).__name__}"
    return _cut(text, 2 * _LONGEST)


def readable(message: str) -> str:
    """A message that quotes names as they are, with those shortened that nobody reads to their end."""
    return _WORD.sub(lambda word: _cut(word[0], 0), message)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:_LONGEST]}…{text[-_LONGEST // 2 :]}"
