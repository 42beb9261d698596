"""A plain loop in the usual style beside longshift's, on this machine, in one run.

    python -m benchmarks.plain_loop --backbone resnet50 --size 224 --steps 30
    python -m benchmarks.plain_loop --backbone small_conv --size 32 --steps 10 --workers 1     # quick, for a CPU

The plain loop is how such code is commonly written: one data loader a domain with worker processes, images decoded
from files and augmented with PIL, fp32, Adam, and the loss read with `.item()` in every step.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, RandomSampler
from torchvision import transforms

from benchmarks.common import machine, made_up_task, seconds_per_step
from longshift.nn.backbones import make_backbone
from longshift.training.device import resolve_device, synchronize
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.task import Task
from longshift.training.trainer import Trainer


class Files(Dataset[tuple[Tensor, int]]):
    """Images of one domain, decoded and augmented each time they are asked for."""

    def __init__(self, items: list[tuple[Path, int]], size: int) -> None:
        self.items = items
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(size, scale=(0.7, 1.0)),
                transforms.RandomHorizontalFlip(),
                transforms.ColorJitter(0.3, 0.3, 0.3, 0.3),
                transforms.RandomGrayscale(),
                transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path, label = self.items[index]
        image: Tensor = self.transform(Image.open(path).convert("RGB"))
        return image, label


def write_files(task: Task, folder: Path, most: int = 200) -> list[list[tuple[Path, int]]]:
    """Training images of each source domain as JPEG files."""
    domains: list[list[tuple[Path, int]]] = [[] for _ in task.split.sources]
    for row, d in zip(task.split.train, task.source_domains(task.split.train), strict=True):
        if len(domains[d]) < most:
            path = folder / f"{row}.jpg"
            Image.fromarray(task.store.inputs[row]).save(path, quality=90)
            domains[d].append((path, int(task.manifest.labels[row])))
    return domains


def endless(items: list[tuple[Path, int]], size: int, batch: int, workers: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches without end, with replacement."""
    data = Files(items, size)
    sampler = RandomSampler(data, replacement=True, num_samples=1_000_000)
    yield from DataLoader(data, batch_size=batch, sampler=sampler, num_workers=workers, persistent_workers=workers > 0)


def plain_seconds(args: argparse.Namespace, task: Task, device: torch.device) -> tuple[float, float]:
    """(update alone, with data loading), seconds a step of ERM."""
    backbone = make_backbone(args.backbone)
    model = nn.Sequential(backbone.module, nn.Linear(backbone.feature_dim, len(task.split.classes))).to(device)
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-5)
    with tempfile.TemporaryDirectory() as folder:
        loaders = [endless(d, args.size, args.batch, args.workers) for d in write_files(task, Path(folder))]
        update, whole = 0.0, 0.0
        for index in range(args.warm + args.steps):
            start = time.perf_counter()
            parts = [next(loader) for loader in loaders]
            x = torch.cat([p[0] for p in parts]).to(device)
            y = torch.cat([p[1] for p in parts]).to(device)
            loaded = time.perf_counter()
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
            synchronize(device)
            if index >= args.warm:
                update += time.perf_counter() - loaded
                whole += time.perf_counter() - start
        del loaders
    return update / args.steps, whole / args.steps


def ours(args: argparse.Namespace, task: Task, device: torch.device) -> float:
    """Seconds a step of ERM, end to end."""
    config = RunConfig(
        data="made-up", target=task.split.target, method="erm", backbone=args.backbone, image_size=args.size,
        steps=100_000, augment="on", hparams={"batch_size": args.batch},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as out:
        trainer = Trainer(config, task, Path(out), Runtime(device=str(device)))
        return seconds_per_step(trainer, args.warm, args.steps)[0]


def main() -> None:
    """Measure both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="resnet50")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=32, help="images per domain; three source domains")
    parser.add_argument("--workers", type=int, default=4, help="loader processes per domain")
    parser.add_argument("--warm", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    device = resolve_device(args.device)
    task = made_up_task(7, args.size)
    alone, whole = plain_seconds(args, task, device)
    own = ours(args, task, device)
    row: dict[str, Any] = {
        "backbone": args.backbone, "size": args.size, "batch": 3 * args.batch,
        "plain_update": round(alone, 5), "plain_with_loading": round(whole, 5), "longshift": round(own, 5),
        "ratio": round(whole / own, 2), **machine(device),
    }  # fmt: skip
    print(json.dumps(row))


if __name__ == "__main__":
    main()
