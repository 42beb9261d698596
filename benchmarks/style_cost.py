"""Step time with style mixing as a ratio to the same method without it, in one run.

    python -m benchmarks.style_cost --out results/style-cost.csv      # on a GPU: ResNet-50, batch 3 x 32, 224 px

Runs of 1,500 steps or more are compiled by default on a GPU, shorter ones are not: both are measured (`--compile`).
All runs of a method are kept warm and timed in turn, a few steps each, so that a machine that slows down slows down
all of them. Times are medians over these rounds, and the ratio is that of the medians; `low` and `high` are the least
and the greatest of the rounds. Rows of the file with another network, method, style, share, compilation or device are
kept.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common import listed, machine, made_up_task, step_parser, update_rows, warm_timer
from longshift.array_types import FloatArray
from longshift.training.device import resolve_device
from longshift.training.task import Task

STYLES = ("both", "amplitude", "convolution", "statistics")
SHARE = 0.5  # that of NDCL-plus, and of all rows of files without the column
COLUMNS = ("backbone", "size", "batch", "method", "style", "share", "compile", "device")  # they tell rows apart
KEY = dict.fromkeys(COLUMNS, "") | {"share": str(SHARE)}
ROUNDS = 3  # at least: fewer have no spread


def styled(style: str, share: float) -> dict[str, float | str]:
    """The table [style] of a style."""
    return {"mix": style} if style == "none" else {"mix": style, "share": share}


def step_times(method: str, styles: Sequence[str], task: Task, args: argparse.Namespace) -> dict[str, FloatArray]:
    """Seconds per step of each style in each round; the rounds of all styles alternate."""
    times: dict[str, list[float]] = {style: [] for style in styles}
    if args.compile == "on":  # networks of many runs are variants of one function, and too many fall back to plain code
        torch.compiler.reset()
    with tempfile.TemporaryDirectory() as folder:
        steps = args.rounds * args.steps
        runs = {
            style: warm_timer(method, task, args, steps, {}, Path(folder) / style, styled(style, args.share))
            for style in styles
        }
        for _ in range(args.rounds):
            for style, run in runs.items():
                times[style].append(run.seconds(args.steps) / args.steps)
        for run in runs.values():
            run.close()
    return {style: np.array(values) for style, values in times.items()}


def cost(seconds: FloatArray, plain: FloatArray) -> dict[str, str]:
    """The columns of a style from its times and those without it, in the same rounds."""
    ratios = seconds / plain
    return {
        "seconds_per_step": f"{np.median(seconds):.5g}",
        "seconds_low": f"{seconds.min():.5g}",
        "seconds_high": f"{seconds.max():.5g}",
        "seconds_without_style": f"{np.median(plain):.5g}",
        "ratio": f"{np.median(seconds) / np.median(plain):.3f}",
        "ratio_low": f"{ratios.min():.3f}",
        "ratio_high": f"{ratios.max():.3f}",
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, print one line per method, style and compilation, write a CSV."""
    cuda = torch.cuda.is_available()
    compiles = ["on", "off"] if cuda else ["off"]
    parser = step_parser(__doc__, several=True, steps=20 if cuda else 5, compile=compiles, augment=True)
    parser.add_argument("--methods", default="ndcl_plus,erm")
    parser.add_argument("--styles", type=listed(*STYLES), default=list(STYLES), help="some of them, or all")
    parser.add_argument("--share", type=float, default=SHARE, help="share of the images that is styled")
    parser.add_argument(
        "--rounds", type=int, default=10 if cuda else ROUNDS, help=f"times that each run is timed, at least {ROUNDS}"
    )
    args = parser.parse_args(arguments)
    if args.rounds < ROUNDS:
        parser.error(f"Expected --rounds of at least {ROUNDS}, got {args.rounds}.")
    task, who = made_up_task(7, args.size), machine(resolve_device(args.device))
    rows: list[dict[str, Any]] = []
    for compiled in args.compile:
        for method in args.methods.split(","):
            one = argparse.Namespace(**{**vars(args), "compile": compiled})
            times = step_times(method, ["none", *args.styles], task, one)
            for style, seconds in times.items():
                found = cost(seconds, times["none"])
                rows.append(
                    {"backbone": args.backbone, "size": args.size, "batch": 3 * args.batch, "method": method,
                     "style": style, "share": args.share, "compile": compiled, **found, "rounds": args.rounds,
                     "steps": args.steps, **who}
                )  # fmt: skip
                print(
                    f"{method:12} {style:12} compile {compiled:3} {1e3 * float(found['seconds_per_step']):8.3f} ms per "
                    f"step  {found['ratio']} ({found['ratio_low']} to {found['ratio_high']})",
                    flush=True,
                )
            update_rows(args.out, rows, KEY)


if __name__ == "__main__":
    main()
