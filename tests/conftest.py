"""Digits matter in the tests: they run in float64 unless they say otherwise."""

import jax
import pytest

jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True, scope="module")
def compiled_code_is_dropped():
    """After each file, so that a worker does not hold gigabytes of compiled programs."""
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def whole():
    """The uninterrupted run of each case of `store.cases`, made once a file."""
    import wideflow as wf

    made = {}

    def of(case, rows=5):
        if (case.name, rows) not in made:
            made[case.name, rows] = wf.evolve(**case.call(rows))
            assert made[case.name, rows].status == "ok"
        return made[case.name, rows]

    return of
