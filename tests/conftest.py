"""Digits matter in the tests: they run in float64 unless they say otherwise."""

import jax
import pytest

jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True, scope="module")
def compiled_code_is_dropped():
    """After each file, so that a worker does not hold gigabytes of compiled programs."""
    yield
    jax.clear_caches()
