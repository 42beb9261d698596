"""How long the runs of a recipe take on this machine: what finished runs took, else a few measured steps."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from longshift.errors import LongshiftError
from longshift.files import read_json, write_json
from longshift.paper.workspace import Workspace
from longshift.progress import Tick, silent
from longshift.sweep import Entry, Job, measure_cost
from longshift.training import Runtime, TaskCache

Costs = dict[str, float]  # kind of run -> seconds


def cost_group(job: Job) -> str:
    """Runs of one kind take the same time: method, what it leaves out or changes, batch, image size, steps."""
    run = job.run
    hparams = {k: v for k, v in run["hparams"].items() if k in ("batch_size", "ablation", "contrast")}
    parts = (run["method"], run["backbone"], run["image_size"], run["steps"], json.dumps(hparams, sort_keys=True))
    return " ".join(map(str, parts))


def known_costs(jobs: Iterable[Job], entries: Mapping[str, Entry]) -> Costs:
    """Mean time of finished runs of each kind."""
    found: dict[str, list[float]] = {}
    for job in jobs:
        entry = entries[job.fingerprint]
        if entry.state == "done":
            found.setdefault(cost_group(job), []).append(float(entry.row()["seconds_total"]))
    return {name: statistics.mean(values) for name, values in found.items()}


def stored_costs(path: Path) -> Costs:
    """What was measured before; nothing if the file is missing or damaged."""
    try:
        return {str(name): float(value) for name, value in read_json(path).items()}
    except (LongshiftError, AttributeError, TypeError, ValueError):
        return {}


def measure_costs(workspace: Workspace, jobs: Iterable[Job], known: Costs, device: str, tick: Tick = silent) -> Costs:
    """Train a few steps of each kind that is not known; kept in OUT/costs.json for the next time."""
    path = workspace.out / "costs.json"
    found = {**stored_costs(path), **known}
    tasks, fresh = TaskCache(), False
    torch.set_num_threads(1)
    listed = list(jobs)
    workspace.write_settings()
    for job in listed:
        name = cost_group(job)
        if name in found:
            continue
        config = job.config
        cost = measure_cost(config, Runtime(), device, tasks)
        # Rounded here, so that this estimate equals the one that is read from the file next time.
        found[name] = round(cost.job_seconds(config, tasks.get(config).split), 4)
        fresh = True
        tick(1, str(job.run["method"]))
    if fresh:
        write_json(path, dict(sorted(found.items())))
    return found
