"""Settings by which other numbers would come out belong to a run; those that log or check do not."""

import json
import os
import subprocess
import sys

import jax
import pytest

import wideflow as wf
from loop_cases import ctrl_c, small
from wideflow.store.settings import machine, settings

# Each with a value that is not the default.
COUNT = {
    "jax_enable_x64": False,
    "jax_numpy_dtype_promotion": "strict",
    "jax_default_matmul_precision": "bfloat16",
    "jax_default_prng_impl": "rbg",
    "jax_threefry_partitionable": False,
    "jax_random_seed_offset": 3,
    "jax_softmax_custom_jvp": True,
    "jax_disable_jit": True,
    "jax_disable_most_optimizations": True,
    "jax_use_direct_linearize": False,
}
NO_MATTER = {
    "jax_numpy_rank_promotion": "warn",
    "jax_debug_nans": True,
    "jax_log_compiles": True,
    "jax_enable_compilation_cache": False,
    "jax_traceback_filtering": "off",
    "jax_explain_cache_misses": True,
}
FLAGS = {
    "--xla_dump_to=/tmp/x": False,
    "--xla_dump_hlo_as_text --xla_dump_to=/tmp/x": False,
    "--xla_gpu_dump_llvmir": False,
    "--xla_hlo_profile": False,
    "--xla_cpu_enable_fast_math=true": True,
    "--xla_cpu_max_isa=SSE4_2": True,
    "--xla_backend_optimization_level=0": True,
    "--xla_gpu_deterministic_ops=true": True,
}


@pytest.mark.parametrize("name", COUNT | NO_MATTER)
def test_settings_that_change_numbers_are_told_apart(name):
    before, kept = settings(), jax.config.values[name]
    try:
        jax.config.update(name, (COUNT | NO_MATTER)[name])
        changed = {k for k, v in settings().items() if before[k] != v}
    finally:
        jax.config.update(name, kept)
    assert changed == ({f"setting {name}"} if name in COUNT else set())
    assert settings() == before


@pytest.mark.parametrize("flags, count", FLAGS.items())
def test_flags_of_xla_count_unless_they_only_write(flags, count, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    before = settings()
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert (settings() != before) == count


def test_the_order_of_flags_does_not_matter(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=1 --xla_b=2")
    before = settings()
    monkeypatch.setenv("XLA_FLAGS", "--xla_b=2  --xla_dump_to=x --xla_a=1")
    assert settings() == before


def test_a_flag_of_xla_is_named_in_the_refusal(tmp_path, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    with ctrl_c(2):
        wf.evolve(**small(), checkpoint=tmp_path)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true --xla_dump_to=x")
    message = r"other setting XLA_FLAGS \(none → --xla_cpu_enable_fast_math=true\)\. Give"
    with pytest.raises(ValueError, match=message):
        wf.evolve(**small(), checkpoint=tmp_path)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x")
    assert wf.evolve(**small(), checkpoint=tmp_path).status == "ok"


def test_another_machine_is_told(tmp_path, monkeypatch):
    """The number of processors changes the last digits of products, so that it is told, as versions are."""
    with ctrl_c(2):
        wf.evolve(**small(), checkpoint=tmp_path)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "77")
    message = r"on another machine \(OPENBLAS_NUM_THREADS .* → 77\)\. It goes on, but not to the same bits"
    with pytest.warns(UserWarning, match=message):
        assert wf.evolve(**small(), checkpoint=tmp_path).status == "ok"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux binds processes to processors")
def test_processors_are_those_that_the_process_may_use():
    one = str(min(os.sched_getaffinity(0)))
    script = (
        f"import os, json; os.sched_setaffinity(0, [{one}])\n"
        "from wideflow.store.settings import machine\nprint(json.dumps(machine()))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == machine() | {"processors": "1"}
