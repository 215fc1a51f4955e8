"""Writes three versions to a folder and is killed, once at every operation of the store.

Prints, for each kill, the version that was whole afterwards (-1: none yet). Without JAX, so that a
thousand processes are cheap."""

import itertools
import json
import os
import sys
from pathlib import Path

import numpy as np
from killer import Killer

VERSIONS = 3


def store(path: str):
    """The module `folder` at this path; neither it nor the package loads JAX."""
    from wideflow.store import folder

    assert folder.__file__ == path and "jax" not in sys.modules
    return folder


def arrays(version: int) -> dict[str, np.ndarray]:
    return {"a": np.full(40, version), "b": np.arange(version + 1.0)}


def write(folder, path: Path, version: int, before: list) -> list:
    """One file more in every version, and one that is replaced."""
    rows = [*before, folder.put(path, f"rows-{version}", arrays(version))]
    carry = folder.put(path, "carry", arrays(version))
    folder.commit(path, {"version": version, "rows": rows, "carry": carry})
    return rows


def whole(folder, path: Path) -> int:
    """The version in the folder, after reading all of it."""
    if not folder.exists(path):
        return -1
    record = folder.read(path)
    version = record["version"]
    for entry, number in [*zip(record["rows"], range(version + 1), strict=True), (record["carry"], version)]:
        found = folder.get(path, entry)
        assert all(np.array_equal(found[k], v) for k, v in arrays(number).items())
    return version


def killed(folder, path: Path, operation: int) -> bool:
    """Whether a writer that dies at this operation got that far."""
    pid = os.fork()
    if pid == 0:
        Killer(folder, operation)
        rows: list = []
        for version in range(VERSIONS):
            rows = write(folder, path, version, rows)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def main(module: str, directory: str) -> None:
    folder, versions = store(module), []
    for operation in itertools.count():
        path = Path(directory) / str(operation) / "deep" / "run"
        if not killed(folder, path, operation):
            break
        version = whole(folder, path)
        versions.append(version)
        # The next writer goes on from there, and clears away what the dead one left.
        rows = folder.read(path)["rows"] if version >= 0 else []
        for number in range(version + 1, VERSIONS):
            rows = write(folder, path, number, rows)
        last = folder.read(path)
        listed = [entry["file"] for entry in [*last["rows"], last["carry"]]]
        if version < VERSIONS - 1:
            assert sorted(os.listdir(path)) == sorted([*listed, "manifest.json"])
    print(json.dumps(versions))


if __name__ == "__main__":
    main(*sys.argv[1:])
