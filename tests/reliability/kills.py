"""Real signals to real processes at random moments: dynamics, the limit and the command.

`attack(1000, 0)` is the long run (`make reliability ATTACKS=kills`); a short one is in the tests."""

import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import jax

import wideflow as wf
from cli.specs import TINY
from store.cases import CASES, OTHERS, assert_begins, assert_same_bits
from store.children import Children
from wideflow.store import folder

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ROWS = 12  # saved times of a run
# Two seeds that go together and a third alone, with many times between which they can be stopped.
SPEC = TINY.replace("count = 3", "count = 21").replace("gradient_descent", "sgd").replace("0.1", "0.02")
TARGETS = (*CASES, *OTHERS, "limit", "command")
WEIGHTS = {"command": 2}  # of the kills; `limit` and each of the dynamics have one


@dataclass
class Target:
    """Something to be killed again and again: what it comes to undisturbed, and where it is now."""

    name: str
    place: Path
    children: Children
    kills: int = 0  # of the run that is going on
    number: int = 0
    lasts: float = 0.0
    kept: int = 0  # saved times that the folder has held
    counts: Counter = field(default_factory=Counter)

    def __post_init__(self):
        self.place.mkdir()
        (self.place / "spec.toml").write_text(SPEC, "utf-8")
        self.start(self.path, warm=True)
        self.whole = self.runs(self.path)
        assert self.start(self.place / "timed") == 0
        self.lasts = self.children.lasted

    @property
    def path(self) -> Path:
        return self.place / str(self.number)

    def start(self, path: Path, **how) -> int:
        return self.children.run(self.name, ROWS, folder=str(path), spec=str(self.place / "spec.toml"), **how)

    def runs(self, path: Path) -> list[wf.Run]:
        """All runs in a folder, as they are on the disk."""
        if self.name != "command":
            return [wf.load(path)]
        names = sorted(p.parent for p in path.glob("runs/*/manifest.json"))
        return [wf.load(name) for name in names if name.suffix == ""]

    def attacked(self, by: signal.Signals, after: float) -> None:
        """One process, and a signal to it after this share of the time that it lasts."""
        # Without a checkpoint on the way, what is there after a signal was saved because of it.
        every = 0.0 if by == signal.SIGKILL else 1e9
        code = self.start(self.path, when=after * self.lasts, by=by, every=every)
        ended_well = code == 0 and self.finished()
        self.kills += not ended_well
        self.counts[by.name] += not ended_well
        self.lasts = max(self.lasts, self.children.lasted) if ended_well else 1.02 * self.lasts
        if self.lost(by):
            self.counts["lost"] += max(self.kills, 1)
            self.renew()
        elif ended_well:
            self.counts["resumed"] += self.kills
            # of an attack that is itself stopped, these lines are what counts
            print(self.name, dict(self.counts), file=sys.stderr, flush=True)
            self.renew()

    def finished(self) -> bool:
        if self.name == "command":
            return (self.path / "report.html").exists()
        return folder.exists(self.path) and wf.load(self.path).status == "ok"

    def lost(self, by: signal.Signals) -> bool:
        """Whether what is on the disk is not what was computed, or less than was reached."""
        try:
            if self.name == "command":
                if self.finished():
                    for one, other in zip(self.runs(self.path), self.whole, strict=True):
                        assert_same_bits(one, other)
                return False
            if not folder.exists(self.path):
                return self.children.rows > 0 and by != signal.SIGKILL
            run = wf.load(self.path)
            if self.name == "limit":
                if run.status == "ok":
                    assert_same_bits(run, self.whole[0])
                    assert run.info["error"] == self.whole[0].info["error"]
                return False
            assert_begins(run, self.whole[0]) if run.status != "ok" else assert_same_bits(run, self.whole[0])
            less = len(run.rows) < self.kept
            less = less or (by != signal.SIGKILL and len(run.rows) < self.children.rows)
            self.kept = len(run.rows)
        except (AssertionError, ValueError, OSError) as error:
            print(f"{self.name}, {by.name}: {error}", file=sys.stderr)
            return True
        return less

    def renew(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.kills, self.kept = 0, 0
        self.number += 1


def attack(
    count: int, seed: int, names: tuple[str, ...] = TARGETS, cache: str | None = None
) -> dict[str, int]:
    """Kill processes `count` times at least, each target its share, and go on with what they left. Compiled
    programs are kept in the folder `cache`, or one of their own.

    Counts: `kills`, by signal too; `resumed`, those of runs that came to the bits of the undisturbed one in
    the end; `lost`, those that did not, or after which less was on the disk than before (0, or it is a
    bug)."""
    draw, counts = random.Random(seed), Counter(kills=0, resumed=0, lost=0)
    total = sum(WEIGHTS.get(name, 1) for name in names)
    with tempfile.TemporaryDirectory() as place:
        children = Children(Path(cache or f"{place}/compiled"))
        for name in names:
            target = Target(name, Path(place) / name, children)
            share = -(-count * WEIGHTS.get(name, 1) // total)
            while target.counts.total() - target.counts["resumed"] - target.counts["lost"] < share:
                target.attacked(draw.choice(SIGNALS), draw.uniform(0.0, 0.95))
            while target.kills:  # the last one comes to its end too
                target.attacked(signal.SIGKILL, 1e9)
            counts += target.counts
            print("all of", name, dict(target.counts), file=sys.stderr, flush=True)
            jax.clear_caches()
        children.close()
    counts["kills"] = sum(counts[by.name] for by in SIGNALS)
    return {"kills": 0, "resumed": 0, "lost": 0} | {name: int(n) for name, n in counts.items()}
