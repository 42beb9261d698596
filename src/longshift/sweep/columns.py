"""The columns of the table of runs, each declared once, and the row of a finished run.

Reading and writing tables (CSV, Parquet), types and the table of columns in docs/reference/run-table.md follow from
this list. Packages outside longshift add columns with `register_column`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from longshift.errors import LongshiftError, UsageError
from longshift.io import content_hash
from longshift.registry import code_version, load_plugins
from longshift.training import RunFolder, read_metrics, read_result

# result.json, with the lines of metrics.jsonl as "evaluations".
RunResult = Mapping[str, Any]
Read = Callable[[RunResult], object]
ColumnType = Literal["text", "integer", "number", "json"]

SETS = {"validation": "validation set", "test": "test set", "target": "target"}
METRICS = {
    "accuracy": "accuracy",
    "many": "mean accuracy of the many-shot classes",
    "medium": "mean accuracy of the medium-shot classes",
    "few": "mean accuracy of the few-shot classes",
    "worst_domain": "accuracy of the worst domain",
    "macro_f1": "mean F1 score of the classes",
    "margin": "mean margin",
    "ece": "expected calibration error of the plain outputs, before calibration",
    "nll": "mean negative log-likelihood of the plain outputs",
}
GAPS = {
    "posterior_target": "discrepancy of class-mean posteriors between sources and target",
    "posterior_sources": "discrepancy of class-mean posteriors among sources",
}
BALANCED = "validation_balanced"
AVERAGES = ("ema", "swa")
AVERAGED = "averaged"  # key of a row: the values that differ for the averaged weights, and the kind of average


class BadResult(LongshiftError):
    """A result that cannot be trusted."""


@dataclass(frozen=True)
class RunColumn:
    """One column of the table of runs."""

    name: str  # name in the table
    type: ColumnType  # "text", "integer", "number" or "json" (text that holds a JSON value)
    meaning: str  # one phrase for the documentation
    read: Read | None = None  # function from a run's result to the value; None for what only the sweep knows
    machine: bool = False  # whether the value depends on the machine or the moment
    version: str = ""  # hash of the code that reads a plugin's column; empty for a built-in column

    def value(self, result: RunResult) -> str | int | float | None:
        """The checked value for a run."""
        found = self.read(result) if self.read else None
        if self.type == "json":
            return "" if found is None else json.dumps(found, sort_keys=True)
        if self.type == "text":
            return "" if found is None else str(found)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
            raise BadResult(f"{self.name}: expected a finite number, got {found!r}")
        return int(found) if self.type == "integer" else float(found)


def _run(name: str) -> Read:
    return lambda result: result["run"][name]


def _step(part: str) -> Read:
    return lambda result: result[part]["step"] if result[part] else None


def _metric(part: str, name: str, metric: str) -> Read:
    return lambda result: found[metric] if (found := (result[part] or {}).get(name)) else None


def _gap(part: str, name: str) -> Read:
    # A run without a target has no discrepancies.
    return lambda result: (result[part] or {}).get("posterior", {}).get(name)


def _balanced(part: str, name: str) -> Read:
    def read(result: RunResult) -> object:
        from longshift.metrics import mean_class_accuracy  # NumPy, which `sweep status` does not wait for

        found = (result[part] or {}).get(name) or {}
        by_cell = name == "validation" and 0 < (result["run"].get("validation") or 0) < 1
        if found and by_cell:  # cells count equally, as in training
            return found["accuracy"]
        per_class = found.get("per_class", {})
        known = [value for value in per_class.values() if value is not None]
        return mean_class_accuracy(known) if known else None

    return read


def _best_on_target(result: RunResult) -> Mapping[str, Any] | None:
    """The evaluation with the highest target accuracy (the first of equals): nobody could have selected it."""
    measured = [line for line in result["evaluations"] if "target" in line]
    return max(measured, key=lambda line: float(line["target"]["accuracy"])) if measured else None


def _oracle(metric: str) -> Read:
    return lambda result: best["target"][metric] if (best := _best_on_target(result)) else None


def _oracle_step(result: RunResult) -> object:
    return best["step"] if (best := _best_on_target(result)) else None


def _curve(result: RunResult) -> object:
    """Null without any evaluation: the run diverged before its first, or its metrics.jsonl was removed."""
    points = []
    for line in result["evaluations"]:
        accuracy = line["validation"]["accuracy"]
        if not isinstance(accuracy, (int, float)) or not math.isfinite(accuracy):
            raise BadResult(f"validation_curve: expected a finite number, got {accuracy!r}")
        points.append([int(line["step"]), round(accuracy, 4)])
    return points or None


def _device(result: RunResult) -> object:
    machine = result["environment"]
    if machine["device"] == "cpu":
        return f"cpu: {machine['cpu']}"
    return machine["device"] + " (deterministic)" * (machine.get("deterministic") == "yes")


def _measures(part: str, prefix: str = "", when: str = "") -> Iterator[RunColumn]:
    for name, where in SETS.items():
        for metric, meaning in METRICS.items():
            yield RunColumn(
                f"{prefix}{name}_{metric}", "number", f"{meaning}, {where}{when}", _metric(part, name, metric)
            )
    for name, meaning in GAPS.items():
        yield RunColumn(f"{prefix}{name}", "number", meaning + when, _gap(part, name.removeprefix("posterior_")))
    meaning = f"mean of the class (Natural: cell) accuracies, validation set{when}; selects steps and draws"
    yield RunColumn(f"{prefix}{BALANCED}", "number", meaning, _balanced(part, "validation"))
    yield RunColumn(
        f"{prefix}target_balanced", "number", f"mean of the class accuracies, target{when}", _balanced(part, "target")
    )


_SELECTED = tuple(_measures("selected"))
_LAST = tuple(_measures("last", "last_", ", last step"))
_ORACLE = tuple(
    RunColumn(f"oracle_target_{metric}", "number", f"{meaning}, target, oracle step", _oracle(metric))
    for metric, meaning in METRICS.items()
)
MEASURES = tuple(column.name for column in _SELECTED)  # measured at the selected step, and again at others

_COLUMNS = (
    RunColumn("fingerprint", "text", "hash of all choices that can change the numbers", lambda r: r["fingerprint"]),
    RunColumn("dataset", "text", "name of the dataset in the sweep"),
    RunColumn("benchmark", "text", "published benchmark that the data are, if any", _run("benchmark")),
    RunColumn("data_version", "text", "hash of the data's content", lambda r: r.get("data_version")),
    RunColumn("setting", "text", "imbalance setting", _run("setting")),
    RunColumn("target", "text", "domain that is held out", _run("target")),
    RunColumn("method", "text", "method or variant; `+ema` or `+swa` for averaged weights", _run("method")),
    RunColumn("backbone", "text", "network", lambda r: r["backbone"]),
    RunColumn("ratio", "number", "imbalance ratio of a generated setting", _run("ratio")),
    RunColumn("trial", "integer", "number of the trial; runs of one trial share their split"),
    RunColumn("draw", "integer", "number of the hyper-parameter draw; 0 for the defaults"),
    RunColumn("hparam_seed", "integer", "seed of the hyper-parameter draw", _run("hparam_seed")),
    RunColumn("split_seed", "integer", "seed of the split", _run("split_seed")),
    RunColumn("train_seed", "integer", "seed of training", _run("train_seed")),
    RunColumn("status", "text", "`done`, or `diverged` if numbers were not finite", lambda r: r["status"]),
    RunColumn("selected_step", "integer", "step that validation selected", _step("selected")),
    RunColumn("steps", "integer", "number of training steps", _run("steps")),
    *_SELECTED,
    *_LAST,
    RunColumn("oracle_step", "integer", 'step with the best target accuracy; needs `evaluate = "full"`', _oracle_step),
    *_ORACLE,
    RunColumn("seconds_per_step", "number", "time per step", lambda r: r["seconds"]["per_step"], machine=True),
    RunColumn("seconds_total", "number", "time of the whole run", lambda r: r["seconds"]["total"], machine=True),
    RunColumn("memory_gib", "number", "peak GPU memory", lambda r: r["memory_gib"], machine=True),
    RunColumn("hparams", "json", "every hyper-parameter with its value", lambda r: r["hparams"]),
    RunColumn("style", "json", "style mixing; empty for none", lambda r: r.get("style")),
    RunColumn("validation_curve", "json", "pairs of step and validation accuracy", _curve),
    RunColumn("commit", "text", "version of the source", lambda r: r["environment"]["commit"], machine=True),
    RunColumn("device", "text", "GPU or processor, and whether repeated runs are bit-identical", _device, machine=True),
)  # fmt: skip

_plugins: dict[str, RunColumn] = {}


def run_columns() -> tuple[RunColumn, ...]:
    """All columns in the order of the table; those of plugins come last."""
    load_plugins()
    return (*_COLUMNS, *_plugins.values())


def column_names() -> tuple[str, ...]:
    """The names of `run_columns()`."""
    return tuple(column.name for column in run_columns())


def register_column(name: str, type: ColumnType, meaning: str, read: Read) -> None:
    """Add a column to the table of runs.

    The column comes after the built-in ones. Tables without it can still be read.

    Args:
        name: Name of the column: lower-case letters, digits and underscores.
        type: "text", "integer", "number" or "json".
        meaning: One phrase for the documentation.
        read: Function from a run's result to the value, or None where there is no value. The result is the run's
            result.json (with "run", "hparams", "selected", "last", ...) and, under "evaluations", the lines of its
            metrics.jsonl.

    Raises:
        UsageError: The name is invalid or belongs to a built-in column.

    Example:
        >>> from longshift.sweep import register_column
        >>> register_column("lr", "number", "learning rate", lambda result: result["hparams"]["lr"])
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"Expected a column name of lower-case letters, digits and underscores, got {name!r}.")
    if name == AVERAGED or any(column.name == name for column in _COLUMNS):
        raise UsageError(f"Expected a new column name, got {name!r}, which is built in or reserved.")
    _plugins[name] = RunColumn(name, type, meaning, read, version=code_version(read))


def columns_key() -> str:
    """Changes whenever the row of a run may: a column is new, or a plugin's column is read by other code."""
    return content_hash([(column.name, column.version) for column in run_columns()])


def read_row(folder: Path, fingerprint: str) -> dict[str, Any]:
    """The row of a finished run, read from its folder.

    Args:
        folder: The folder of the run.
        fingerprint: The run that must be there.

    Returns:
        The values of all columns but those that only the sweep knows.

    Raises:
        BadResult: The result cannot be read or is that of another run.
    """
    run = RunFolder(folder)
    try:
        result = read_result(run, fingerprint)
        return make_row(result, read_metrics(run))
    except LongshiftError as error:
        raise BadResult(f"{run.result}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        raise BadResult(f"{run.result} is damaged: {type(error).__name__}: {error}") from error


def make_row(result: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The row of a result; under "averaged" it has the values that differ for averaged weights."""
    row = _values({**result, "evaluations": evaluations})
    if not result["averaged"]:
        return row
    judged = [
        {"step": line["step"], "validation": line["averaged_validation"]}
        for line in evaluations
        if "averaged_validation" in line
    ]
    other = _values({**result, "selected": result["averaged"], "last": None, "evaluations": judged})
    return _joined(row, other, result["run"]["average"])


def _values(result: RunResult) -> dict[str, Any]:
    return {column.name: column.value(result) for column in run_columns() if column.read}


def _joined(row: Mapping[str, Any], averaged: Mapping[str, Any], kind: str) -> dict[str, Any]:
    changed = {name: value for name, value in averaged.items() if name != "method" and value != row[name]}
    return {**row, AVERAGED: {"kind": kind, **changed}}


def join_average(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One row of the rows that a run has in a table, such that `with_average` gives them back."""
    averaged = {kind: row for row in rows for kind in AVERAGES if str(row["method"]).endswith(f"+{kind}")}
    own = next((row for row in rows if row not in averaged.values()), rows[0])
    for kind, row in averaged.items():
        return _joined(own, row, kind)
    return dict(own)


def with_average(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row, and a second row for averaged weights if the run has them: the same run as the method "ndcl+ema"."""
    own = {name: value for name, value in row.items() if name != AVERAGED}
    yield own
    if row.get(AVERAGED):
        values = dict(row[AVERAGED])
        yield {**own, "method": f"{own['method']}+{values.pop('kind')}", **values}


def unfinished_row(run: Mapping[str, Any], fingerprint: str, status: str) -> dict[str, Any]:
    """The row of a run without a result: what its configuration says, and its status."""
    known = {name: run[name] for name in column_names() if name in run and name != "hparams"}
    return {**known, "fingerprint": fingerprint, "status": status}
