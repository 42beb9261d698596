"""Step time with style mixing as a ratio to the same method without it, in one run.

    python -m benchmarks.style --out results/style-cost.csv      # on a GPU: ResNet-50, batch 3 x 32, 224 px, compiled

Both runs are kept warm and timed in turn, a few steps each, so that a machine that slows down slows down both. The
ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.common import RunConfig, Runtime, StepTimer, Trainer, machine, made_up_task, write_rows
from longshift.training.device import resolve_device
from longshift.training.task import Task


def timer(method: str, style: str, share: float, task: Task, args: argparse.Namespace, out: Path) -> StepTimer:
    """A warm run."""
    styled: dict[str, float | int | str] = (
        {"style": style} if style == "none" else {"style": style, "style_share": share}
    )
    config = RunConfig(
        data="made-up", target=task.split.target, method=method, backbone=args.backbone, image_size=task.store.size,
        steps=args.warm + args.rounds * args.steps, augment="on", hparams={"batch_size": args.batch, **styled},
    )  # fmt: skip
    found = StepTimer(Trainer(config, task, out, Runtime(device=args.device, compile=args.compile)))
    found.seconds(args.warm)
    return found


def main() -> None:
    """Measure, print one line per method and style, write a CSV."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="resnet50" if cuda else "small_conv")
    parser.add_argument("--size", type=int, default=224 if cuda else 32)
    parser.add_argument("--batch", type=int, default=32, help="images per domain; three source domains")
    parser.add_argument("--methods", default="ndcl_plus,erm")
    parser.add_argument("--styles", default="both,amplitude,convolution,statistics")
    parser.add_argument("--share", type=float, default=0.5, help="share of the images that is styled")
    parser.add_argument("--warm", type=int, default=10 if cuda else 3)
    parser.add_argument("--steps", type=int, default=20 if cuda else 5, help="steps per round")
    parser.add_argument("--rounds", type=int, default=10 if cuda else 3)
    parser.add_argument("--compile", default="on" if cuda else "off", choices=("on", "off"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    device = resolve_device(args.device)
    task = made_up_task(7, args.size)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for method in args.methods.split(","):
            styles = ["none", *args.styles.split(",")]
            runs = {s: timer(method, s, args.share, task, args, Path(folder) / f"{method}-{s}") for s in styles}
            times: dict[str, list[float]] = {s: [] for s in styles}
            for _ in range(args.rounds):
                for style, run in runs.items():
                    times[style].append(run.seconds(args.steps) / args.steps)
            for run in runs.values():
                run.close()
            plain = float(np.median(times["none"]))
            for style in styles:
                seconds = float(np.median(times[style]))
                rows.append(
                    {"backbone": args.backbone, "size": args.size, "batch": 3 * args.batch, "method": method,
                     "style": style, "compile": args.compile, "seconds_per_step": f"{seconds:.5g}",
                     "ratio": f"{seconds / plain:.3f}", **machine(device)}
                )  # fmt: skip
                print(f"{method:12} {style:12} {seconds * 1e3:8.3f} ms per step  {seconds / plain:.3f}", flush=True)
            write_rows(args.out, rows)


if __name__ == "__main__":
    main()
