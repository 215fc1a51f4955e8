"""`Abstract[T]`: an attribute that every final class must have, as a field or a property.

Equinox checks it when an object is made. To a type checker it must not look like a field of the
abstract class, or it would count among the arguments of every constructor."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import ClassVar as Abstract
else:
    from equinox import AbstractVar as Abstract

__all__ = ["Abstract"]
