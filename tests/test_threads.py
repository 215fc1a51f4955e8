"""Programs side by side: what threads are told of the caller's settings."""

import threading

import jax
import jax.numpy as jnp
import pytest

from wideflow._threads import side_by_side


@pytest.mark.parametrize("precise", [True, False])
def test_threads_have_the_callers_precision(precise):
    with jax.enable_x64(precise):
        dtypes = side_by_side(lambda i: (jnp.zeros(i) + 0.5).dtype, [1, 2, 3])
    assert dtypes == [jnp.float64 if precise else jnp.float32] * 3


def test_another_setting_of_the_caller_is_kept_by_taking_turns():
    here = threading.get_ident()
    with jax.default_matmul_precision("highest"):
        assert side_by_side(lambda _: threading.get_ident(), [1, 2]) == [here] * 2
    assert here not in side_by_side(lambda _: threading.get_ident(), [1, 2])


def test_nothing_to_do():
    assert side_by_side(str, []) == []


def test_what_a_thread_raises_comes_back():
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda i: 1 / i, [1, 0])
