"""Do the CPU, the plain GPU path and the captured GPU path compute the same? fp32, same seeds, every method.

    python -m benchmarks.agreement --steps 20 --out agreement.csv

The difference is the largest over the reported terms of all steps, relative to 1 + |value|. On a machine without
a GPU only the CPU runs, against itself.
"""

from __future__ import annotations

import argparse
import tempfile
import traceback
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import machine, write_rows
from longshift.methods import all_methods, get_method
from longshift.training.device import resolve_device
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer

RATE = 5e-5  # the protocol's learning rate
# Schedules brought inside the first steps, so that both sides of every switch are compared.
EARLY: dict[str, dict[str, float | int]] = {
    "irm": {"anneal": 8}, "vrex": {"anneal": 8}, "fishr": {"anneal": 8}, "eqrm": {"burnin": 8}, "rdm": {"anneal": 8},
    "tcri": {"anneal": 8}, "boda": {"start_step": 10, "feat_update_freq": 6}, "ginidg": {"recon_end": 8},
}  # fmt: skip


def config_for(method: str, steps: int, **hparams: Any) -> RunConfig:
    """Digits, a small batch, early schedules; `hparams` on top."""
    known = get_method(method).Config.hyper_parameters()
    early = {name: value for name, value in EARLY.get(method, {}).items() if name in known}
    # The protocol's learning rate: at those for small images, NDCL amplifies rounding by half in each step.
    rates = {name: RATE for name in ("lr", "lr_g", "lr_d") if name in known}
    unused = get_method(method).Config.not_used()
    base: dict[str, Any] = {"batch_size": 8, **early, **{n: v for n, v in rates.items() if n not in unused}}
    hparams = {**base, **hparams}
    return RunConfig(data="digits", target="ink", method=method, steps=steps, eval_every=steps, hparams=hparams)


def term_values(method: str, steps: int, task: Task, runtime: Runtime, **hparams: Any) -> list[dict[str, float]]:
    """The reported terms of each step."""
    with tempfile.TemporaryDirectory() as out:
        trainer = Trainer(config_for(method, steps, **hparams), task, Path(out), runtime)
        trainer.method.train()
        rows = []
        for index in range(steps):
            trainer.step(index)
            rows.append(trainer.log.read())
        trainer.source.close()
    return rows


def largest_difference(a: list[dict[str, float]], b: list[dict[str, float]]) -> float:
    """Largest difference of a term, relative to 1 + its size."""
    found = 0.0
    for left, right in zip(a, b, strict=True):
        if left.keys() != right.keys():
            return float("inf")
        found = max([found, *(abs(left[k] - right[k]) / (1 + abs(left[k])) for k in left)])
    return found


def main() -> None:
    """Compare, print a line a method, write a CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--methods", default="all")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    names = list(all_methods()) if args.methods == "all" else args.methods.split(",")
    cuda = torch.cuda.is_available()
    task = make_task(config_for(names[0], args.steps))
    rows = []
    for name in names:
        row: dict[str, Any] = {"method": name, "steps": args.steps, "lr": RATE}
        try:
            cpu = term_values(name, args.steps, task, Runtime(device="cpu", precision="fp32"))
            for path in ("off", "on") if cuda else ("off",):
                runtime = Runtime(device="auto", precision="fp32", graphs="on" if path == "on" else "off")
                value = largest_difference(cpu, term_values(name, args.steps, task, runtime))
                row["graphs" if path == "on" else "plain"] = f"{value:.2e}"
        except Exception:
            row["error"] = traceback.format_exc().strip().splitlines()[-1]
            traceback.print_exc()
        print(row, flush=True)
        rows.append(row | machine(resolve_device("auto")))
        write_rows(args.out, rows)


if __name__ == "__main__":
    main()
