"""The status of each recipe: its runs, what of them is done, which files are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from longshift.io import read_json, write_json
from longshift.paper.recipe import Recipe, read_results
from longshift.paper.workspace import Workspace
from longshift.sweep import FINISHED, Job, JobState

State = Literal["done", "ready", "partly", "missing", "impossible"]


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
    shape: Mapping[str, int]  # how many rows, settings, targets, trials and draws its runs have
    state: State
    files: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class StatusList:
    """All of `longshift reproduce --list`; recipes share runs, so the runs are fewer than the sum."""

    runs: int
    missing: int
    recipes: tuple[RecipeStatus, ...]


def list_status(workspace: Workspace, recipes: Sequence[Recipe]) -> StatusList:
    """Look at the store and the folder of results."""
    jobs = jobs_of(workspace, recipes)
    states = read_results(workspace, jobs).entries
    left = sum(_is_open(states[job.fingerprint]) for job in jobs)
    ledger = read_ledger(workspace)
    found = tuple(_status(workspace, recipe, states, ledger.get(recipe.name, {})) for recipe in recipes)
    return StatusList(len(jobs), left, found)


def _status(
    workspace: Workspace, recipe: Recipe, states: Mapping[str, JobState], made: Mapping[str, Any]
) -> RecipeStatus:
    jobs = jobs_of(workspace, [recipe])
    own = [states[job.fingerprint] for job in jobs]
    done, left = sum(one.state in FINISHED for one in own), sum(map(_is_open, own))
    # A file counts only if it was made of the runs that the recipe asks for now.
    fresh = made.get("runs") == sorted(job.id for job in jobs)
    files = tuple(name for name in made.get("files", []) if fresh and (workspace.out / name).exists())
    note = str(made.get("note", "")) if fresh else ""
    state: State = ("partly" if done else "missing") if left else ("done" if files else "ready")
    if note and not files:
        state = "impossible"
    shape = {
        "row": len({job.method for job in jobs}), "setting": len({str(job.run["setting"]) for job in jobs}),
        "target": len({str(job.run["target"]) for job in jobs}), "trial": len({job.trial for job in jobs}),
        "draw": len({job.draw for job in jobs}),
    }  # fmt: skip
    return RecipeStatus(
        recipe.name, recipe.label, recipe.kind, recipe.title, len(jobs), done, len(jobs) - done - left, left,
        shape if jobs else {}, state, files, note,
    )  # fmt: skip


def jobs_of(workspace: Workspace, recipes: Iterable[Recipe]) -> list[Job]:
    """The runs of some recipes, each once, in the order of first mention."""
    jobs = [job for recipe in recipes for job in recipe.jobs(workspace)]
    return list({job.fingerprint: job for job in reversed(jobs)}.values())[::-1]


def unfinished_jobs(workspace: Workspace, jobs: Sequence[Job]) -> list[Job]:
    """Jobs that have neither a result nor an error."""
    states = read_results(workspace, jobs).entries
    return [job for job in jobs if _is_open(states[job.fingerprint])]


def _is_open(state: JobState) -> bool:
    return state.state not in (*FINISHED, "failed")


def read_ledger(workspace: Workspace) -> dict[str, Any]:
    """What was made of which runs."""
    path = workspace.out / "made.json"
    found: dict[str, Any] = read_json(path) if path.exists() else {}
    return found


def write_ledger(workspace: Workspace, name: str, jobs: Sequence[Job], files: Sequence[str], note: str = "") -> None:
    """Remember what a recipe made, of which runs."""
    ledger = read_ledger(workspace)
    ledger[name] = {"files": list(files), "runs": sorted({job.id for job in jobs}), "note": note}
    write_json(workspace.out / "made.json", dict(sorted(ledger.items())))
