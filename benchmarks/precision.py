"""Does the fast path (bf16, compiled, captured) end where the plain one (fp32) ends? Same seeds, real data.

    python -m benchmarks.precision --data PACS.zip --benchmark PACS --setting Duality --target A \\
        --backbone mobilenetv2_100 --weights mobilenetv2_100_in1k.safetensors --steps 300 --out precision.csv

Two runs of one seed differ from step to step, as rounding is amplified by training; what must agree is where they end.
The difference of the two paths, paired by seed, is therefore set beside the spread over seeds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, write_rows
from longshift.training.device import resolve_device
from longshift.training.run_config import Runtime, parse_run_config
from longshift.training.task import make_task
from longshift.training.trainer import Trainer


def paths(device: str) -> dict[str, Runtime]:
    """The two ways to compute."""
    cuda = resolve_device(device).type == "cuda"
    fast = Runtime(device=device, compile="on" if cuda else "off", keep_model=False)
    plain = Runtime(device=device, precision="fp32", graphs="off", compile="off", keep_model=False)
    return {"fast": fast, "plain": plain}


def run(args: argparse.Namespace, method: str, seed: int, runtime: Runtime) -> dict[str, float]:
    """Accuracies of the selected step."""
    values = {
        "data": args.data, "benchmark": args.benchmark, "setting": args.setting, "target": args.target,
        "method": method, "backbone": args.backbone, "weights": args.weights, "image_size": args.size,
        "steps": args.steps, "eval_every": max(args.steps // 6, 1), "split_seed": seed, "train_seed": seed,
    }  # fmt: skip
    config = parse_run_config({name: value for name, value in values.items() if value is not None})
    with tempfile.TemporaryDirectory() as out:
        result = Trainer(config, make_task(config), Path(out), runtime).run()
    found = result["selected"]
    if found is None:
        raise SystemExit(f"{method}, seed {seed}: diverged before its first evaluation")
    seconds = result["seconds"]["per_step"]
    return {name: found[name]["accuracy"] for name in ("validation", "target")} | {"seconds_per_step": seconds}


def main() -> None:
    """Train, print a line a run and a verdict a method, write a CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--benchmark")
    parser.add_argument("--setting", default="Duality")
    parser.add_argument("--target", default="ink")
    parser.add_argument("--backbone", default="auto")
    parser.add_argument("--weights")
    parser.add_argument("--size", type=int)
    parser.add_argument("--methods", default="erm,ndcl")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for method in args.methods.split(","):
        found: dict[str, list[float]] = {}
        for path, runtime in paths(args.device).items():
            for seed in range(args.seeds):
                numbers = run(args, method, seed, runtime)
                row = {"method": method, "path": path, "seed": seed, "steps": args.steps, **numbers}
                rows.append(row | machine(resolve_device(args.device)))
                found.setdefault(path, []).append(numbers["target"])
                print(json.dumps(row), flush=True)
                write_rows(args.out, rows)
        gap = np.array(found["fast"]) - np.array(found["plain"])
        spread = float(np.std(found["plain"], ddof=1)) if args.seeds > 1 else float("nan")
        print(
            f"{method}: target accuracy {np.mean(found['fast']):.4f} fast, {np.mean(found['plain']):.4f} plain; "
            f"difference {gap.mean():+.4f}, spread over seeds {spread:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
