"""The row of a finished run, read from its folder and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from longshift.errors import LongshiftError
from longshift.results.run_schema import BadResult, column_names, read_row
from longshift.training import RunFolder, read_metrics, read_result

AVERAGED = "averaged"  # key of a row: the values that differ for the averaged weights, and the kind of average


def read_summary(folder: Path, fingerprint: str) -> dict[str, Any]:
    """The row of a finished run; `BadResult` if anything about its files is wrong."""
    path = RunFolder(folder).result
    try:
        result = read_result(RunFolder(folder), fingerprint)
        evaluations = read_metrics(RunFolder(folder))
        row = summarize(result, evaluations)
        if result["run"]["evaluate"] == "full" and not RunFolder(folder).metrics.exists():
            raise BadResult("its metrics.jsonl is missing")
    except LongshiftError as error:
        raise BadResult(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        raise BadResult(f"{path} is damaged: {type(error).__name__}: {error}") from error
    return row


def summarize(result: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The row of a checked result."""
    row = read_row({**result, "evaluations": evaluations})
    if not result["averaged"]:
        return row
    judged = [{"step": e["step"], "validation": e[_JUDGED]} for e in evaluations if _JUDGED in e]
    other = read_row({**result, "selected": result["averaged"], "last": None, "evaluations": judged})
    return join_average(row, other, result["run"]["average"])


_JUDGED = "averaged_validation"


def with_average(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row, and a second row for averaged weights if the run has them: the same run as the method "ndcl+ema"."""
    own = {name: value for name, value in row.items() if name != AVERAGED}
    yield own
    if row.get(AVERAGED):
        values = dict(row[AVERAGED])
        yield {**own, "method": f"{own['method']}+{values.pop('kind')}", **values}


def join_average(row: Mapping[str, Any], averaged: Mapping[str, Any] | None, kind: str) -> dict[str, Any]:
    """The inverse: one row of a run and of its average, such that `with_average` gives both."""
    if averaged is None:
        return dict(row)
    names = [name for name in column_names() if name in row and name != "method"]
    changed = {name: averaged[name] for name in names if averaged[name] != row[name]}
    return {**row, AVERAGED: {"kind": kind, **changed}}


def unfinished_row(run: Mapping[str, Any], fingerprint: str, status: str) -> dict[str, Any]:
    """The row of a run without a result: what its configuration says, and its status."""
    known = {name: run[name] for name in column_names() if name in run and name != "hparams"}
    return {**known, "fingerprint": fingerprint, "status": status}
