"""`longshift suggest`: which samples of a new site to label."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path
from typing import Annotated

import typer

from longshift.cli.common import (
    CacheOption,
    CpuThreadsOption,
    DeviceOption,
    JsonFlag,
    ModelArgument,
    QuietFlag,
    print_json,
    progress,
    say,
)
from longshift.errors import LongshiftError, UsageError


def suggest(
    model: ModelArgument,
    images: Annotated[
        list[str], typer.Argument(help="Images of the new site, or vectors: files, folders, patterns ('*.jpg').")
    ],
    n: Annotated[int, typer.Option("--n", min=1, help="How many samples to suggest.")] = 50,
    out: Annotated[Path, typer.Option(help="Write a .csv file to fill in.")] = Path("labels.csv"),
    page: Annotated[Path | None, typer.Option(help="Write a page with the images; default: next to --out.")] = None,
    device: DeviceOption = "auto",
    threads: CpuThreadsOption = 0,
    cache: CacheOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Choose the samples of a new site that are worth labeling, and write a CSV file to fill in.

    The samples are uncertain, differ from each other, and include predicted classes that are rare. Fill in the column
    `label`, then run `longshift adapt`.

    Example:

        longshift suggest fits/mysites new_site/ --n 50 --out labels.csv
    """
    from longshift.data import sample_file
    from longshift.fitting import choose_samples, site_name, write_site_page
    from longshift.inference import expand_inputs, load_model, predict, require_inputs
    from longshift.io import refuse_overwrite, require_writable, write_text
    from longshift.templates import render
    from longshift.text import csv_cell

    if out.suffix.lower() != ".csv":
        raise UsageError(f"--out: expected a file that ends with .csv, got {out}")
    if out.exists():
        raise UsageError(f"--out: {out} exists and may hold labels. Choose another file, or remove it.")
    shown = page or out.with_suffix(".html")
    for file in (out, shown):
        require_writable(file)
    loaded = load_model(model, device=device)
    require_inputs(images, loaded.info.vectors)
    files = expand_inputs(images, loaded.info.vectors)
    refuse_overwrite(shown, [model, *map(sample_file, [*images, *files])])
    with progress("predicting", len(files), quiet) as tick:
        found = predict(loaded, files, threads=threads, cache=cache, tick=tick, keep_outputs=True)
    outputs = found.outputs
    if outputs is None or outputs.features is None or not found.rows:
        raise LongshiftError(f"No input can be read. See the reasons: longshift predict {model}")
    shares = outputs.probabilities(loaded.temperature).numpy()
    chosen = choose_samples(shares, outputs.features.numpy(), n)
    rows = [found.rows[i] for i in chosen.tolist()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["path", "label", "predicted", "probability"])
    writer.writerows([[csv_cell(row.path), "", csv_cell(row.label), f"{row.probability:.4f}"] for row in rows])
    write_site_page(shown, loaded, found, site_name(images), chosen)
    write_text(out, text.getvalue())  # last: a command that is killed before can be repeated
    if as_json:
        print_json({"labels": str(out), "page": str(shown), "suggested": [row.to_json() for row in rows]})
        return
    say(
        render(
            "longshift.fitting", "suggest.txt.j2", chosen=len(rows), total=len(found.rows), out=out, page=shown,
            classes=loaded.classes, model=shlex.quote(str(model)),
        )
    )  # fmt: skip
