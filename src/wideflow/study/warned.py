"""What was warned of in each run of a study: told at once, and kept until the results hold it.

A study that is stopped and goes on does not compute again what is there, and so is not warned again."""

import contextlib
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..endings import EndedWarning
from ..store.folder import write_text
from ..store.opening import DamagedError
from ..store.retrying import retried
from ..store.seals import read_sealed, sealed

FILE = "warnings.json"
_FIELDS = {"runs": dict, "hashes": dict}


@dataclass
class Warned:
    """The warnings of runs, by their slugs."""

    path: Path
    messages: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def kept(cls, folder: Path) -> "Warned":
        """Those of an unfinished study."""
        path = folder / FILE
        try:
            runs = read_sealed(path, "list of warnings", 1, _FIELDS)["runs"]
        except FileNotFoundError:
            return cls(path)
        except DamagedError as error:
            raise DamagedError(
                f"{error} Remove it; the warnings of runs that are done are lost then."
            ) from None
        if not all(
            isinstance(texts, list) and all(isinstance(t, str) for t in texts) for texts in runs.values()
        ):
            raise DamagedError(f"{path} is damaged: it must hold lists of texts.")
        return cls(path, runs)

    @contextlib.contextmanager
    def listening(self, slugs: Sequence[str]) -> Iterator[None]:
        """Keep what is warned of meanwhile, beside telling it."""
        heard: list[str] = []
        with warnings.catch_warnings():
            show = warnings.showwarning

            def hear(message, category, filename, lineno, file=None, line=None) -> None:
                if not issubclass(category, EndedWarning):  # which is told with the status of the run
                    heard.append(" ".join(str(message).split()))
                    show(message, category, filename, lineno, file, line)

            warnings.showwarning = hear
            yield
        if heard:
            self._add(slugs, heard)

    def _add(self, slugs: Iterable[str], heard: list[str]) -> None:
        for slug in slugs:
            self.messages[slug] = list(dict.fromkeys([*self.messages.get(slug, ()), *heard]))
        data = sealed({"kind": "list of warnings", "format": 1, "runs": self.messages})
        retried(lambda: write_text(self.path, json.dumps(data, indent=1, ensure_ascii=False) + "\n"))

    def forget(self) -> None:
        """The results hold them now."""
        with contextlib.suppress(OSError):
            self.path.unlink()
