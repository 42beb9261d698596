"""`longshift embed`: images to vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longshift.cli.common import CacheOption, DeviceOption, JsonFlag, QuietFlag, print_json, progress, say
from longshift.errors import LongshiftError, UsageError

if TYPE_CHECKING:
    from longshift.data import Manifest


def embed(
    data: Annotated[str, typer.Argument(help="Folder domain/class/image, .zip, table of images, or digits.")],
    out: Annotated[Path, typer.Option(help="Write the table of vectors to this .npz file.")],
    backbone: Annotated[str, typer.Option(help="A timm model, torchvision/NAME, or small_conv.")] = "resnet50",
    pretrained: Annotated[bool, typer.Option("--pretrained", help="Use published weights, from the internet.")] = False,
    weights: Annotated[Path | None, typer.Option(help="Use the weights in a .safetensors file.")] = None,
    image_size: Annotated[int, typer.Option(min=1, help="Side of the images.")] = 224,
    unlabelled: Annotated[
        bool, typer.Option("--unlabelled", help="Read all images below DATA, without classes, to predict.")
    ] = False,
    device: DeviceOption = "auto",
    cache: CacheOption = None,
    quiet: QuietFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Pass all images through a frozen network once; training on the vectors then takes seconds on a CPU.

    Example: `longshift embed PACS.zip --backbone mobilenetv2_100 --pretrained --out pacs.npz`, then
    `longshift train --data pacs.npz --benchmark PACS --target A --method ndcl`

    For the vectors of a new site (`longshift predict`), add `--unlabelled` and give any folder of images.
    """
    if not (pretrained or weights):
        raise UsageError(
            "Expected --pretrained or --weights FILE.safetensors, got neither; random weights give useless vectors"
        )
    import numpy as np

    from longshift.data import load_dataset, open_store
    from longshift.files import replacing
    from longshift.inference import embed as vectors_of, write_table
    from longshift.nn import check_backbone, make_backbone

    if out.suffix.lower() != ".npz":
        raise UsageError(f"--out: expected a file that ends in .npz, got {out}")
    check_backbone(backbone, pretrained)
    network = make_backbone(backbone, pretrained=pretrained, weights=weights)
    manifest = _images_below(Path(data)) if unlabelled else load_dataset(data)
    if manifest.vectors:
        raise UsageError(f"Expected images, got vectors in {data}. Train on them: longshift train --data {data} ...")
    with progress("images", len(manifest), quiet) as tick:
        store = open_store(manifest, image_size, cache, tick)
    with progress("vectors", len(manifest), quiet) as tick:
        found = vectors_of(store, network, device, tick)
    if unlabelled:
        with replacing(out) as temporary, temporary.open("wb") as file:
            np.savez(file, x=found, id=np.array(manifest.paths))
    else:
        write_table(out, found, manifest)
    after = (
        f"predict them: longshift predict MODEL {out}"
        if unlabelled
        else f"train on them: longshift fit {out}, or longshift train --data {out} --setting Natural --target SITE"
    )
    if as_json:
        print_json({"file": str(out), "samples": found.shape[0], "length": found.shape[1]})
    else:
        say(f"wrote {out}: {found.shape[0]:,} vectors of length {found.shape[1]:,}\n{after}")


def _images_below(folder: Path) -> Manifest:
    """Every image below a folder, in any layout; its class and site are placeholders that are not written."""
    from longshift.data import Manifest, Row, list_folder

    if not folder.is_dir():
        raise UsageError(f"--unlabelled: expected a folder of images, got {folder}")
    images = list_folder(folder).images
    if not images:
        raise LongshiftError(f"Expected images in {folder} or below, got none")
    return Manifest.from_rows(folder.resolve().name, folder, [Row("", "", path) for path in images])
