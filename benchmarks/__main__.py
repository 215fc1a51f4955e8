"""`python -m benchmarks [names] [--quick]`: run the benchmarks, print the table, keep out/bench.json."""

import argparse
import json
import os
import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from .rows import MATMUL_FLOPS, Row, large_matmul, seconds

# By name, the module whose `measure(quick)` gives the rows; imported only when asked for.
BENCHMARKS = {
    "velocity": "velocity",
    "autograd": "autograd",
    "sgd": "sgd",
    "memory": "memory",
    "recompile": "recompile",
    "import": "import_time",
    "closed": "closed_form",
    "limit": "limit",
    "ntk": "ntk",
    "regime": "regime",
    "grid": "grid",
    "kinked": "kinked",
    "replicas": "replicas",
    "study": "study",
    "cold": "cold",
    "programs": "programs",
}
OUT = Path("out/bench.json")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="few trials: does it work, not how fast")
    args = parser.parse_args()
    if unknown := set(args.names) - set(BENCHMARKS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(BENCHMARKS)}")

    machine = _machine()
    print(_sentence(machine), flush=True)
    rows: list[Row] = []
    for name in args.names or BENCHMARKS:
        print(f"… {name}", flush=True)
        measure: Callable = import_module(f".{BENCHMARKS[name]}", __package__).measure
        rows += measure(args.quick)
    machine["load_after"] = os.getloadavg()[0]
    print(f"\n{_table(rows)}\n")
    print(f"Load average {machine['load_before']:.1f} before, {machine['load_after']:.1f} after.")
    OUT.parent.mkdir(exist_ok=True)
    kept = [row._asdict() | {"measured": row.measured, "verdict": row.verdict} for row in rows]
    OUT.write_text(
        json.dumps({"machine": machine, "quick": args.quick, "rows": kept}, indent=1, ensure_ascii=False)
    )


def _machine() -> dict:
    product = large_matmul()
    product()
    rate = MATMUL_FLOPS / sorted(seconds(product) for _ in range(5))[2]
    packages = {name: version(name) for name in ("wideflow", "jax", "numpy", "numba", "torch")}
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "matmul_gflops": round(rate / 1e9, 1),
        "python": platform.python_version(),
        "packages": packages,
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _sentence(machine: dict) -> str:
    packages = ", ".join(f"{name} {v}" for name, v in machine["packages"].items())
    return (
        f"{machine['cpu']}, {machine['cores']} cores: {machine['matmul_gflops']:.0f} Gflop/s in a 4096³ "
        f"float32 matrix product. Python {machine['python']}, {packages}."
    )


def _table(rows: list[Row]) -> str:
    """what | measured | asked | aim | ok, columns padded."""
    lines = [("what", "measured", "min – max", "asked", "aim", "ok", "beside")]
    lines += [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip(" |") for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    sign = "at most" if row.at_most else "at least"
    bound = lambda value: "-" if value is None else f"{sign} {value:g}"
    spread = f"{min(row.trials):.3g} – {max(row.trials):.3g}" if len(row.trials) > 1 else "-"
    return row.what, f"{row.measured:.3g}", spread, bound(row.asked), bound(row.aim), row.verdict, row.note


if __name__ == "__main__":
    main()
