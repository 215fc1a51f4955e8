"""Names of types that mean more than they say.

`Abstract[T]` is an attribute that every final class must have, as a field or a property. Equinox checks it
when an object is made. To a type checker it must not look like a field of the abstract class, or it would
count among the arguments of every constructor."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Array, Float

if TYPE_CHECKING:
    from typing import ClassVar as Abstract

    from typing_extensions import TypeIs

    Dimension = int
else:
    from typing import TypeGuard as TypeIs  # the standard library has TypeIs from Python 3.13 on

    from equinox import AbstractVar as Abstract

    Dimension = (
        int | float
    )  # may be ∞; where arrays are made it is an int, and a static checker takes it for one

# One number: as a person gives it, or as it is inside compiled code; with replicas one for each.
Scalar = float | Float[Array, "*r"]
DType = np.dtype

__all__ = ["Abstract", "DType", "Dimension", "Scalar", "TypeIs"]
