"""`longshift embed`: images to vectors."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from longshift.cli.common import JsonFlag, QuietFlag, caution, print_json, progress, say_lines, tell
from longshift.cli.run_options import runtime_fields, with_options
from longshift.errors import UsageError


@with_options(execution=runtime_fields(("device", "threads", "cache"), threads="Threads; default: one per processor."))
def embed(
    data: Annotated[str, typer.Argument(help="Folder domain/class/image, .zip, table of images, or digits.")],
    out: Annotated[Path, typer.Option(help="Write the table of vectors to this .npz or .parquet file.")],
    execution: dict[str, Any],
    backbone: Annotated[
        str | None,
        typer.Option(help="A timm model, torchvision/NAME, or small_conv; default: that of --weights, else resnet50."),
    ] = None,
    pretrained: Annotated[bool, typer.Option("--pretrained", help="Download pretrained weights.")] = False,
    weights: Annotated[Path | None, typer.Option(help="Use the weights in a .safetensors file.")] = None,
    image_size: Annotated[int, typer.Option(min=1, max=4096, help="Width and height of the images in pixels.")] = 224,
    preprocessing: Annotated[
        Literal["network", "resize"],
        typer.Option(help="Resize and crop images as the network states, or resize whole images, as DomainBed."),
    ] = "network",
    unlabeled: Annotated[
        bool, typer.Option("--unlabeled", help="Read all images in DATA, at any depth, without classes.")
    ] = False,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Pass all images through a frozen network once; training on the vectors then takes seconds on a CPU.

    The vectors are kept in the cache: the same command resumes after Ctrl-C or a kill, and `longshift train
    --trainable head` finds them there.

    For the vectors of a new site (`longshift predict`), add `--unlabeled` and name any folder of images. Images that
    cannot be read are then reported and skipped.

    Examples:

        longshift embed PACS.zip --backbone mobilenetv2_100 --pretrained --out pacs.npz

        longshift train --data pacs.npz --benchmark PACS --target A --method ndcl
    """
    if not (pretrained or weights):
        raise UsageError("--pretrained or --weights FILE.safetensors is needed: random weights give useless vectors")
    from longshift.data import PLAIN, load_dataset
    from longshift.inference import embed as vectors_of, require_table, write_table
    from longshift.io import refuse_overwrite, require_writable
    from longshift.nn import check_backbone, make_backbone, require_network_of
    from longshift.templates import render
    from longshift.training import PROTOCOL_WEIGHTS, FrozenNetwork, Interrupted, graceful_stop, parse_runtime

    require_table(out)
    refuse_overwrite(out, [data, *([weights] if weights else [])])
    require_writable(out)
    runtime = parse_runtime(execution)
    name = backbone or (require_network_of(weights) if weights else PROTOCOL_WEIGHTS)
    check_backbone(name, pretrained)
    made = make_backbone(name, pretrained=pretrained, weights=weights, size=image_size)
    network = FrozenNetwork(name, replace(made, preprocessing=PLAIN) if preprocessing == "resize" else made)
    manifest = load_dataset(data, needs=()) if unlabeled else load_dataset(data)
    if manifest.vectors:
        raise UsageError(f"Expected images, got vectors in {data}. Train on them: longshift train --data {data} ...")
    with (
        graceful_stop(lambda: tell("stopping; press Ctrl-C again to stop at once")) as stop,
        progress("vectors", len(manifest), quiet) as tick,
    ):

        def checked(done: int = 1, note: str = "") -> None:
            tick(done, note)
            if stop():
                raise Interrupted("stopped; all vectors so far are kept. Resume with the same command")

        found = vectors_of(manifest, network, image_size, skip_unreadable=unlabeled, runtime=runtime, tick=checked)
    for path, reason in found.skipped.items():
        caution(f"skipped {path}: {reason}")
    write_table(out, found, labeled=not unlabeled)
    samples, length = found.vectors.shape
    if as_json:
        print_json(
            {
                "file": str(out), "samples": samples, "length": length, "source": asdict(found.source),
                "skipped": [{"path": path, "reason": reason} for path, reason in found.skipped.items()],
            }
        )  # fmt: skip
    else:
        say_lines(render("longshift.inference", "embed.txt.j2", found=found, out=out, unlabeled=unlabeled))
