"""The status of each job of a sweep, from its store and from the table of runs next to sweep.toml.

A sweep resumes from a table: of runs made on another machine, often only DIR/runs.parquet was copied back. A job that
is finished there is finished here, with that row. The store's own result wins where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from longshift.errors import LongshiftError
from longshift.results import join_average, machine_columns, run_columns
from longshift.sweep.job_store import FINISHED, STATES, Entry, scan_jobs
from longshift.sweep.jobs import Plan
from longshift.sweep.sweep_folder import SweepFolder

PLACE = ("dataset", "method", "trial", "draw")  # columns that describe the job, not the run


@dataclass(frozen=True)
class RunTable:
    """The finished runs of a table, and the jobs that its rows belong to."""

    entries: dict[str, Entry] = field(default_factory=dict)
    places: tuple[tuple[str, dict[str, Any]], ...] = ()  # fingerprint, and the values of PLACE


def job_entries(plan: Plan, table: RunTable | None = None) -> dict[str, Entry]:
    """The status of each job of a plan; pass `table` if it was already read with `read_run_table`."""
    made = (read_run_table(plan.folder) if table is None else table).entries
    found = scan_jobs(plan.folder.store, [job.fingerprint for job in plan.runs])
    return {
        fingerprint: made[fingerprint] if entry.state not in FINISHED and fingerprint in made else entry
        for fingerprint, entry in found.items()
    }


def read_run_table(folder: SweepFolder) -> RunTable:
    """The finished runs of DIR/runs.parquet; none if there is no such file, an error if it is damaged."""
    if not (folder.file.exists() and folder.table.exists()):
        return RunTable()
    from longshift.results import read_runs  # `status` waits for pandas only where there is a table

    try:
        frame = read_runs(folder.table)
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        return _run_table({str(name): value for name, value in row.items()} for row in rows)
    except BadTable as error:
        raise LongshiftError(f"{folder.table} is damaged: {error}. {_ADVICE}") from error
    except LongshiftError as error:
        raise LongshiftError(f"{str(error).rstrip('.')}. {_ADVICE}") from error


_ADVICE = "Restore the file, or remove it; without it, the jobs that only it has run again."


class BadTable(LongshiftError):
    """A table of runs that contradicts itself or lacks something."""


def _run_table(rows: Iterable[dict[str, Any]]) -> RunTable:
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {}  # by fingerprint, then by kind of average
    places: dict[tuple[Any, ...], tuple[str, dict[str, Any]]] = {}
    for row in rows:
        if not _checked(row):
            continue
        fingerprint, kind = row["fingerprint"], average_of(row["method"])
        runs.setdefault(fingerprint, {}).setdefault(kind, []).append(row)
        if not kind:
            place = {name: row[name] for name in PLACE}
            places[(fingerprint, *place.values())] = fingerprint, place
    entries = {fingerprint: _entry(fingerprint, kinds) for fingerprint, kinds in runs.items()}
    return RunTable(entries, tuple(places.values()))


def average_of(method: str) -> str:
    """The kind of average in the name of a row's method: "ema" in "ndcl+ema", else ""."""
    _, plus, kind = method.rpartition("+")
    return kind if plus and kind in ("ema", "swa") else ""


def _checked(row: Mapping[str, Any]) -> bool:
    """Whether a row belongs to a finished run; an error if the row is damaged."""
    name = f"the row of {row['method'] or 'no method'}, {row['target']}, trial {row['trial']}, draw {row['draw']}"
    if row["status"] not in STATES:
        raise BadTable(f"{name}: expected a status among {', '.join(STATES)}, got {row['status']!r}")
    if row["status"] not in FINISHED:
        return False
    if not (row["fingerprint"] and row["method"]):
        raise BadTable(f"{name} does not say which run it is")
    if row["status"] == "done" and (row["selected_step"] is None or row["validation_accuracy"] is None):
        raise BadTable(f"{name} is done, but has no numbers")
    for column in run_columns():
        if column.type == "json" and row[column.name]:
            try:
                json.loads(row[column.name])
            except ValueError:
                raise BadTable(f"{name}: expected JSON as {column.name}, got {row[column.name][:40]!r}") from None
    return True


def _entry(fingerprint: str, kinds: Mapping[str, list[dict[str, Any]]]) -> Entry:
    """The run of some rows, in the form of the store."""
    averages = [kind for kind in kinds if kind]
    if "" not in kinds or len(averages) > 1:
        found = ", ".join(sorted(rows[0]["method"] for rows in kinds.values()))
        raise BadTable(f"expected the run {fingerprint[:16]} to have its own row and at most one average, got {found}")
    kind = averages[0] if averages else ""
    row = join_average(_agreed(fingerprint, kinds[""]), _agreed(fingerprint, kinds[kind]) if kind else None, kind)
    try:
        return Entry(row["status"], json.dumps(row, allow_nan=False), elsewhere=True)
    except ValueError as error:
        raise BadTable(f"the run {fingerprint[:16]} has a number that is not finite") from error


def _agreed(fingerprint: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The row that several names of one run share; they may differ in machine columns only."""
    first = rows[0]
    for row in rows[1:]:
        apart = [n for n in first if row[n] != first[n] and n not in (*PLACE, *machine_columns())]
        if apart:
            raise BadTable(
                f"the run {fingerprint[:16]} has two rows that differ in {', '.join(apart[:3])}: "
                f"{first[apart[0]]!r} and {row[apart[0]]!r}; keep one of them"
            )
    return first
