"""Digits matter in the tests: they run in float64 unless they say otherwise."""

import itertools
import os
import signal
from pathlib import Path

# Most of the time goes into compiling, for programs that run for milliseconds: LLVM's highest level takes
# twice as long as the second, and XLA's newer emitters of loops twice as long as the older ones. Processes
# that the tests start inherit this; with XLA_FLAGS set, as for one part of CI, XLA does what that says.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=2 --xla_cpu_use_fusion_emitters=false")

# Programs that other processes compile are kept beside those of the tests, not among the user's.
os.environ["WIDEFLOW_CACHE"] = str(Path(__file__).parents[1] / ".pytest_cache")

import jax
import pytest

import typechecked
from browsing import browser, browser_page  # noqa: F401 (one browser for all folders)

if os.environ.get("WIDEFLOW_TYPECHECK"):  # `make test-types`
    typechecked.install()

jax.config.update("jax_enable_x64", True)
# As the processes that tests start and kill have it, which must be on the same machine as the test.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A program that another file or worker has compiled is taken from disk, where that is quicker.
jax.config.update("jax_compilation_cache_dir", os.environ["WIDEFLOW_CACHE"] + "/compiled-by-tests")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


# A shell starts what runs in the background without Ctrl-C, which tests send to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests that take longest (`--durations`), by their ids; each file keeps a quick one.
LONGEST = Path(__file__).parent / "longest.txt"


def pytest_collection_modifyitems(config, items):
    """The longest tests are of the slow tier; one that is listed and not there any more is an error."""
    listed, known = (
        set(LONGEST.read_text(encoding="utf-8").split("\n")) - {""},
        {item.nodeid for item in items},
    )
    whole = all(Path(arg).resolve() == Path(__file__).parent for arg in config.args)
    if whole and (gone := sorted(listed - known)):
        raise pytest.UsageError(f"{LONGEST.name} lists {gone[0]}, which is not there ({len(gone)} in all).")
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)


_FILES = itertools.count(1)


@pytest.fixture(autouse=True, scope="module")
def compiled_code_is_dropped():
    """After every fifth file: a worker shares small programs between files, and does not hold gigabytes."""
    yield
    if next(_FILES) % 5 == 0:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def own_functions_are_forgotten(monkeypatch):
    """What a test registers is not there for the next one."""
    from wideflow.store import registry  # after the types are hooked in

    monkeypatch.setattr(registry, "_FUNCTIONS", dict(registry._FUNCTIONS))


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
