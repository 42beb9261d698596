"""What a recipe is: a result of the paper, the runs it needs, and how to make it from them once they are finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pandas as pd

from longshift.analysis import DomainOutputs
from longshift.errors import LongshiftError
from longshift.paper.workspace import Workspace
from longshift.report import MissingRuns, Table, domain_predictions, find_missing
from longshift.sweep import FINISHED, Job, JobState, Plan, SweepFolder, as_frame, choose, read_states, unfinished_row
from longshift.templates import render
from longshift.text import counted
from longshift.training import RunFolder, read_metrics, read_predictions, read_result

if TYPE_CHECKING:
    from longshift.report import Drawing  # matplotlib takes a second to import


class Impossible(LongshiftError):
    """What a recipe shows cannot be had from these data and methods, and no further run would change that."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, what it shows, and the numbers that are drawn."""

    name: str
    title: str
    drawing: Drawing
    caption: str
    data: pd.DataFrame


Output: TypeAlias = Table | Picture


@dataclass(frozen=True, eq=False)
class Results:
    """The runs of one recipe: the table of all, the chosen ones, and their predictions."""

    workspace: Workspace
    jobs: tuple[Job, ...]
    entries: dict[str, JobState]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All runs, also those without numbers; `method` is the row they stand in."""
        return as_frame(self._row(job) for job in self.jobs)

    @cached_property
    def missing(self) -> MissingRuns:
        """Runs without numbers."""
        return find_missing(self.frame)

    @cached_property
    def chosen(self) -> pd.DataFrame:
        """The best draw of each trial, by validation."""
        if self.frame.empty:
            raise Impossible("none of the methods that it compares takes part")
        if not (self.frame["status"] == "done").any():
            raise LongshiftError(f"none of its {counted(len(self.jobs), 'run')} is finished with a number")
        return choose(self.frame)

    def _row(self, job: Job) -> dict[str, Any]:
        entry = self.entries[job.fingerprint]
        place = {"dataset": job.dataset, "method": job.method, "trial": job.trial, "draw": job.draw}
        # A file of counts goes by its name, not by where it lies.
        setting = str(job.run["setting"])
        place["setting"] = Path(setting).stem if setting.endswith(".json") else setting
        if entry.state in FINISHED:
            return {**entry.row(), **place}
        return {**unfinished_row(job.run, job.fingerprint, entry.state), **place}

    def name(self, fingerprint: str) -> str:
        """A description of a run, with the name of its folder."""
        job = next(job for job in self.jobs if job.fingerprint == fingerprint)
        return f"{job} ({job.id})"

    def result(self, fingerprint: str) -> dict[str, Any]:
        """Its result.json."""
        return read_result(RunFolder(self.workspace.store.job(fingerprint)), fingerprint)

    def metrics(self, fingerprint: str) -> list[dict[str, Any]]:
        """Its evaluations along the way."""
        return read_metrics(RunFolder(self.workspace.store.job(fingerprint)))

    def outputs(
        self, fingerprint: str, parts: Sequence[str] = ("validation", "test")
    ) -> tuple[tuple[DomainOutputs, ...], DomainOutputs]:
        """What the model says on the held-out samples of each source, and on the target."""
        path, name = predictions_file(self.workspace, fingerprint), self.name(fingerprint)
        if path is None:
            raise LongshiftError(f"{name}: its predictions were not kept")
        return domain_predictions(read_predictions(path), name, self.workspace.manifest.domain_names, parts)


def read_results(workspace: Workspace, jobs: Iterable[Job]) -> Results:
    """Look the runs up in the store."""
    listed = tuple(jobs)
    return Results(workspace, listed, read_states(Plan(SweepFolder(workspace.store.path), listed)))


def predictions_file(workspace: Workspace, fingerprint: str) -> Path | None:
    """Where the predictions of a run are, if they were kept."""
    paths = [RunFolder(store.job(fingerprint)).predictions for store in (workspace.store, workspace.again)]
    return next(filter(Path.exists, paths), None)


@dataclass(frozen=True)
class Recipe:
    """A result of the paper. `jobs` lists the runs, `make` turns finished ones into tables and figures."""

    name: str
    label: str  # the paper's: "Tab. 1"
    title: str
    kind: Literal["table", "figure"]
    jobs: Callable[[Workspace], Sequence[Job]]
    make: Callable[[Results], Sequence[Output]]
    predictions: bool = False  # whether it looks at single predictions and embeddings of the chosen runs
    paper: str = ""  # name of the table of the paper's numbers in `published_tables`


def caption(name: str, missing: MissingRuns | None = None, study: object = None, **facts: object) -> str:
    """The words under a table or figure; `missing`: name the runs that it lacks."""
    lost = missing.notes() if missing else ()
    text = render("longshift.paper", "captions.txt.j2", name=name, missing=lost, study=study, **facts)
    return " ".join(text.split())
