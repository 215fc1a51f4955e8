"""Where compilation goes: seconds to trace, lower and compile each program of a script, cold.

python -m benchmarks.programs [script.py]      the README's example without an argument
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .cold import readme_example
from .rows import Row

_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_LISTENER = """
import atexit, json, sys
import jax
seen = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, fun_name="?", **_: seen.append((event, str(fun_name), seconds))
)
atexit.register(lambda: open(sys.argv[2], "w").write(json.dumps(seen)))
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
"""
_SHOWN = 25


def measure(quick: bool) -> list[Row]:
    """How many programs the README's example compiles, and how long their three stages take together."""
    totals = _totals(readme_example())
    table = totals_table(totals)
    Path("out").mkdir(exist_ok=True)
    Path("out/programs.txt").write_text(table + "\n", encoding="utf-8")
    count = sum(one["programs"] for one in totals.values())
    spent = {stage: sum(one[stage] for one in totals.values()) for stage in _STAGES.values()}
    note = ", ".join(f"{stage} {seconds:.2g} s" for stage, seconds in spent.items())
    return [Row("programs of the README's example", (float(count),), note=f"{note}; out/programs.txt")]


def _totals(code: str) -> dict[str, collections.Counter]:
    """By program: how often it was compiled, and the seconds of each stage."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "script.py", Path(folder) / "seen.json"
        file.write_text(code)
        env = os.environ | {"WIDEFLOW_CACHE": "off"}
        command = [sys.executable, "-c", _LISTENER, str(file), str(out)]
        subprocess.run(command, check=True, env=env, cwd=folder)
        seen = json.loads(out.read_text())
    totals: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for event, name, seconds in seen:
        if stage := _STAGES.get(event):
            one = totals[name.removeprefix("jit(").removesuffix(")")]
            one[stage] += seconds
            one["programs"] += stage == "compile"
    return totals


def totals_table(totals: dict[str, collections.Counter]) -> str:
    """The programs that take longest, one a line."""
    ranked = sorted(totals.items(), key=lambda item: -sum(item[1][stage] for stage in _STAGES.values()))
    lines = [f"{'program':40} {'number':>6} " + " ".join(f"{stage:>8}" for stage in _STAGES.values())]
    for name, one in ranked[:_SHOWN]:
        seconds = " ".join(f"{one[stage]:8.2f}" for stage in _STAGES.values())
        lines.append(f"{name[:40]:40} {one['programs']:6d} {seconds}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(totals_table(_totals(Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else readme_example())))
