"""What the benchmarks share: a made-up task of any shape, timing, and who measured."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longshift.data import Store
from longshift.data.manifest import Manifest
from longshift.methods import StyleConfig
from longshift.settings.lookup import setting_for
from longshift.settings.split import make_split
from longshift.training.device import Stopwatch, describe_environment, synchronize
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.task import Task
from longshift.training.trainer import Trainer


def made_up_task(classes: int, size: int, domains: int = 4, per_cell: int = 40) -> Task:
    """Random pixels: the time of a step does not depend on what is in the picture."""
    cells = domains * classes
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (cells * per_cell, size, size, 3), dtype=np.uint8)
    names = tuple(f"domain{d}" for d in range(domains))
    manifest = Manifest(
        "made-up",
        None,
        tuple(f"{d}/{k}/{i}" for d in range(domains) for k in range(classes) for i in range(per_cell)),
        np.tile(np.repeat(np.arange(classes), per_cell), domains),
        np.repeat(np.arange(domains), classes * per_cell),
        tuple(f"class{k:03d}" for k in range(classes)),
        names,
    )
    split = make_split(manifest, setting_for(manifest, "TotalHeavyTail", names[0]), 0, shrink=True)
    return Task(manifest, split, Store(manifest, pixels, size, f"made-up {pixels.shape}"))


def step_parser(description: str | None, **defaults: object) -> argparse.ArgumentParser:
    """The options of benchmarks that time training steps; by default ResNet-50 on a GPU, a small network elsewhere."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="resnet50" if cuda else "small_conv")
    parser.add_argument("--size", type=int, default=224 if cuda else 32, help="side of the images in pixels")
    parser.add_argument("--batch", type=int, default=32, help="images per domain; three source domains")
    parser.add_argument("--warm", type=int, default=10 if cuda else 3, help="steps before the timed ones")
    parser.add_argument("--steps", type=int, default=50 if cuda else 10, help="timed steps")
    parser.add_argument("--compile", default="off", choices=("on", "off"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="CSV file to write")
    parser.set_defaults(**defaults)
    return parser


class StepTimer:
    """Times the steps of a trainer that has not run yet."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.done = trainer, 0
        trainer.method.train()

    def seconds(self, steps: int) -> float:
        """Seconds that the next `steps` steps take."""
        synchronize(self.trainer.device)
        watch = Stopwatch(self.trainer.device)
        for _ in range(steps):
            self.trainer.step(self.done)
            self.done += 1
        return watch.lap()

    def close(self) -> None:
        """Stop loading data."""
        self.trainer.source.close()


def warm_timer(
    method: str, task: Task, args: argparse.Namespace, steps: int, hparams: Mapping[str, Any], out: str | Path
) -> StepTimer:  # fmt: skip
    """A run of `steps` steps without style mixing after those of `--warm`, which are done."""
    config = RunConfig(
        data="made-up", target=task.split.target, method=method, backbone=args.backbone, image_size=task.store.size,
        steps=args.warm + steps, augment="on" if args.augment else "off",
        hparams={"batch_size": args.batch, **hparams}, style=StyleConfig(mix="none"),
    )  # fmt: skip
    found = StepTimer(Trainer(config, task, Path(out), Runtime(device=args.device, compile=args.compile)))
    found.seconds(args.warm)
    return found


def seconds_per_step(trainer: Trainer, warm: int, steps: int) -> tuple[float, float]:
    """(seconds per step once warm, seconds of the warm-up) of a trainer that has not run yet."""
    timer = StepTimer(trainer)
    first, then = timer.seconds(warm), timer.seconds(steps)
    timer.close()
    return then / steps, first


def write_rows(path: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV where a path is given; a row may lack columns that another has."""
    if path is None:
        return
    with path.open("w", newline="") as file:
        fields = list(dict.fromkeys(key for row in rows for key in row))
        writer = csv.DictWriter(file, fields, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def update_rows(path: Path | None, rows: Sequence[Mapping[str, Any]], key: Mapping[str, str]) -> None:
    """`write_rows`, keeping the rows of the file whose key none of the new rows has; those with one are replaced.

    `key` names the columns that tell rows apart, with the value that a row of an older file without them has.
    """
    if path is None:
        return
    old: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as file:
            old = [{**key, **row} for row in csv.DictReader(file)]
    measured = {tuple(str(row[name]) for name in key) for row in rows}
    kept = [row for row in old if tuple(row[name] for name in key) not in measured]
    fields = list(dict.fromkeys(name for row in (*rows, *kept) for name in row))
    write_rows(path, [{name: row.get(name, "") for name in fields} for row in (*kept, *rows)])


def listed(*allowed: str) -> Callable[[str], list[str]]:
    """The type of an option that takes some of these values, separated by commas, or "all"."""

    def parse(text: str) -> list[str]:
        values = list(allowed) if text == "all" else text.split(",")
        if wrong := [value for value in values if value not in allowed]:
            expected = f"some of {', '.join(allowed)}, separated by commas, or all"
            raise argparse.ArgumentTypeError(f"Expected {expected}, got {wrong[0]!r}.")
        return values

    return parse


def machine(device: torch.device) -> dict[str, str]:
    """Hardware, versions and commit, for a column each."""
    found = describe_environment(device)
    return {key: found[key] for key in ("device", "cpu", "torch", "python", "commit")}
