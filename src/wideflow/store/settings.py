"""What else the bits of a run depend on: settings of JAX and XLA, which must be those that the run was begun
with, and the machine, by which the last digits may differ and which is told."""

import functools
import os
import platform
import re

import jax

from .._threads import cores

# Settings of JAX by which other numbers are computed; those that check, log or cache are not among them.
_JAX = (
    "jax_enable_x64",
    "jax_explicit_x64_dtypes",
    "jax_numpy_dtype_promotion",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_enable_custom_prng",
    "jax_threefry_partitionable",
    "jax_threefry_gpu_kernel_lowering",
    "jax_random_seed_offset",
    "jax_high_dynamic_range_gumbel",
    "jax_softmax_custom_jvp",
    "jax_allow_f16_reductions",
    "jax_use_direct_linearize",
    "jax_use_magma",
    "jax_bcoo_cusparse_lowering",
    "jax_disable_jit",
    "jax_disable_most_optimizations",
    "jax_optimization_level",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
    "jax_memory_fitting_level",
    "jax_enable_pgle",
    "eager_constant_folding",
)
# Flags of XLA that write something beside, or say where to; all others count.
_HARMLESS = re.compile(r"--(xla_)?(\w+_)?(dump|log|logging|trace|print|profile|debug_info|verbose)(_\w+)?")
# How many threads the products of NumPy and the decompositions of JAX run on.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SETTING = "setting "


def settings() -> dict[str, str]:
    """Settings by name, as texts."""
    known = jax.config.values
    values = {name: str(known[name]) for name in _JAX if name in known}
    flags = (flag for flag in os.environ.get("XLA_FLAGS", "").split() if not _is_harmless(flag))
    values["XLA_FLAGS"] = " ".join(sorted(flags)) or "none"
    return {f"{SETTING}{name}": value for name, value in values.items()}


def _is_harmless(flag: str) -> bool:
    return _HARMLESS.fullmatch(flag.partition("=")[0]) is not None


def machine() -> dict[str, str]:
    """What the last digits depend on: XLA cuts a product into pieces by the number of processors, BLAS (of
    NumPy, and of decompositions in JAX) by that of its threads; both by the instructions that there are."""
    device = jax.config.values["jax_default_device"] or jax.devices()[0]
    values = {
        "device": str(getattr(device, "device_kind", device)),
        "processor": _processor(),
        "processors": str(cores()),
    }
    return values | {name: os.environ.get(name, "not set") for name in _THREADS}


@functools.cache
def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:  # no Linux
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def differences(before: object, now: dict[str, str]) -> list[str]:
    """What of `now` was something else before, in words."""
    known = before if isinstance(before, dict) else {}
    return [f"{name} {known.get(name)} → {value}" for name, value in now.items() if known.get(name) != value]
