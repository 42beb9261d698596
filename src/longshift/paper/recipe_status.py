"""The status of each recipe: its runs, what of them is done, how long the rest takes, which files are there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from longshift.errors import LongshiftError
from longshift.files import read_json, write_json
from longshift.paper.chosen_runs import read_results
from longshift.paper.recipe import Recipe
from longshift.paper.recipe_runs import without_repeats
from longshift.paper.run_costs import Costs, cost_group
from longshift.paper.workspace import Workspace
from longshift.sweep import FINISHED
from longshift.text import counted

State = Literal["done", "ready", "partly", "missing", "impossible"]


@dataclass(frozen=True)
class RecipeStatus:
    """One line of `longshift reproduce --list`."""

    name: str
    label: str
    kind: str
    title: str
    runs: int
    done: int
    failed: int
    hours: float | None  # of what is left; None: not known
    needs: str  # a phrase: what the runs consist of
    state: State
    files: tuple[str, ...]
    note: str = ""

    @property
    def words(self) -> str:
        """The state, with the reason where it needs one."""
        return f"{self.state}: {self.note}" if self.note else self.state

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "files": list(self.files), "missing": self.runs - self.done - self.failed}


def status_of(workspace: Workspace, recipe: Recipe, costs: Costs, slots: int) -> RecipeStatus:
    """Look at the store and the folder of results."""
    jobs = without_repeats(recipe.jobs(workspace))
    entries = read_results(workspace, jobs).entries
    done = sum(entries[job.fingerprint].state in FINISHED for job in jobs)
    failed = sum(entries[job.fingerprint].state == "failed" for job in jobs)
    left = [job for job in jobs if entries[job.fingerprint].state not in (*FINISHED, "failed")]
    known = all(cost_group(job) in costs for job in left)
    hours = sum(costs[cost_group(job)] for job in left) / 3600 / max(slots, 1) if known else None
    ledger = read_ledger(workspace).get(recipe.name, {})
    # A file counts only if it was made of the runs that the recipe asks for now.
    fresh = ledger.get("runs") == sorted(job.id for job in jobs)
    files = tuple(name for name in ledger.get("files", []) if fresh and (workspace.out / name).exists())
    note = str(ledger.get("note", "")) if fresh else ""
    state: State = ("partly" if done else "missing") if left else ("done" if files else "ready")
    if note and not files:
        state = "impossible"
    return RecipeStatus(
        recipe.name, recipe.label, recipe.kind, recipe.title, len(jobs), done, failed, hours,
        needs(workspace, jobs), state, files, note,
    )  # fmt: skip


def needs(workspace: Workspace, jobs: Sequence[Any]) -> str:
    """What the runs are made of."""
    if not jobs:
        return f"{workspace.name} only, no runs"
    parts: dict[str, set[Any]] = {
        "row": {job.method for job in jobs}, "setting": {str(job.run["setting"]) for job in jobs},
        "target": {str(job.run["target"]) for job in jobs}, "trial": {job.trial for job in jobs},
        "draw": {job.draw for job in jobs},
    }  # fmt: skip
    whole = math.prod(map(len, parts.values())) == len(jobs)  # else not every row has every setting, say
    shape = (" x " if whole else ", ").join(counted(len(values), name) for name, values in parts.items())
    return f"{workspace.name}: {shape}" if whole else f"{workspace.name}: {counted(len(jobs), 'run')} of {shape}"


def read_ledger(workspace: Workspace) -> dict[str, Any]:
    """What was made of which runs."""
    try:
        found: dict[str, Any] = read_json(workspace.out / "made.json")
    except LongshiftError:
        return {}
    return found if isinstance(found, dict) else {}


def write_ledger(workspace: Workspace, name: str, jobs: Sequence[Any], files: Sequence[str], note: str = "") -> None:
    """Remember what a recipe made, of which runs."""
    ledger = read_ledger(workspace)
    ledger[name] = {"files": list(files), "runs": sorted({job.id for job in jobs}), "note": note}
    write_json(workspace.out / "made.json", dict(sorted(ledger.items())))
