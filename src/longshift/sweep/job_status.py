"""Where each job of a sweep stands: by its store, and by the table of runs that lies beside sweep.toml.

A sweep goes on from a table: of runs made on another machine, often only DIR/runs.csv has come back. A job that is
finished there is finished here, with that row. The store's own result wins where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from longshift.errors import LongshiftError
from longshift.results import from_rows
from longshift.sweep.job_store import FINISHED, STATES, Entry, scan
from longshift.sweep.jobs import Plan
from longshift.sweep.sweep_folder import SweepFolder

PLACE = ("dataset", "method", "trial", "draw")  # what a job's row says of the sweep and not of the run


@dataclass(frozen=True)
class RunTable:
    """The finished runs of a table, and the rows of the sweep that they stood in."""

    entries: dict[str, Entry] = field(default_factory=dict)
    places: tuple[tuple[str, dict[str, Any]], ...] = ()  # fingerprint, and the values of PLACE


def job_entries(plan: Plan, table: RunTable | None = None) -> dict[str, Entry]:
    """Where each job of a plan stands; `table` is what `read_run_table` gives, where it was read already."""
    made = (read_run_table(plan.folder) if table is None else table).entries
    found = scan(plan.folder.store, [job.fingerprint for job in plan.runs])
    return {
        fingerprint: made[fingerprint] if entry.state not in FINISHED and fingerprint in made else entry
        for fingerprint, entry in found.items()
    }


def read_run_table(folder: SweepFolder) -> RunTable:
    """The finished runs of DIR/runs.csv; none where there is no such file, an error where it is damaged."""
    if not (folder.file.exists() and folder.table.exists()):
        return RunTable()
    from longshift.results import read_runs_csv  # `status` waits for pandas only where there is a table

    try:
        frame = read_runs_csv(folder.table)
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        return _run_table({str(name): value for name, value in row.items()} for row in rows)
    except BadTable as error:
        raise LongshiftError(f"{folder.table} is damaged: {error}. {_ADVICE}") from error
    except LongshiftError as error:
        raise LongshiftError(f"{error}. {_ADVICE}") from error


_ADVICE = "Restore it; or remove it to do without, and the jobs that only it has run again."


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
    """The kind of average that a row's method names: "ema" of "ndcl+ema", else ""."""
    _, plus, kind = method.rpartition("+")
    return kind if plus and kind in ("ema", "swa") else ""


def _checked(row: Mapping[str, Any]) -> bool:
    """Whether a row is that of a finished run; an error if it is no good row at all."""
    name = f"the row of {row['method'] or 'no method'}, {row['target']}, trial {row['trial']}, draw {row['draw']}"
    if row["status"] not in STATES:
        raise BadTable(f"{name}: expected a status among {', '.join(STATES)}, found {row['status']!r}")
    if row["status"] not in FINISHED:
        return False
    if not (row["fingerprint"] and row["method"]):
        raise BadTable(f"{name} does not say which run it is")
    if row["status"] == "done" and (row["selected_step"] is None or row["validation_accuracy"] is None):
        raise BadTable(f"{name} is done, but has no numbers")
    for column, kind in (("hparams", dict), ("validation_curve", list)):
        try:
            good = row[column] == "" or isinstance(json.loads(row[column]), kind)
        except ValueError:
            good = False
        if not good:
            raise BadTable(f"{name}: {column} is {row[column][:40]!r}, which is no JSON {kind.__name__}")
    return True


def _entry(fingerprint: str, kinds: Mapping[str, list[dict[str, Any]]]) -> Entry:
    """The run of some rows, in the form in which the store has it."""
    averages = [kind for kind in kinds if kind]
    if "" not in kinds or len(averages) > 1:
        found = ", ".join(sorted(rows[0]["method"] for rows in kinds.values()))
        raise BadTable(
            f"the run {fingerprint[:16]} should have a row of its own and at most one average, it has {found}"
        )
    kind = averages[0] if averages else ""
    row = from_rows(_agreed(fingerprint, kinds[""]), _agreed(fingerprint, kinds[kind]) if kind else None, kind)
    try:
        return Entry(row["status"], json.dumps(row, allow_nan=False), elsewhere=True)
    except ValueError as error:
        raise BadTable(f"the run {fingerprint[:16]} has a number that is not finite") from error


def _agreed(fingerprint: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows of one run under several names say the same, but for what depends on the machine and the moment."""
    from longshift.results import MACHINE_COLUMNS

    first = rows[0]
    for row in rows[1:]:
        apart = [n for n in first if row[n] != first[n] and n not in (*PLACE, *MACHINE_COLUMNS)]
        if apart:
            raise BadTable(
                f"the run {fingerprint[:16]} has two rows that differ in {', '.join(apart[:3])}: "
                f"{first[apart[0]]!r} and {row[apart[0]]!r}; keep one of them"
            )
    return first
