"""A fault of the disk that passes is tried again."""

import errno
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Seconds before another try: a network file system or a quota needs a moment.
DELAYS = (0.1, 0.3, 1.0)
# Of a place that is not there or not ours: the user's to mend.
NO_PLACE = frozenset(
    (
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.ENOENT,
        errno.ELOOP,
        errno.ENAMETOOLONG,
    )
)
# Faults that another try does not mend.
_LASTING = NO_PLACE | {errno.EFBIG}


def retried(action: Callable[[], T]) -> T:
    """action(), tried again after each of `DELAYS` if the disk fails with a fault that may pass (EINTR, EIO,
    ENOSPC, …); the last error is raised."""
    for delay in DELAYS:
        try:
            return action()
        except OSError as error:
            if error.errno in _LASTING:
                raise
        time.sleep(delay)
    return action()
