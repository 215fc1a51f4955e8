"""Hostile files in every place that is read: each is refused with its name, in bounded memory and time."""

import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import typer

import wideflow as wf
from reliability import hostile
from reliability.targets import Target, made
from wideflow.cli import sources

MEMORY = 3 * 2**30  # bytes beside those of the libraries: the bound of 2 GB on data, and what is around it
SECONDS = 30  # of the processor for one file; a clock's would blame it for what else the machine does
WAIT = 240  # by the clock: what waits for a pipe needs no processor


class Case(NamedTuple):
    """A hostile file in a place, and what reads it."""

    name: str
    place: Path
    make: hostile.Maker
    read: Callable[[], object]
    target: Target | None


class TooSlow(BaseException):
    pass


def attack(count: int, seed: int) -> dict[str, int]:
    """Read `count` hostile files (all, if there are fewer) in a process of bounded memory: how many kinds,
    how often refused with its name, harmless (read), wrong (another error), slow; `dead` if it died."""
    command = [sys.executable, "-m", "reliability.bombs", str(count), str(seed)]
    here, source = Path(__file__).parents[1], Path(wf.__file__).parents[1]
    env = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{here}"}
    most = 60 + WAIT * count
    done = subprocess.run(command, cwd=here, env=env, capture_output=True, text=True, timeout=most)
    sys.stderr.write(done.stderr)
    if done.returncode:
        return {"dead": 1, "wrong": 0, "slow": 0, "refused": 0, "harmless": 0, "kinds": 0}
    return json.loads(done.stdout.splitlines()[-1]) | {"dead": 0}


def cases(path: Path, targets: list[Target]) -> list[Case]:
    """Every hostile file in every place where it could lie."""
    store, study, claims = targets
    rows = next(store.root.glob("rows-*.npz"))
    arrays = Case("arrays", rows, _nothing, store.opened, store)
    manifest = Case("manifest", store.root / "manifest.json", _nothing, store.opened, store)
    results = Case("results", study.root / "study" / "results.json", _nothing, study.opened, study)
    resolved = Case("spec of a study", study.root / "study" / "spec.toml", _nothing, study.opened, study)
    claim = Case("record", claims.root / "abc-table.json", _nothing, claims.opened, claims)
    data = {s: path / f"data.{s}" for s in ("csv", "npz", "parquet")}
    tables = {s: Case(s, p, _nothing, lambda p=p: wf.read_dataset(p), None) for s, p in data.items()}
    spec = Case("spec", path / "given.toml", _nothing, lambda: _read_spec(path / "given.toml"), None)
    places = [arrays, manifest, results, resolved, claim, *tables.values(), spec]
    pairs = [
        (places, hostile.THINGS, None),
        ([arrays], hostile.ARCHIVES, hostile.sealed_arrays),
        ([tables["npz"]], hostile.ARCHIVES, None),
        ([manifest], hostile.TEXTS, hostile.sealed_manifest),
        ([results, claim], hostile.TEXTS, None),
        ([tables["csv"]], hostile.TABLES, None),
        ([resolved, spec], hostile.SPECS, None),
        ([tables["parquet"]], {"rows": hostile.parquet_bomb, "texts": hostile.parquet_texts}, None),
    ]
    return [
        place._replace(name=f"{place.name}: {kind}", make=make if around is None else around(make))
        for where, kinds, around in pairs
        for place in where
        for kind, make in kinds.items()
    ]


def _nothing(path: Path) -> None:
    pass


def _read_spec(path: Path) -> object:
    """As the command does; what it says with code 2 is the error."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return sources.spec_of(sources.source(str(path)), [], None, False)
    except typer.Exit as end:
        if end.exit_code != 2:
            raise
        raise ValueError(said.getvalue()) from None


def _outcome(case: Case) -> str:
    case.make(case.place)
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(WAIT)
    try:
        case.read()
    except TooSlow:
        return "slow"
    except (ValueError, FileNotFoundError) as error:
        return "refused" if case.place.name in str(error) else _wrong(error)
    except BaseException as error:
        return _wrong(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        if time.process_time() - begun > 5:
            print(f"{case.name}: {time.process_time() - begun:.0f} s", file=sys.stderr)
    return "harmless"


def _wrong(error: BaseException) -> str:
    print(f"{type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    return "wrong"


def main(count: int, seed: int) -> None:
    counts = dict.fromkeys(("refused", "harmless", "wrong", "slow"), 0)
    with tempfile.TemporaryDirectory() as folder, jax.enable_x64(True):
        path = Path(folder)
        targets = made(path)
        every = cases(path, targets)
        random.Random(seed).shuffle(every)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
        signal.signal(signal.SIGALRM, _stop)
        signal.signal(signal.SIGPROF, _stop)
        for case in every[:count]:
            outcome = _outcome(case)
            counts[outcome] += 1
            if outcome in ("wrong", "slow"):
                print(f"{outcome}: {case.name}", file=sys.stderr)
            if case.target is None:
                shutil.rmtree(case.place) if case.place.is_dir() else case.place.unlink()
            else:
                case.target.restore()
    kinds = len({case.name.partition(": ")[2] for case in every[:count]})
    print(json.dumps({"files": len(every[:count]), "kinds": kinds} | counts))


def _stop(*_: object) -> None:
    raise TooSlow


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
