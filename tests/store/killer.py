"""Death at a chosen file-system operation of `wideflow.store.folder`. Needs no JAX."""

import os
import signal


class Killer:
    """SIGKILL at the `operation`-th operation of the store, counted while `armed`."""

    def __init__(self, store, operation: int, armed: bool = True):
        self.operation, self.armed, self.done = operation, armed, 0
        store.os, store.open = self, self.opened

    def step(self) -> None:
        if self.armed:
            if self.done == self.operation:
                os.kill(os.getpid(), signal.SIGKILL)
            self.done += 1

    def __getattr__(self, name: str):
        """The module `os`, as the store sees it; each call of these is one operation."""
        if name not in ("open", "close", "fsync", "replace", "unlink"):
            return getattr(os, name)

        def operation(*args, **kwargs):
            self.step()
            return getattr(os, name)(*args, **kwargs)

        return operation

    def opened(self, *args, **kwargs):
        self.step()
        return _File(open(*args, **kwargs), self)


class _File:
    """A file whose writes are operations, and may be cut in the middle."""

    def __init__(self, file, killer: Killer):
        self.file, self.killer = file, killer
        self.fileno = file.fileno

    def write(self, content) -> int:
        self.killer.step()
        done = self.file.write(content[: len(content) // 2])
        self.killer.step()
        return done + self.file.write(content[done:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
