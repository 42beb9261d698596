"""`longshift fit`: a model from your own data, with an honest estimate for a new site."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from longshift.cli.common import JsonFlag, QuietFlag, caution, print_json, progress, say, tell
from longshift.cli.run_options import run_fields, runtime_fields, with_options
from longshift.errors import UsageError

# Options of a fit; it chooses the rest itself, so the defaults of `train` do not apply.
RUN = run_fields(
    ("method", "hparams", "style", "steps", "backbone", "pretrained", "weights", "image_size", "trainable", "head",
     "views", "average", "split_seed", "train_seed"),
    method="Method, see `longshift methods`; default ndcl_plus.",
    steps="Training steps of each run; by default chosen by the size of the data.",
    backbone="Any timm model, torchvision/NAME, small_conv or mlp; by default chosen for data and machine.",
    pretrained="Start from the published weights of the backbone; by default if they can be downloaded.",
    image_size="Pixels; by default chosen for data and machine.",
    trainable="all: train the whole network; head: only a head on its features; by default head without a GPU.",
)  # fmt: skip


@with_options(run=RUN, execution=runtime_fields(("device", "threads", "cache")))
def fit(
    data: Annotated[
        str, typer.Argument(help="Folder site/class/image, .zip, .csv, .parquet, .npz, 'digits' or 'pacs-features'.")
    ],
    run: dict[str, Any],
    execution: dict[str, Any],
    target: Annotated[str | None, typer.Option(help="Hold out this site only; default: each in turn.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of all files of the fit; default fits/NAME.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Use as many steps as fit into this time, at most 3 x the usual number.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also train ERM, BSoftmax and NDCL-plus, and compare the methods.")
    ] = False,
    what_if_labeled: Annotated[
        bool,
        typer.Option(
            "--what-if-labeled",
            help="Simulate at the held-out sites how much 10 to 100 labels would help.",
        ),
    ] = False,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Train on your own data and estimate the accuracy at a new site.

    DATA is a folder site/class/image.jpg, the same in a .zip, a table, or a file of embeddings (.npz, .parquet).
    Each site is held out in turn for an honest estimate, then the final model is trained on all sites. The folder then
    holds the model, report.html and MODEL_CARD.md.

    Examples:

        longshift fit hospitals/ --minutes 10

        longshift fit hospitals/ --compare              # is NDCL-plus better than plain training?

        longshift fit embeddings.npz --target site_d    # hold out one site only

    Press Ctrl-C once to save everything and stop; the same command resumes.
    """
    from longshift.data import holds_vectors, load_dataset, require_dataset

    # Before PyTorch is imported, which takes seconds.
    if minutes is not None and minutes <= 0:
        raise UsageError(f"--minutes: expected a positive number, got {minutes:g}")
    require_dataset(data)
    if target is not None and not holds_vectors(data):  # vectors may be gigabytes to read
        from longshift.fitting import held_out_site

        held_out_site(load_dataset(data), target)

    from longshift.fitting import fit as run_fit
    from longshift.training import graceful_stop, parse_runtime

    with graceful_stop(lambda: tell("stopping after this step; press Ctrl-C again to stop at once")) as stop:
        done = run_fit(
            data,
            target=target,
            out=out,
            minutes=minutes,
            compare=compare,
            what_if_labeled=what_if_labeled,
            runtime=parse_runtime(execution),
            bar=lambda label, total: progress(label, total, quiet),
            say=(lambda text: None) if quiet or as_json else say,
            stop=stop,
            **run,
        )
    if quiet or as_json:  # otherwise they were among the sentences
        for warning in done.look.warnings():
            caution(f"warning: {warning}")
    if as_json:
        print_json({"folder": str(done.folder), **done.summary.to_json()})
        return
    if quiet:  # otherwise it was among the sentences
        if done.summary.warning:
            caution(f"warning: {done.summary.warning}")
        expected = f"Accuracy at a new site: {done.summary.accuracy.words()}."
        result = " ".join(filter(None, (expected, done.summary.verdict, done.summary.style_mixing)))
        say(result)
    say(
        f"\nmodel   {done.folder / 'final'}\nreport  {done.report}\ncard    {done.card}\n"
        f"next    longshift predict {shlex.quote(str(done.folder))} {done.look.new_site}"
    )
