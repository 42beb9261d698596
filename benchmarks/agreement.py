"""Do the CPU, the plain GPU path and the captured GPU path compute the same? fp32, same seeds, every method.

    python -m benchmarks.agreement --out results/agreement.csv                                 # every method, no style
    python -m benchmarks.agreement --style all --methods ndcl_plus,erm --out results/agreement.csv

Two differences to the plain CPU path are written for each other path. That of the terms is the largest over the
reported terms of all steps, relative to 1 + |value|. That of the weights after the last step is the norm of their
difference, relative to the norm of how far training moved them. Without a GPU the compiled CPU path is compared.
A number that is not finite on either side counts as an infinite difference. Rows of the file with another method, style
or device are kept, and so are the numbers of paths that are not compared, if steps and learning rate are the same; such
a row names all its commits. The exit code is 1 if a run failed.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.common import listed, machine, update_rows
from longshift.methods import all_methods, get_method
from longshift.training.device import resolve_device
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer

STYLES = ("none", "amplitude", "convolution", "both", "statistics")
STYLED = "ndcl_plus,erm"  # the methods that are compared with styles by default
# Share, views and partner of styled runs. Every style gets those of USUAL; `both`, the default of NDCL-plus, all.
USUAL = ((0.5, 1, "any"), (1.0, 2, "class"))
MORE = ((1.0, 1, "any"), (0.5, 2, "class"))
KEY = {"method": "", "style": "none", "device": ""}  # columns that tell rows of the file apart, as in old files
SAME = ("method", "style", "style_share", "style_views", "style_partner", "steps", "lr", "device")
VERSIONS = ("torch", "python", "commit")
CPU = Runtime("cpu", "fp32", compile="off")
PATHS = {
    "plain": Runtime("auto", "fp32", graphs="off", compile="off"),
    "graphs": Runtime("auto", "fp32", graphs="on", compile="off"),
    "compiled": Runtime("auto", "fp32", compile="on"),
}
RATE = 5e-5  # the protocol's learning rate
# Schedules brought inside the first steps, so that both sides of every switch are compared.
EARLY: dict[str, dict[str, float | int]] = {
    "irm": {"anneal": 8}, "vrex": {"anneal": 8}, "fishr": {"anneal": 8}, "eqrm": {"burnin": 8}, "rdm": {"anneal": 8},
    "tcri": {"anneal": 8}, "boda": {"start_step": 10, "feat_update_freq": 6},
    "ginidg": {"recon_end": 8, "disc_dropout": 0.0},  # the masks of dropout differ between devices
}  # fmt: skip


def config_for(method: str, steps: int, style: dict[str, Any] | None = None, **hparams: Any) -> RunConfig:
    """Digits, a small batch, early schedules; `hparams` on top."""
    known = get_method(method).Config.hyper_parameters()
    early = {name: value for name, value in EARLY.get(method, {}).items() if name in known}
    # The protocol's learning rate: at those for small images, NDCL amplifies rounding by half in each step.
    rates = {name: RATE for name in ("lr", "lr_g", "lr_d") if name in known}
    unused = get_method(method).Config.not_used()
    base: dict[str, Any] = {"batch_size": 8, **early, **{n: v for n, v in rates.items() if n not in unused}}
    values = {"method": method, "steps": steps, "eval_every": steps, "hparams": {**base, **hparams}, "style": style}
    return RunConfig.model_validate({"data": "digits", "target": "ink", **values})


@dataclass(frozen=True)
class Outcome:
    """What a run computed: the reported terms of each step, and all parameters before the first and after the last."""

    terms: list[dict[str, float]]
    start: Tensor
    weights: Tensor


def trained(method: str, steps: int, task: Task, runtime: Runtime, style: dict[str, Any] | None = None) -> Outcome:
    """Train for a few steps."""
    with tempfile.TemporaryDirectory() as out:
        trainer = Trainer(config_for(method, steps, style), task, Path(out), runtime)
        trainer.method.train()
        start, terms = _parameters(trainer), []
        for index in range(steps):
            trainer.step(index)
            terms.append(trainer.log.read())
        trainer.source.close()
        return Outcome(terms, start, _parameters(trainer))


def _parameters(trainer: Trainer) -> Tensor:
    return torch.cat([values.detach().double().flatten().cpu() for values in trainer.method.parameters()])


def term_difference(a: Outcome, b: Outcome) -> float:
    """Largest difference of a term, relative to 1 + its size; inf if the terms are others or one is not finite."""
    found = 0.0
    for left, right in zip(a.terms, b.terms, strict=True):
        # The maximum of 0 and NaN is 0, which would read as perfect agreement.
        if left.keys() != right.keys() or not all(map(math.isfinite, (*left.values(), *right.values()))):
            return math.inf
        found = max([found, *(abs(left[k] - right[k]) / (1 + abs(left[k])) for k in left)])
    return found


def weight_difference(a: Outcome, b: Outcome) -> float:
    """Norm of the difference of the weights, relative to the norm of how far `a` moved them; inf if not finite."""
    found = float((a.weights - b.weights).norm() / (a.weights - a.start).norm())
    return found if math.isfinite(found) else math.inf


def style_options(style: str) -> Iterator[dict[str, Any]]:
    """The table [style] of the runs with a style; a convolution has no partner."""
    if style == "none":
        yield {"mix": style}
        return
    for share, views, partner in (*USUAL, *(MORE if style == "both" else ())):
        options = {"mix": style, "share": share, "views": views}
        yield options if style == "convolution" else options | {"partner": partner}


def compare(method: str, options: dict[str, Any], task: Task, steps: int, paths: list[str]) -> dict[str, Any]:
    """The row of a method with a style."""
    names = {"mix": "style", "share": "style_share", "views": "style_views", "partner": "style_partner"}
    row: dict[str, Any] = {"method": method, **{column: options.get(name, "") for name, column in names.items()}}
    row |= {"steps": steps, "lr": RATE, **dict.fromkeys(PATHS, ""), **{f"weights_{path}": "" for path in PATHS}}
    try:
        cpu = trained(method, steps, task, CPU, options)
        for path in paths:
            if path == "compiled":  # a function with many compiled variants would fall back to the plain path
                torch.compiler.reset()
            other = trained(method, steps, task, PATHS[path], options)
            row[path] = f"{term_difference(cpu, other):.2e}"
            row[f"weights_{path}"] = f"{weight_difference(cpu, other):.2e}"
    except Exception:
        row["error"] = traceback.format_exc().strip().splitlines()[-1]
        traceback.print_exc()
    return row


def merged(row: Mapping[str, Any], old: Sequence[Mapping[str, str]], paths: Sequence[str]) -> dict[str, Any]:
    """The row with the numbers that an old row of the same runs has for the paths that were not compared now."""
    same = next((one for one in old if all(one.get(name, "") == str(row[name]) for name in SAME)), {})
    columns = [name for path in PATHS if path not in paths for name in (path, f"weights_{path}")]
    kept = {name: same[name] for name in columns if same.get(name)}
    sources = {name: " + ".join(dict.fromkeys([*same[name].split(" + "), row[name]])) for name in VERSIONS if kept}
    return {**row, **kept, **sources}


def read_rows(path: Path | None) -> list[dict[str, str]]:
    """The rows of the file, if there is one; rows of older files have no style."""
    if path is None or not path.exists():
        return []
    with path.open(newline="") as file:
        return [{**KEY, **row} for row in csv.DictReader(file)]


def main(arguments: list[str] | None = None) -> None:
    """Compare, print one line per run, write a CSV."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--methods", help=f"default: all, with a style {STYLED}")
    parser.add_argument("--style", type=listed(*STYLES), default=["none"], help="KIND[,KIND...] or all")
    parser.add_argument("--paths", type=listed(*PATHS), default=["plain", "graphs"] if cuda else ["compiled"])
    parser.add_argument("--out", type=Path, help="CSV file to write")
    args = parser.parse_args(arguments)
    methods = args.methods or ("all" if args.style == ["none"] else STYLED)
    names = list(all_methods()) if methods == "all" else methods.split(",")
    task = make_task(config_for(names[0], args.steps))
    rows, old = list[dict[str, Any]](), read_rows(args.out)
    for style in args.style:
        for name in names:
            for options in style_options(style):
                row = compare(name, options, task, args.steps, args.paths)
                print({key: value for key, value in row.items() if value != ""}, flush=True)
                rows.append(merged(row | machine(resolve_device("auto")), old, args.paths))
            update_rows(args.out, rows, KEY)
    if any("error" in row for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
