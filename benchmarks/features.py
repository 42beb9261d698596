"""Images per second of features on a CPU: ours, a plain timm loop and onnxruntime, in one run.

    python -m benchmarks.features PACS.zip --backbone mobilenetv2_100 --weights mobilenetv2_100_in1k.safetensors
    python -m benchmarks.features --table --out results/networks.csv    # those of `fit --network`

The plain loop is how such code is commonly written: a data loader with worker processes, timm's model in evaluation
mode, batches of 64. onnxruntime reads images as we do, in the same number of threads, one batch of 4 each. Rounds take
turns, so that all of them see the same load; the best round counts.
"""

from __future__ import annotations

import argparse
import functools
import io
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.common import machine, update_rows, write_rows
from longshift.data import PLAIN, Manifest, cores, load_dataset, open_source, ordered_map, read_pixels
from longshift.fitting.network_choice import NETWORKS, usual_size
from longshift.nn import make_backbone
from longshift.training import FeatureRequest, FrozenNetwork, Runtime, open_features, use_threads
from longshift.training.features import frozen_module
from longshift.training.inputs import channel_tensor, normalize_pixels

PLAIN_BATCH, ONNX_BATCH = 64, 4


class Files(Dataset[Tensor]):
    """Images, decoded and resized each time they are asked for."""

    def __init__(self, blobs: list[bytes], size: int) -> None:
        self.blobs, self.size = blobs, size

    def __len__(self) -> int:
        return len(self.blobs)

    def __getitem__(self, index: int) -> Tensor:
        image = Image.open(io.BytesIO(self.blobs[index])).convert("RGB").resize((self.size, self.size))
        return torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255


def plain_loop(blobs: list[bytes], network: FrozenNetwork, size: int, threads: int) -> None:
    """Features by a loop as people write it."""
    mean, std = (
        channel_tensor(values, torch.device("cpu")) for values in (network.backbone.mean, network.backbone.std)
    )
    module = network.backbone.module.eval()
    with torch.no_grad(), use_threads(threads):
        for images in DataLoader(Files(blobs, size), batch_size=PLAIN_BATCH, num_workers=threads):
            module((images - mean) / std)


def onnx_loop(blobs: list[bytes], network: FrozenNetwork, size: int, threads: int, file: Path) -> Callable[[], None]:
    """Features by onnxruntime, after it has read the network."""
    import onnxruntime

    example = torch.zeros(ONNX_BATCH, 3, size, size)
    torch.onnx.export(network.backbone.module.eval(), (example,), file, input_names=["x"], dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # each thread computes its own batch, as ours do
    session = onnxruntime.InferenceSession(file, options)
    mean, std = (
        channel_tensor(values, torch.device("cpu")) for values in (network.backbone.mean, network.backbone.std)
    )

    def work(start: int) -> None:
        pixels = np.stack([read_pixels(blob, size) for blob in blobs[start : start + ONNX_BATCH]])
        x = normalize_pixels(torch.from_numpy(pixels), mean, std).contiguous().numpy()
        if len(x) == ONNX_BATCH:
            session.run(None, {"x": x})

    def run() -> None:
        with use_threads(1):
            list(ordered_map(work, range(0, len(blobs), ONNX_BATCH), threads))

    return run


def part_of(manifest: Manifest, count: int, folder: Path) -> tuple[Path, list[bytes]]:
    """Some images of a dataset, evenly spread, as a folder of their own, and their bytes."""
    blobs = []
    with open_source(manifest) as source:
        for i in np.unique(np.linspace(0, len(manifest) - 1, count).astype(int)).tolist():
            file = folder / manifest.paths[i]
            file.parent.mkdir(parents=True, exist_ok=True)
            blobs.append(source.read(manifest.paths[i]))
            file.write_bytes(blobs[-1])
    return folder, blobs


def compare(args: argparse.Namespace) -> dict[str, object]:
    """One row: images per second of each way."""
    backbone = make_backbone(args.backbone, weights=args.weights, size=args.size)
    network = FrozenNetwork(args.backbone, replace(backbone, preprocessing=PLAIN))  # as the other ways
    with tempfile.TemporaryDirectory() as temporary:
        folder, blobs = part_of(load_dataset(args.data), args.images, Path(temporary) / "images")
        manifest = load_dataset(folder)
        threads, rounds = args.threads, iter(range(10**6))

        def ours() -> None:
            runtime = Runtime(device="cpu", threads=threads, cache=Path(temporary) / f"cache{next(rounds)}")
            open_features(manifest, network, FeatureRequest(args.size), runtime=runtime)

        ways: dict[str, Callable[[], object]] = {
            "decode": lambda: list(ordered_map(lambda blob: read_pixels(blob, args.size), blobs, threads)),
            "plain": lambda: plain_loop(blobs, network, args.size, threads),
            "onnxruntime": onnx_loop(blobs, network, args.size, threads, Path(temporary) / "network.onnx"),
            "longshift": ours,
        }
        speeds = best_of(ways, args.rounds, len(blobs))
    found = {name: round(speed, 1) for name, speed in speeds.items()}
    ratios = {f"per_{name}": round(speeds["longshift"] / speeds[name], 2) for name in ("plain", "onnxruntime")}
    return {"backbone": args.backbone, "size": args.size, "images": len(blobs), "threads": threads, **found, **ratios}


def best_of(ways: dict[str, Callable[[], object]], rounds: int, count: int) -> dict[str, float]:
    """Samples per second of each way: the best of some rounds, in which they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return {name: count / min(found) for name, found in seconds.items()}


def table(args: argparse.Namespace) -> list[dict[str, object]]:
    """Images per second of every network of `fit --network`, with random weights and pixels."""
    rows: list[dict[str, object]] = []
    batch, count = Runtime().images_at_once(on_cpu=True), 8 * args.threads
    for entry in NETWORKS:
        size = usual_size(entry.name) or 224
        module = frozen_module(make_backbone(entry.name, size=size).module, size, torch.device("cpu"))
        millions = round(sum(value.numel() for value in module.parameters()) / 1e6, 1)
        pixels = torch.rand(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
        parts = [functools.partial(module, pixels)] * (count // batch)

        def run(parts: Sequence[Callable[[], Tensor]] = tuple(parts)) -> None:
            with use_threads(1):
                list(ordered_map(forward, parts, args.threads))

        speed = best_of({"longshift": run}, args.rounds, count)["longshift"]
        rows.append({"network": entry.name, "size": size, "millions": millions, "images_per_second": round(speed, 2)})
    return rows


def forward(part: Callable[[], Tensor]) -> None:
    """One batch; inference mode belongs to a thread."""
    with torch.inference_mode():
        part()


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="digits")
    parser.add_argument("--backbone", default="mobilenetv2_100")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = table(args) if args.table else [compare(args)]
    rows = [{**row, **machine(torch.device("cpu"))} for row in rows]
    for row in rows:
        print(row)
    if args.table:
        write_rows(args.out, rows)
    else:
        update_rows(args.out, rows, {"backbone": ""})


if __name__ == "__main__":
    main()
