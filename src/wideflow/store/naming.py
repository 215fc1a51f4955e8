"""Functions that are known by name: one that a user vouches for, and one that is not there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._shown import shown


@dataclass(frozen=True)
class Named:
    """`fn` under a name that stands for it: in a checkpoint and in a saved run it is the name, and nothing
    else, that tells it from another function. Made by `wf.named`."""

    name: str
    fn: Callable

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        return self.fn(*args, **kwargs)

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __wrapped__(self) -> Callable:
        return self.fn  # for its signature


def named(name: str, fn: Callable) -> Named:
    """The function `fn`, known by `name` alone: `wf.named("scale-3", fn)`.

    `evolve(checkpoint=folder)` has to know whether a function is the one that the folder was begun with. It
    compares code and values, and refuses what it cannot read (an object of a C library, an open file). Such
    a function gets a name here, which the user changes whenever the function computes something else.

    >>> probe = wf.named("probe-1", lambda t, state: state.theta.max())
    >>> probe.name
    'probe-1'
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f'named(name) must be a text such as "scale-3", got {shown(name)}.')
    if not callable(fn):
        raise ValueError(f"named(fn) must be a function, got {shown(fn)}.")
    return Named(name, fn)


class Unknown:
    """Stands for a user's function that a file names but cannot hold."""

    def __init__(self, name: str, sha256: str | None):
        self.__name__ = name
        self.sha256 = sha256

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        raise ValueError(
            f"This run used your own function {shown(self.__name__)}, which a file cannot hold. Load it "
            f"with wf.load(dir, functions={{{shown(self.__name__)}: {self.__name__}}}), or make it known to "
            f"every load: wf.register({shown(self.__name__)}, {self.__name__})."
        )
