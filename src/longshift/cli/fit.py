"""`longshift fit`: a model from one's own data, with an honest estimate for a new site."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from longshift.cli.common import JsonFlag, QuietFlag, caution, console, errors, print_json, progress
from longshift.errors import UsageError

FIT_HELP = """Train on your own data and say what to expect at a site nobody has seen.

DATA is a folder site/class/image.jpg, the same in a .zip, a table, or a file of embeddings (.npz, .parquet).
Each site is held out in turn for an honest estimate, then the final model is trained on all sites. The folder then
holds the model, report.html and MODEL_CARD.md.

Examples:

    longshift fit hospitals/ --minutes 10

    longshift fit hospitals/ --compare              # was NDCL worth it?

    longshift fit embeddings.npz --target site_d    # hold out one site only

Press Ctrl-C once to stop with everything saved; the same command goes on.
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("fit", help=FIT_HELP)(fit)


def fit(
    data: Annotated[str, typer.Argument(help="Folder site/class/image, .zip, .csv, .parquet, .npz, or 'digits'.")],
    target: Annotated[str | None, typer.Option(help="Hold out this site only; default: each in turn.")] = None,
    method: Annotated[str, typer.Option(help="A name from `longshift methods`.")] = "ndcl",
    out: Annotated[Path | None, typer.Option(help="Where everything goes; default fits/NAME.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Steps that fit into this time here, at most 3 x the usual.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also train ERM, BSoftmax and NDCL-plus, and judge.")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps of each run; default by data size.")] = None,
    backbone: Annotated[
        str, typer.Option(help="Any timm model, small_conv, mlp; auto suits data and machine.")
    ] = "auto",
    weights: Annotated[Path | None, typer.Option(help="Start from a .safetensors file (offline).")] = None,
    pretrained: Annotated[
        bool | None, typer.Option("--pretrained/--no-pretrained", help="timm's own weights; default: if reachable.")
    ] = None,
    image_size: Annotated[int, typer.Option(min=0, max=1024, help="Pixels; 0 = by data and machine.")] = 0,
    average: Annotated[str, typer.Option(help="Also average the weights: ema or swa.")] = "none",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A hyper-parameter; repeat it.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which samples validate, initial weights, batches.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 ...")] = "auto",
    cache: Annotated[Path | None, typer.Option(help="Folder of decoded images; default $LONGSHIFT_CACHE.")] = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Fit (see FIT_HELP)."""
    from longshift.cli.train import parse_assignments
    from longshift.fitting import fit as run
    from longshift.training import Runtime, graceful_stop

    if average not in ("none", "ema", "swa"):
        raise UsageError(f"--average: expected none, ema or swa, got {average!r}")
    if minutes is not None and minutes <= 0:
        raise UsageError(f"--minutes: expected a positive number, got {minutes:g}")
    kind: Any = average

    def say(text: str) -> None:
        if not quiet and not as_json:
            console.print(text, markup=False, highlight=False, soft_wrap=True)

    def announce() -> None:
        errors.print("stopping after this step; press Ctrl-C again to stop at once")

    with graceful_stop(announce) as stop:
        done = run(
            data,
            target=target,
            method=method,
            out=out,
            minutes=minutes,
            compare=compare,
            steps=steps,
            backbone=backbone,
            weights=weights,
            pretrained=pretrained,
            image_size=image_size,
            average=kind,
            hparams=parse_assignments(set_ or []),
            seed=seed,
            runtime=Runtime(device=device, cache=cache),
            bar=lambda label, total: progress(label, total, quiet),
            say=say,
            stop=stop,
        )
    if as_json:
        print_json({"folder": str(done.folder), **done.summary.to_json()})
        return
    if quiet:  # else all of it was among the sentences
        if done.summary.warning:
            caution(f"warning: {done.summary.warning}")
        expected = f"Accuracy to expect at a new site: {done.summary.accuracy.words()}."
        result = " ".join(filter(None, (expected, done.summary.verdict)))
        console.print(result, markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"\nmodel   {done.folder / 'final'}\nreport  {done.report}\ncard    {done.card}\n"
        f"next    longshift predict {shlex.quote(str(done.folder))} {done.look.new_site}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
