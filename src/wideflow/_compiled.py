"""Compiled programs kept on disk, so that a second process does not compile them again."""

import atexit
import contextlib
import errno
import hashlib
import os
import platform
import shutil
import stat
import sys
import time
from importlib.metadata import version
from pathlib import Path

SWITCH = "WIDEFLOW_CACHE"  # "off", or the folder to keep them in
LARGEST = 2**28  # bytes of all that is kept; the oldest programs go first
_ROOM = 2**26  # bytes that must be free: a disk that is full takes halves of programs
_ABANDONED = 7 * 24 * 3600.0  # seconds, after which what a killed process left is cleared away
_PROCESS = "process-"  # how the folder of a process begins
_OFF = ("off", "0", "no", "false")


def keep_compiled_programs() -> None:
    """Turn on JAX's persistent cache, unless the user has set one of their own or `WIDEFLOW_CACHE=off`.

    JAX writes its entries in place, where a killed process leaves half of one, which is then read, warned of
    and never replaced. So each process has a folder of its own with links to all programs that are kept, and
    adds its new ones to them, each in one step, when it ends."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    now = jax.config.values
    if now["jax_compilation_cache_dir"] or not now["jax_enable_compilation_cache"]:
        return
    place = folder()
    if place is None:
        return
    try:
        own = opened(place)
    except OSError:
        return  # a home that cannot be written: every process compiles
    jax.config.update("jax_compilation_cache_dir", str(own))
    if now["jax_persistent_cache_min_compile_time_secs"] == 1.0:  # as it is by default
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # The folders of XLA's own caches (on GPUs) would be a part of the name of each program.
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
    compilation_cache.reset_cache()  # JAX looks for it at its first program, which may be before us
    atexit.register(_closed_by, os.getpid(), place, own)


def folder() -> Path | None:
    """Where programs for this processor and this version of XLA are kept, if they are."""
    asked = os.environ.get(SWITCH, "").strip()
    if asked.lower() in _OFF:
        return None
    root = Path(asked) if asked else _user_cache()
    return None if root is None else root / "compiled" / f"jaxlib-{version('jaxlib')}-{_processor()}"


def kept_in() -> Path | None:
    """Where this process keeps its programs, in the user's own cache if there is one; None if nowhere."""
    import jax

    now = jax.config.values["jax_compilation_cache_dir"]
    if not now or not jax.config.values["jax_enable_compilation_cache"]:
        return None
    return Path(now).parent if Path(now).name.startswith(_PROCESS) else Path(now)


def opened(place: Path) -> Path:
    """A folder of this process inside of `place`, with links to the programs that are there. OSError if that
    is not possible, there is no room, or another user could write there: programs are code."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_open_to_others(place.stat()):
        raise PermissionError(f"{place} can be written by other users.")
    if not _has_room(place):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
    own = place / f"{_PROCESS}{os.getpid()}-{time.time_ns()}"
    own.mkdir(mode=0o700)
    for program in _programs(place):
        with contextlib.suppress(FileNotFoundError):  # another process has just cleared it away
            os.link(program, own / program.name)
    return own


def closed(place: Path, own: Path) -> None:
    """Add the programs in `own` that are new to those in `place`, and keep these below `LARGEST`. Where there
    is no room left none is added: JAX may have written a part of it only."""
    try:
        for program in _programs(own) if _has_room(place) else ():
            with contextlib.suppress(FileExistsError):
                os.link(program, place / program.name)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    clear(place.parent)


def clear(root: Path) -> None:
    """Delete what killed processes left, and the oldest programs until all take `LARGEST` bytes at most."""
    for place in root.iterdir():
        for left in place.glob(f"{_PROCESS}*"):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
    kept = sorted(
        (p.stat().st_mtime, p.stat().st_size, p) for place in root.iterdir() for p in _programs(place)
    )
    excess = sum(size for _, size, _ in kept) - LARGEST
    for _, size, program in kept:
        if excess <= 0:
            break
        program.unlink(missing_ok=True)
        excess -= size


def _closed_by(pid: int, place: Path, own: Path) -> None:
    if os.getpid() == pid:  # not in what was forked from it
        with contextlib.suppress(OSError):
            closed(place, own)


def _has_room(place: Path) -> bool:
    return shutil.disk_usage(place).free >= _ROOM


def _is_open_to_others(found: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):  # Windows: a user's folders are theirs
        return False
    return found.st_uid != os.getuid() or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _programs(place: Path) -> list[Path]:
    return [Path(entry.path) for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]


def _user_cache() -> Path | None:
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "wideflow"
    if sys.platform == "win32":
        return Path(os.environ["LOCALAPPDATA"]) / "wideflow" if os.environ.get("LOCALAPPDATA") else None
    try:
        home = Path.home()
    except RuntimeError:  # there is none
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "wideflow"


def _processor() -> str:
    """A name for the instructions that programs are compiled for: machines that share a home may differ."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith(("flags", "Features", "model name"))]
    except OSError:  # no Linux
        lines = []
    words = "".join(sorted(set(lines))) + platform.machine() + platform.processor()
    return hashlib.sha256(words.encode()).hexdigest()[:12]
