"""Run published claims: `python -m wideflow.experiments [NAME…|--list]`."""

import argparse
import json
import sys
import time
from importlib import import_module
from pathlib import Path

import jax

from .._checks import nearest
from ..figures import save
from ..provenance import versions
from .base import Experiment, Outcome

_FILES = (
    "sgd_tracks_flow",
    "node_order",
    "limit_digits",
    "three_ways",
    "single_neuron_samples",
    "two_gaussians_dynamics",
    "two_gaussians_threshold",
    "two_gaussians_failure",
    "naive_scaling",
    "abc_table",
    "abc_lattice",
    "lazy_to_mean_field",
    "lazy_threshold",
    "feature_and_lazy",
)
_FOUND = (import_module(f".{name}", __package__).EXPERIMENT for name in _FILES)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _FOUND}


def _record(experiment: Experiment, outcome: Outcome, seconds: float) -> dict:
    checks = [c.__dict__ | {"passed": c.passed} for c in outcome.checks]
    found = {"name": experiment.name, "claim": experiment.claim, "source": experiment.source}
    return found | {"passed": outcome.passed, "checks": checks, "seconds": seconds, "versions": versions()}


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K  … {text}", end="", file=sys.stderr, flush=True)


def perform(experiment: Experiment, out: Path) -> bool:
    """Run one experiment, print its checks, write its figure and record; whether it passed."""
    print(f"{experiment.name}: {experiment.claim}\n  {experiment.source}")
    begun = time.monotonic()
    outcome = experiment.run(_say)
    _say("")
    figure = save(outcome.figure, out / f"{experiment.name}.png")
    record = _record(experiment, outcome, time.monotonic() - begun)
    figure.with_suffix(".json").write_text(json.dumps(record, indent=1))
    for check in outcome.checks:
        print(f"  {check}")
    print(f"  {'PASS' if outcome.passed else 'FAIL'}  {experiment.name}; figure: {figure}\n", flush=True)
    return outcome.passed


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 if every claim passed, 1 if one failed, 2 for a name that is not known."""
    parser = argparse.ArgumentParser(
        prog="python -m wideflow.experiments",
        description="Run published claims: each prints PASS or FAIL with the figure measured beside "
        "the figure claimed, and writes its plot.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments to run; all by default")
    parser.add_argument("--list", action="store_true", help="list the experiments and stop")
    parser.add_argument("--out", type=Path, default=Path("out/experiments"), help="folder for plots")
    options = parser.parse_args(arguments)
    if options.list:
        for experiment in EXPERIMENTS.values():
            print(f"{experiment.name:<20} {experiment.claim}")
        return 0
    for name in options.names:
        if name not in EXPERIMENTS:
            known = ", ".join(EXPERIMENTS)
            print(f"No experiment {name!r}; known: {known}.{nearest(name, EXPERIMENTS)}", file=sys.stderr)
            return 2
    jax.config.update("jax_enable_x64", True)  # slopes of small gaps want digits
    chosen = options.names or list(EXPERIMENTS)
    passed = [perform(EXPERIMENTS[name], options.out) for name in chosen]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
