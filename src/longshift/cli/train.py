"""`longshift train`: one run, from options or a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longshift.cli.common import JsonFlag, QuietFlag, percent, print_json, print_table, progress, say, say_notes, tell
from longshift.cli.run_options import run_fields, runtime_fields, with_options
from longshift.errors import UsageError
from longshift.io import read_toml
from longshift.text import duration


@with_options(run=run_fields(), execution=runtime_fields())
def train(
    run: dict[str, Any],
    execution: dict[str, Any],
    config: Annotated[
        Path | None, typer.Option(help="Read options from a TOML file (train-seed is train_seed); options override it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; default runs/METHOD-TARGET-HASH.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Resume the run in this folder; needs no other option.")] = None,
    track: Annotated[
        str | None,
        typer.Option(
            metavar="tensorboard|mlflow", help="Also write to tensorboard (in the run's folder) or mlflow (next to it)."
        ),
    ] = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Train one method and keep the run in a folder.

    Examples:

        longshift train --data digits --target ink --method ndcl --steps 300

        longshift train --data PACS.zip --benchmark PACS --setting Duality --target A --method ndcl --set alpha=0.3

        longshift train --config run.toml          # the same keys; tables [hparams] and [style]

        longshift train --resume runs/ndcl-ink-0   # resume after a kill or Ctrl-C
    """
    # Imported here: `longshift --help` must not wait for torch.
    from longshift.training import parse_runtime, tracker_kind, train as train_run

    values = read_toml(config) if config else {}
    request = {**values, **run}
    for table in ("hparams", "style"):
        if table in run and isinstance(values.get(table), dict):
            request[table] = {**values[table], **run[table]}
    if resume is not None and request:
        raise UsageError("--resume cannot be combined with other options of the run: they come from its folder")
    done = train_run(
        request if resume is None else None,
        out=out,
        resume=resume,
        runtime=parse_runtime(execution),
        track=tracker_kind(track) if track else None,
        bar=lambda label, total: progress(label, total, quiet),
        say=say_notes(quiet),
    )
    if as_json:
        print_json({"folder": str(done.folder), **done.result})
    else:
        show_result(done.folder, done.result)


def show_result(folder: Path, result: dict[str, Any]) -> None:
    """Print a finished run."""
    if result["status"] == "diverged":
        tell(f"the loss became infinite or NaN before step {result['diverged_at']}", "red")
    rows = []
    for which in ("selected", "averaged"):
        found = result.get(which) or {}
        for name in ("validation", "test", "target"):
            if name in found:
                part = found[name]
                numbers = [percent(part[key]) for key in ("accuracy", "many", "medium", "few", "worst_domain")]
                rows.append([f"{which} (step {found['step']})", name, *numbers])
    print_table("", ("weights", "set", "accuracy", "many", "medium", "few", "worst domain"), rows)
    seconds = result["seconds"]
    say(f"time  {seconds['per_step'] * 1000:.1f} ms per step, {duration(seconds['total'])} in total")
    say(f"run   {folder}")
