"""`longshift fit`: a model from your own data, with an honest estimate for a new site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longshift.cli.common import DataArgument, JsonFlag, QuietFlag, caution, print_json, progress, say, say_lines, tell
from longshift.cli.run_options import runtime_fields, with_options
from longshift.fitting import FitRequest

OPTIONS = {name: field for name, field in FitRequest.model_fields.items() if name != "data"}


@with_options(options=OPTIONS, execution=runtime_fields(("device", "deterministic", "threads", "cache")))
def fit(
    data: DataArgument,
    options: dict[str, Any],
    execution: dict[str, Any],
    out: Annotated[Path | None, typer.Option(help="Folder of all files of the fit; default fits/NAME.")] = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Train on your own data and estimate the accuracy at a new site.

    DATA is a folder site/class/image.jpg, the same in a .zip, a table, or a file of embeddings (.npz, .parquet).
    Each site is held out in turn for an honest estimate, then the final model is trained on all sites. The folder then
    holds the model, report.html and MODEL_CARD.md.

    Examples:

        longshift fit hospitals/ --minutes 10

        longshift fit hospitals/ --compare              # is another method better?

        longshift fit embeddings.npz --target site_d    # hold out one site only

    Press Ctrl-C once to save everything and stop; the same command resumes.
    """
    from longshift.fitting import make_request, open_data
    from longshift.training import parse_runtime

    request = make_request(data, options)
    manifest = open_data(request)  # before PyTorch is imported, which takes seconds

    from longshift.fitting import run_fit
    from longshift.training import graceful_stop

    with graceful_stop(lambda: tell("stopping after this step; press Ctrl-C again to stop at once")) as stop:
        done = run_fit(
            request,
            manifest,
            out,
            parse_runtime(execution),
            bar=lambda label, total: progress(label, total, quiet),
            say=(lambda text: None) if quiet or as_json else say,
            stop=stop,
        )
    if quiet or as_json:  # otherwise they were among the lines
        for warning in done.summary.data.warnings():
            caution(f"warning: {warning}")
    if as_json:
        print_json({"folder": str(done.folder), **done.summary.to_json()})
        return
    if quiet:
        for finding in done.summary.findings:
            say(finding)
    say("")
    say_lines(done.to_text())
