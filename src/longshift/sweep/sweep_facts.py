"""What `longshift sweep plan` and `longshift sweep status` show; their words are in templates/."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longshift.sweep.jobs import Plan
from longshift.sweep.state import FINISHED, STATES, State, read_failure, read_states

if TYPE_CHECKING:  # `status` must not wait for torch
    from longshift.sweep.sweep_file import Sweep


@dataclass(frozen=True)
class PlanFacts:
    """The size of a sweep.

    Attributes:
        directory: The sweep's folder.
        jobs: Runs of the sweep.
        repeated: Jobs with the same run as another row.
        finished: Finished runs.
        failed: Failed runs.
        shape: Numbers of methods, variants, settings, trials and draws.
        datasets: The number of targets of each dataset.
    """

    directory: Path
    jobs: int
    repeated: int
    finished: int
    failed: int
    shape: dict[str, int]
    datasets: dict[str, int]


def plan_facts(sweep: Sweep, plan: Plan) -> PlanFacts:
    """Count the jobs of a plan."""
    runs, states = plan.runs, read_states(plan)
    counts = Counter(states[job.fingerprint].state for job in runs)
    shape = {name: len(getattr(sweep.table, name)) for name in ("methods", "variants", "settings", "trials")}
    return PlanFacts(
        directory=plan.folder.path,
        jobs=len(runs),
        repeated=len(plan.jobs) - len(runs),
        finished=sum(counts[state] for state in FINISHED),
        failed=counts["failed"],
        shape={**shape, "draws": sweep.table.draws},
        datasets={dataset.name: len(dataset.targets) for dataset in sweep.datasets},
    )


@dataclass(frozen=True)
class StatusFacts:
    """How far a sweep is.

    Attributes:
        directory: The sweep's folder.
        total: All runs.
        counts: Runs in each state.
        methods: Jobs in each state by method; a run that two rows share is counted in both.
        failures: The failed runs: the folder's name ("job"), what it is ("what") and its error in one line ("error").
        in_table: Finished runs that only the table of runs has.
        table: The table.
    """

    directory: Path
    total: int
    counts: dict[State, int]
    methods: dict[str, dict[State, int]]
    failures: list[dict[str, str]]
    in_table: int
    table: Path

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        counts: dict[str, Any] = {str(state): count for state, count in self.counts.items()}
        return {"total": self.total, **counts, "methods": self.methods, "failures": self.failures}


def status_facts(plan: Plan) -> StatusFacts:
    """Count the jobs of a plan by state."""
    states = read_states(plan)
    counts = Counter(found.state for found in states.values())
    methods: dict[str, Counter[State]] = {}
    for job in plan.jobs:
        methods.setdefault(job.method, Counter())[states[job.fingerprint].state] += 1
    failed = [job for job in plan.runs if states[job.fingerprint].state == "failed"]
    return StatusFacts(
        directory=plan.folder.path,
        total=len(states),
        counts={state: counts[state] for state in STATES},
        methods={name: {state: found[state] for state in STATES} for name, found in methods.items()},
        failures=[
            {"job": job.id, "what": str(job), "error": read_failure(plan.folder.store, job.fingerprint)}
            for job in failed
        ],
        in_table=sum(found.in_table for found in states.values()),
        table=plan.folder.table,
    )
