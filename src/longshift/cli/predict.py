"""`longshift predict`: classes and probabilities of new images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from longshift.cli.common import (
    AdaptOption,
    AveragedFlag,
    CacheOption,
    ClassMixOption,
    CpuThreadsOption,
    DeviceOption,
    JsonFlag,
    ModelArgument,
    QuietFlag,
    ReferenceOption,
    caution,
    print_json,
    print_table,
    progress,
    say,
    say_lines,
    shares,
)
from longshift.errors import LongshiftError, UsageError

SHOWN = 6


def predict(
    model: ModelArgument,
    images: Annotated[
        list[str],
        typer.Argument(
            help="Images or vectors: files, folders, patterns ('*.jpg'), tables; - reads a list from standard input."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Write a .csv or .json file.")] = None,
    top_k: Annotated[int, typer.Option(min=1, help="Print this many classes per image.")] = 3,
    unsure: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Mark predictions with a lower probability as unsure; default: by the held-out sites.",
        ),
    ] = None,
    adapt: AdaptOption = "auto",
    reference: ReferenceOption = None,
    class_mix: ClassMixOption = None,
    page: Annotated[
        Path | None, typer.Option(help="Write one HTML page about the site: what to expect, images to check.")
    ] = None,
    averaged: AveragedFlag = False,
    device: DeviceOption = "auto",
    threads: CpuThreadsOption = 0,
    cache: CacheOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Predict classes with calibrated probabilities, and estimate the accuracy at this site without labels.

    Images that cannot be read are reported and skipped. The estimate needs a model of `longshift fit` and all images
    of one site in one call. With 20 images or more, the model is also adapted to the site, if that helped at held-out
    sites. If the model was no better than guessing at unseen sites, a warning is printed.

    Examples:

        longshift predict fits/mysites new_site/ --out predictions.csv --page site.html

        find new_site -name '*.jpg' | longshift predict fits/mysites - --json
    """
    from longshift.data import IMAGE_SUFFIXES, sample_file
    from longshift.inference import VECTOR_SUFFIXES, expand_inputs, load_model, predict as run, require_inputs
    from longshift.io import refuse_overwrite, require_writable, write_json, write_text
    from longshift.text import some

    for option, file, suffixes in (("--out", out, (".csv", ".json")), ("--page", page, (".html", ".htm"))):
        if file is not None:
            if file.suffix.lower() not in suffixes:
                raise UsageError(f"{option}: expected a file that ends with {' or '.join(suffixes)}, got {file}")
            require_writable(file)
    listed = sys.stdin.read().split("\n") if "-" in images else []
    items = [path for item in images for path in (listed if item == "-" else [item]) if path.strip()]
    if not items:
        raise LongshiftError(
            "Expected one path per line on standard input, got none. For example: "
            f"find new_site -name '*.jpg' | longshift predict {model} -"
        )
    weights: Literal["selected", "averaged"] = "averaged" if averaged else "selected"
    loaded = load_model(model, weights, device)
    noun, endings = ("vectors", VECTOR_SUFFIXES) if loaded.info.vectors else ("images", IMAGE_SUFFIXES)
    require_inputs(items, loaded.info.vectors)
    files = expand_inputs(items, loaded.info.vectors)
    for file in filter(None, (out, page)):
        refuse_overwrite(file, [model, *map(sample_file, items), *map(sample_file, files)])
    if not files:
        known = ", ".join(sorted(endings))
        raise LongshiftError(f"No {noun} (files that end with {known}) in {some(items, 3)} or below")
    with progress("predicting", len(files), quiet) as tick:
        found = run(
            loaded, files, top_k=top_k, unsure=unsure, adapt=adapt, reference=reference or None,
            mix=shares(class_mix), threads=threads, cache=cache, tick=tick, keep_outputs=page is not None,
        )  # fmt: skip
    if found.warning:  # also with --quiet, which silences progress only
        caution(f"warning: {found.warning}")
    for path, reason in found.skipped:
        caution(f"skipped {path}: {reason}")
    if not found.rows:
        raise LongshiftError("No input can be read; see the reasons above")
    value = found.to_json()
    if out is not None and out.suffix.lower() == ".json":
        write_json(out, value)
    elif out is not None:
        write_text(out, found.to_csv())
    if page is not None:
        from longshift.fitting import site_name, write_site_page

        write_site_page(page, loaded, found, site_name(images))
    if as_json:
        for sentence in found.warnings():
            caution(f"warning: {sentence}")
        print_json(value)
        return
    if out is None:
        rows = [[p.path, p.label, f"{p.probability:.3f}", "unsure" if p.unsure else ""] for p in found.rows[:SHOWN]]
        print_table("", ("path", "class", "probability", ""), rows)
        if len(found.rows) > SHOWN:
            say(f"... and {len(found.rows) - SHOWN} more; write all with --out predictions.csv")
    say_lines(found.to_text(out, page))
