"""How many jobs should share a GPU: runs an hour for 1, 2, 4 processes at once.

    python -m benchmarks.packing --backbone mobilenetv2_100 --steps 300 --jobs 1,2,4 --out packing.csv

All processes build their trainers and warm up (compiling, capturing) together; then the first one trains alone, then
two at once, and so on, while the others wait. Only the training counts.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from benchmarks.common import StepTimer, machine, made_up_task, step_parser, write_rows
from longshift.training.device import resolve_device
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.trainer import Trainer


def work(number: int, counts: list[int], args: argparse.Namespace, barrier: Barrier, results: Any) -> None:
    """One process: takes part in every round that is for more than `number` processes."""
    import torch

    torch.set_num_threads(1)
    task = made_up_task(7, args.size)
    config = RunConfig(
        data="made-up", target=task.split.target, method=args.method, backbone=args.backbone, image_size=args.size,
        steps=args.warm + args.steps * len(counts), augment="on", hparams={"batch_size": args.batch},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as out:
        timer = StepTimer(Trainer(config, task, Path(out), Runtime(device=args.device, compile=args.compile)))
        timer.seconds(args.warm)
        for jobs in counts:
            barrier.wait()
            if number < jobs:
                results.put((jobs, timer.seconds(args.steps)))
            barrier.wait()
        timer.close()


def main() -> None:
    """Measure, print a line each, write a CSV."""
    parser = step_parser(__doc__, backbone="mobilenetv2_100", size=224, warm=10, steps=300, compile="on")
    parser.add_argument("--method", default="erm")
    parser.add_argument("--jobs", default="1,2,4")
    parser.add_argument("--run-steps", type=int, default=5000, help="length of the run that is counted an hour")
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    rows = []
    counts = [int(jobs) for jobs in args.jobs.split(",")]
    barrier, results = context.Barrier(max(counts)), context.Queue()
    processes = [
        context.Process(target=work, args=(number, counts, args, barrier, results), daemon=True)
        for number in range(max(counts))
    ]
    for process in processes:
        process.start()
    times: dict[int, list[float]] = {jobs: [] for jobs in counts}
    for _ in range(sum(counts)):
        jobs, value = results.get(timeout=600)
        times[jobs].append(value)
    for process in processes:
        process.join()
    for jobs, seconds in times.items():
        step = max(seconds) / args.steps
        row = {
            "backbone": args.backbone, "method": args.method, "jobs": jobs, "seconds_per_step": round(step, 5),
            "steps_per_second": round(jobs / step, 1), "runs_per_hour": round(3600 * jobs / step / args.run_steps, 2),
            **machine(resolve_device(args.device)),
        }  # fmt: skip
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    write_rows(args.out, rows)


if __name__ == "__main__":
    main()
