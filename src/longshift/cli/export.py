"""`longshift export`: a model for use elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from longshift.cli.common import (
    AveragedFlag,
    ClassMixOption,
    JsonFlag,
    ModelArgument,
    ReferenceOption,
    caution,
    print_json,
    say_lines,
    shares,
)


def export(
    model: ModelArgument,
    format: Annotated[
        Literal["onnx", "torch"] | None,
        typer.Option(help="Format; torch: torch.export (.pt2). Default: by the suffix of --out, else onnx."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file; default model.onnx or model.pt2 in the folder.")] = None,
    reference: ReferenceOption = None,
    class_mix: ClassMixOption = None,
    averaged: AveragedFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the model as ONNX or torch.export, checked against PyTorch on random and real inputs.

    The graph takes uint8 pixels (batch, size, size, 3) and normalizes them itself. A JSON file next to it has the rest:
    how to resize, the classes, the temperature.

    Example:

        longshift export fits/mysites --out mysites.onnx
    """
    from longshift.inference import export as write
    from longshift.templates import render

    if format is None:
        format = "torch" if out is not None and out.suffix.lower() == ".pt2" else "onnx"
    done = write(
        model, format, out, "averaged" if averaged else "selected", reference=reference or None, mix=shares(class_mix)
    )
    if done.warning:
        caution(f"warning: {done.warning}")
    if as_json:
        print_json(
            {
                **({"warning": done.warning} if done.warning else {}),
                "file": str(done.file),
                "description": str(done.description),
                "difference": done.difference,
                "random_inputs": done.random,
                "real_inputs": done.real,
            }
        )
        return
    say_lines(render("longshift.inference", "export.txt.j2", done=done, size=done.file.stat().st_size))
