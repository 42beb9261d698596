"""What does --deterministic cost, and are repeated runs then bit-identical? On a GPU.

    python -m benchmarks.determinism --data PACS.zip --target A --backbone resnet50 --steps 300 --out determinism.csv

Each method is trained twice without and twice with it, in turns, on the same data and with the same seeds. A line has
the seconds per step (the smaller of the two runs; without the first step and without evaluations), their ratio, and
the largest difference of any weight between the two runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from benchmarks.common import machine, write_rows
from longshift.training.device import resolve_device
from longshift.training.resolve_run import resolve
from longshift.training.run_config import Runtime
from longshift.training.run_folder import RunFolder
from longshift.training.task import make_task
from longshift.training.trainer import Trainer


def main() -> None:
    """Train, print a line a method, write a CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--setting", default="TotalHeavyTail")
    parser.add_argument("--target", default="ink")
    parser.add_argument("--backbone", default="auto")
    parser.add_argument("--weights")
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--methods", default="erm,ndcl_plus")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--compile", default="auto", choices=("auto", "on", "off"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for method in args.methods.split(","):
        request = {
            "data": args.data, "setting": args.setting, "target": args.target, "backbone": args.backbone,
            "weights": args.weights, "image_size": args.size, "method": method, "steps": args.steps,
            "eval_every": args.steps,
        }  # fmt: skip
        run = resolve(request)
        task = make_task(run)
        seconds: dict[bool, list[float]] = {False: [], True: []}
        weights: dict[bool, list[Any]] = {False: [], True: []}
        for deterministic in (False, True) * 2:
            runtime = Runtime(device=args.device, deterministic=deterministic, compile=args.compile)
            with tempfile.TemporaryDirectory() as out:
                seconds[deterministic].append(Trainer(run.config, task, out, runtime).run()["seconds"]["per_step"])
                weights[deterministic].append(load_file(RunFolder(Path(out)).model))
        fast, slow = min(seconds[False]), min(seconds[True])
        gaps = {on: max(float((a[k] - b[k]).abs().max()) for k in a) for on, (a, b) in weights.items()}
        row = {
            "method": method, "compile": args.compile, "steps": args.steps, "seconds_per_step": fast,
            "deterministic_seconds_per_step": slow, "ratio": slow / fast,
            "difference": gaps[False], "deterministic_difference": gaps[True],
        }  # fmt: skip
        print(json.dumps(row), flush=True)
        rows.append(row | machine(resolve_device(args.device)))
        write_rows(args.out, rows)


if __name__ == "__main__":
    main()
