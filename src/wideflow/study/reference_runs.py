"""Which limit, and which frozen kernel, a network is compared with."""

import numpy as np

from .groups import Group


def references(groups: list[Group]) -> tuple[list[Group], list[Group]]:
    """(mean-field limits, frozen kernels) among the groups."""
    return (
        [g for g in groups if g.case.is_limit and g.status == "ok"],
        [g for g in groups if g.case.linearised],
    )


def limit_for(group: Group, limits: list[Group]) -> Group | None:
    """The limit from the same start of the same α, or the only one there is."""
    limits = [g for g in limits if _start_alike(g, group)]
    same = [g for g in limits if np.isclose(g.case.alpha, group.case.alpha)]
    return same[0] if same else limits[0] if len(limits) == 1 else None


def frozen_for(group: Group, frozen: list[Group]) -> Group | None:
    """The frozen kernel of the same start, width and scale."""
    at = lambda g: (g.case.width, g.case.scaling)
    return next((g for g in frozen if at(g) == at(group) and _start_alike(g, group)), None)


def _start_alike(one: Group, other: Group) -> bool:
    return one.case.method.start == other.case.method.start
