"""The status of each recipe: its runs, what of them is done, how long the rest takes, which files are there."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from longshift.errors import LongshiftError
from longshift.io import read_json, write_json
from longshift.paper.recipe import Recipe, read_results
from longshift.paper.workspace import Workspace
from longshift.progress import Bar, Tick, no_bar, silent
from longshift.sweep import FINISHED, Job, Slot, measure_cost
from longshift.training import Runtime, TaskCache

State = Literal["done", "ready", "partly", "missing", "impossible"]
Costs = dict[str, float]  # kind of run -> seconds


@dataclass(frozen=True)
class RecipeStatus:
    """One entry of `longshift reproduce --list`."""

    name: str
    label: str
    kind: str
    title: str
    runs: int
    done: int
    failed: int
    missing: int
    hours: float | None  # of what is missing; None: not known
    shape: Mapping[str, int]  # how many rows, settings, targets, trials and draws its runs have
    state: State
    files: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class StatusList:
    """All of `longshift reproduce --list`; recipes share runs, so the runs are fewer than the sum."""

    slots: int
    runs: int
    missing: int
    hours: float | None
    recipes: tuple[RecipeStatus, ...]


def list_status(
    workspace: Workspace, recipes: Sequence[Recipe], slots: Sequence[Slot], measure: bool = False, bar: Bar = no_bar
) -> StatusList:
    """Look at the store and the folder of results; `measure`: time a few steps of each kind of run not yet known."""
    jobs = jobs_of(workspace, recipes)
    costs = known_costs(workspace, jobs)
    unknown = {cost_group(job) for job in jobs} - set(costs)
    if measure and unknown:
        with bar("measuring", len(unknown)) as tick:
            costs = measure_costs(workspace, jobs, costs, slots[0].device, tick)
    found = tuple(status_of(workspace, recipe, costs, len(slots)) for recipe in recipes)
    left = unfinished_jobs(workspace, jobs)
    return StatusList(len(slots), len(jobs), len(left), hours_of(left, costs, len(slots)), found)


def status_of(workspace: Workspace, recipe: Recipe, costs: Costs, slots: int) -> RecipeStatus:
    """Look at the store and the folder of results."""
    jobs = without_repeats(recipe.jobs(workspace))
    entries = read_results(workspace, jobs).entries
    done = sum(entries[job.fingerprint].state in FINISHED for job in jobs)
    failed = sum(entries[job.fingerprint].state == "failed" for job in jobs)
    left = unfinished_jobs(workspace, jobs)
    ledger = read_ledger(workspace).get(recipe.name, {})
    # A file counts only if it was made of the runs that the recipe asks for now.
    fresh = ledger.get("runs") == sorted(job.id for job in jobs)
    files = tuple(name for name in ledger.get("files", []) if fresh and (workspace.out / name).exists())
    note = str(ledger.get("note", "")) if fresh else ""
    state: State = ("partly" if done else "missing") if left else ("done" if files else "ready")
    if note and not files:
        state = "impossible"
    shape = {
        "row": len({job.method for job in jobs}), "setting": len({str(job.run["setting"]) for job in jobs}),
        "target": len({str(job.run["target"]) for job in jobs}), "trial": len({job.trial for job in jobs}),
        "draw": len({job.draw for job in jobs}),
    }  # fmt: skip
    return RecipeStatus(
        recipe.name, recipe.label, recipe.kind, recipe.title, len(jobs), done, failed, len(left),
        hours_of(left, costs, slots), shape if jobs else {}, state, files, note,
    )  # fmt: skip


def jobs_of(workspace: Workspace, recipes: Iterable[Recipe]) -> list[Job]:
    """The runs of some recipes, each once."""
    return without_repeats(job for recipe in recipes for job in recipe.jobs(workspace))


def without_repeats(jobs: Iterable[Job]) -> list[Job]:
    """Each run once, in the order of first mention."""
    return list({job.fingerprint: job for job in reversed(list(jobs))}.values())[::-1]


def unfinished_jobs(workspace: Workspace, jobs: Sequence[Job]) -> list[Job]:
    """Jobs that have neither a result nor an error."""
    entries = read_results(workspace, jobs).entries
    return [job for job in jobs if entries[job.fingerprint].state not in (*FINISHED, "failed")]


def read_ledger(workspace: Workspace) -> dict[str, Any]:
    """What was made of which runs."""
    try:
        found: dict[str, Any] = read_json(workspace.out / "made.json")
    except LongshiftError:
        return {}
    return found


def write_ledger(workspace: Workspace, name: str, jobs: Sequence[Job], files: Sequence[str], note: str = "") -> None:
    """Remember what a recipe made, of which runs."""
    ledger = read_ledger(workspace)
    ledger[name] = {"files": list(files), "runs": sorted({job.id for job in jobs}), "note": note}
    write_json(workspace.out / "made.json", dict(sorted(ledger.items())))


def cost_group(job: Job) -> str:
    """Runs of one kind take the same time: method, what it leaves out or changes, batch, image size, steps."""
    run = job.run
    hparams = {k: v for k, v in run["hparams"].items() if k in ("batch_size", "ablation", "contrast")}
    parts = (run["method"], run["backbone"], run["image_size"], run["steps"], json.dumps(hparams, sort_keys=True))
    return " ".join(map(str, parts))


def hours_of(jobs: Sequence[Job], costs: Costs, slots: int) -> float | None:
    """How long some runs take; None if the time of one is not known."""
    times = [costs.get(cost_group(job)) for job in jobs]
    known = [time for time in times if time is not None]
    return sum(known) / 3600 / max(slots, 1) if len(known) == len(times) else None


def known_costs(workspace: Workspace, jobs: Sequence[Job]) -> Costs:
    """Mean time of finished runs of each kind, else what was measured before (OUT/costs.json)."""
    entries = read_results(workspace, jobs).entries
    found: dict[str, list[float]] = {}
    for job in jobs:
        entry = entries[job.fingerprint]
        if entry.state == "done":
            found.setdefault(cost_group(job), []).append(float(entry.row()["seconds_total"]))
    finished = {name: statistics.mean(values) for name, values in found.items()}
    file = _costs_file(workspace)
    return {**(read_json(file) if file.exists() else {}), **finished}


def measure_costs(workspace: Workspace, jobs: Sequence[Job], known: Costs, device: str, tick: Tick = silent) -> Costs:
    """Train a few steps of each kind that is not known; kept in OUT/costs.json for the next time."""
    found, tasks = dict(known), TaskCache()
    torch.set_num_threads(1)
    workspace.write_settings()
    for job in jobs:
        name = cost_group(job)
        if name not in found:
            config = job.config
            cost = measure_cost(config, Runtime(), device, tasks)
            # Rounded here, so that this estimate equals the one that is read from the file next time.
            found[name] = round(cost.job_seconds(config, tasks.get(config).split), 4)
            tick(1, str(job.run["method"]))
    write_json(_costs_file(workspace), dict(sorted(found.items())))
    return found


def _costs_file(workspace: Workspace) -> Path:
    return workspace.out / "costs.json"
