"""`wideflow show`."""

from typing import Any

from .._data import Data
from .console import answer, as_json, refuse, say, table
from .sources import source, study_of


def show_command(
    spec: str | None, changes: list[str], seed: int | None, schema: bool, json_too: bool
) -> None:
    """Print a spec as it would be run, and what it would take."""
    if schema:
        from ..spec.schema import FILE

        answer(FILE.read_text(encoding="utf-8").rstrip())
        return
    if spec is None:
        refuse("Give a spec or a preset to show, such as `wideflow show single-neuron`.", json_too)
    study = study_of(source(spec, json_too), changes, seed, json_too)
    from ..spec.writing import written
    from ..study.cost import estimates, memory
    from ..study.perform import in_precision

    with in_precision(study.spec):
        costs = estimates(study)
    if json_too:
        spec_data = study.spec.model_dump(mode="json", exclude_none=True)
        as_json({"spec": spec_data, "cost": [_data(c) for c in costs]})
        return
    answer(written(study.spec).rstrip())
    rows = [
        (c.label, _count(c.steps), _operations(c.operations), _time(c.seconds), _size(c.bytes)) for c in costs
    ]
    total = sum(c.seconds for c in costs)
    rows.append(("all", "", "", _time(total), _size(memory(costs))))
    lines = table(["run", "steps", "operations", "about", "memory"], rows)
    answer("\n" + "\n".join(f"# {line}" for line in lines.splitlines()))
    say("\nEstimates, to within a factor of three; memory is beside the 0.4 GB of the libraries.")


def _data(cost: Any) -> Data:
    return {
        "run": cost.label,
        "steps": cost.steps,
        "operations": cost.operations,
        "seconds": cost.seconds,
        "bytes": cost.bytes,
        "kept": cost.kept,
    }


def _count(steps: int | None) -> str:
    return "–" if steps is None else f"{steps:,}"


def _operations(count: float | None) -> str:
    return "–" if count is None else f"{count:.1e}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(count: float) -> str:
    return f"{count / 2**20:.0f} MB" if count < 2**30 else f"{count / 2**30:.1f} GB"
