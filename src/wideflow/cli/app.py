"""The command line: `wideflow run`, `presets`, `show`, `report`, `compare`, `reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from .console import BAD_INPUT, UNSAVED, answer
from .guards import refusals_told, warnings_told

app = typer.Typer(
    name="wideflow",
    help="Wide neural networks: finite width, mean-field limit, lazy limit, and how far they are apart.\n\n"
    "Start with `wideflow run single-neuron` and open the report it writes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 good, 1 a claim did not hold, 2 bad input, 3 diverged or stalled, 4 computed but "
    "not saved (a full disk), 130 interrupted (143 by SIGTERM, 129 by SIGHUP).",
)

SpecArgument = Annotated[
    str,
    typer.Argument(
        metavar="SPEC|PRESET",
        help="A TOML file, the name of a preset, or - for standard input.",
        autocompletion=lambda: _presets(),
    ),
]
OptionalSpec = Annotated[
    str | None,
    typer.Argument(metavar="SPEC|PRESET", help="As for run.", autocompletion=lambda: _presets()),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a field, such as --set problem.x.d=20 or --set dynamics.mean-field.seeds=5. Repeatable.",
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Another seed than the spec's.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, for machines.")]


def _presets() -> list[str]:
    from .. import presets

    return presets.names()


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        with refusals_told(BAD_INPUT):
            answer(f"wideflow {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options of the command itself."""
    context.with_resource(warnings_told())


@app.command()
def run(
    spec: SpecArgument,
    changes: Changes = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results; by default out/NAME, or out/NAME-2 … if that is another run's.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished run in the folder.")
    ] = False,
    json: Json = False,
) -> None:
    """Run a spec: all its dynamics, then the report.

    A killed run goes on with --resume, to the same numbers. A finished folder is left as it is."""
    from .run import run_command

    with refusals_told(UNSAVED):
        run_command(spec, changes or [], out, seed, resume, json)


@app.command()
def presets(
    name: Annotated[
        str | None, typer.Argument(help="Print this one's spec.", autocompletion=_presets)
    ] = None,
    copy: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Copy its files (spec and data) into a folder.")
    ] = None,
    warm_up: Annotated[
        bool,
        typer.Option(
            "--warm-up",
            help="Compile its programs ahead of time, those of all presets without a name, so that a run "
            "starts at once. It takes as long as the presets do.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """List the presets, print one, copy one to start from, or compile ahead of time."""
    from .presets import presets_command

    with refusals_told(BAD_INPUT):
        presets_command(name, copy, warm_up, json)


@app.command()
def show(
    spec: OptionalSpec = None,
    changes: Changes = None,
    seed: Seed = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of specs instead.")] = False,
    json: Json = False,
) -> None:
    """Check a spec and show it with all defaults filled in, with an estimate of time and memory."""
    from .show import show_command

    with refusals_told(BAD_INPUT):
        show_command(spec, changes or [], seed, schema, json)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    json: Json = False,
) -> None:
    """Write the figures and report.html of a finished run again."""
    from .report import report_command

    with refusals_told(UNSAVED):
        report_command(folder, json)


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Folders of finished runs.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("out/comparison.html"),
    json: Json = False,
) -> None:
    """Set several finished runs side by side: one table, one page."""
    from .report import compare_command

    with refusals_told(UNSAVED):
        compare_command(folders, out, json)


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Published claims to run.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run every claim.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the claims and stop.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for figures, records and the page: out/reproductions, or out/reproductions-reduced.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what is there already.")] = False,
    reduced: Annotated[
        bool, typer.Option("--reduced", help="A small run of each, which is no test of the claim.")
    ] = False,
    json: Json = False,
) -> None:
    """Run published claims: PASS or FAIL, the figure measured beside the figure claimed.

    What was done before is kept, so that --all can be stopped and started again."""
    from .reproduce import reproduce_command

    with refusals_told(BAD_INPUT if listing else UNSAVED):
        reproduce_command(names or [], everything, listing, out, fresh, reduced, json)


def main() -> None:
    """The entry point of the command."""
    from .console import leave_when_stopped, reopen_streams

    reopen_streams()
    leave_when_stopped()
    app()
