"""Step time of every method as a ratio to ERM, in one run, beside the paper's cost table.

    python -m benchmarks.methods                                  # small conv net; on a GPU: ResNet-50, batch 3 x 32
    python -m benchmarks.methods --write                          # also update src/longshift/methods/cost.csv

An ERM run is kept warm and timed before and after every method; the ratio is to the mean of the two, so that a machine
that slows down half-way slows down both. Annealing, burn-in and the like are over at once: what is timed is a method
with all of its parts, as in most steps of a run. On a GPU, steps are captured as graphs; `--compile on` also compiles,
which takes half a minute more for every new batch shape.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch

import longshift.methods
from benchmarks.common import machine, made_up_task, step_parser, update_rows, warm_timer, write_rows
from longshift.methods import all_methods, get_method
from longshift.paper.published_tables import paper_table
from longshift.training.device import resolve_device
from longshift.training.task import Task

COST = Path(longshift.methods.__file__).parent / "cost.csv"


def schedules_over(method: str) -> dict[str, Any]:
    """The hyper-parameters with which every part of a method takes part from the first step."""
    known = get_method(method).Config.hyper_parameters()
    return {name: 0 for name, info in known.items() if info.steps and info.at_least == 0}


def measure(method: str, task: Task, args: argparse.Namespace) -> float:
    """Seconds per step."""
    with tempfile.TemporaryDirectory() as out:
        found = warm_timer(method, task, args, args.steps, schedules_over(method), out)
        seconds: float = found.seconds(args.steps) / args.steps
        found.close()
    return seconds


def paper_ratios() -> dict[str, float]:
    """The paper's seconds per batch on PACS as ratios to its BSoftmax, which costs what ERM costs (not printed)."""
    table = paper_table("cost")
    pacs = table[(table["dataset"] == "PACS") & (table["variant"] == "full")]
    values = dict(zip(pacs["method"], pacs["mean"].astype(float), strict=True))
    return {name: value / values["bsoftmax"] for name, value in values.items()}


def main() -> None:
    """Measure, print a line each, write a CSV."""
    parser = step_parser(__doc__, augment=torch.cuda.is_available())
    parser.add_argument("--classes", type=int, default=7)
    parser.add_argument("--methods", default="all")
    parser.add_argument(
        "--write", action="store_true", help="replace their rows on this hardware in the package's cost.csv"
    )
    args = parser.parse_args()
    names = list(all_methods()) if args.methods == "all" else args.methods.split(",")
    task = made_up_task(args.classes, args.size)
    published = paper_ratios()
    who = machine(resolve_device(args.device))
    hardware = who["device"] if who["device"] != "cpu" else who["cpu"]
    scratch = tempfile.TemporaryDirectory()
    erm = warm_timer("erm", task, args, args.steps * (len(names) + 1), schedules_over("erm"), scratch.name)
    before = erm.seconds(args.steps) / args.steps
    rows: list[dict[str, Any]] = []
    for name in names:
        seconds = measure(name, task, args)
        after = erm.seconds(args.steps) / args.steps
        row = {
            "method": name,
            "ratio": 1.0 if name == "erm" else round(seconds / ((before + after) / 2), 2),
            "seconds": round(seconds, 5),
            "paper_ratio": round(published[name], 2) if name in published else "",
            "hardware": hardware,
            "backbone": args.backbone,
            "batch": 3 * args.batch,
            "torch": who["torch"],
            "commit": who["commit"],
        }
        before = after
        rows.append(row)
        print(f"{name:10s} {row['ratio']:6.2f}  (paper {row['paper_ratio']})", flush=True)
    erm.close()
    scratch.cleanup()
    write_rows(args.out, rows)
    if args.write:
        update_rows(COST, rows, dict.fromkeys(("method", "hardware", "backbone"), ""))


if __name__ == "__main__":
    main()
