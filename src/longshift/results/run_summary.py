"""One flat row per finished run: what tables are made from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from longshift.errors import LongshiftError
from longshift.training import SCHEMA, RunFolder, read_metrics

SETS = ("validation", "test", "target")
METRICS = ("accuracy", "many", "medium", "few", "worst_domain", "macro_f1", "margin", "ece", "nll")
GAPS = ("posterior_target", "posterior_sources")  # discrepancies of class-mean posteriors
BALANCED = "validation_balanced"  # mean of the class accuracies: what steps and draws are chosen by
MEASURES = (*(f"{name}_{metric}" for name in SETS for metric in METRICS), *GAPS, BALANCED)
LAST_MEASURES = tuple(f"last_{name}" for name in MEASURES)
ORACLE_MEASURES = tuple(f"oracle_target_{metric}" for metric in METRICS)


class BadResult(LongshiftError):
    """A result that cannot be trusted."""


def read_summary(folder: Path, fingerprint: str) -> dict[str, Any]:
    """The row of a finished run; `BadResult` if anything about its files is wrong."""
    path = RunFolder(folder).result
    try:
        result = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
        row = summarise(result, fingerprint)
        metrics = read_metrics(RunFolder(folder))
        if result["run"]["evaluate"] == "full":
            if not RunFolder(folder).metrics.exists():
                raise BadResult("its metrics.jsonl is missing")
            row |= oracle(metrics)
        row |= curves(metrics)
    except LongshiftError as error:
        raise BadResult(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadResult(f"{path} is damaged: {type(error).__name__}: {error}") from error
    return row


def summarise(result: Mapping[str, Any], fingerprint: str) -> dict[str, Any]:
    """The row of a result, with its schema, fingerprint and status checked."""
    if result["schema"] != SCHEMA:
        raise BadResult(f"expected schema {SCHEMA}, found {result['schema']!r}")
    if result["fingerprint"] != fingerprint:
        raise BadResult(f"expected the run {fingerprint[:16]}, found {str(result['fingerprint'])[:16]}")
    if result["status"] not in ("done", "diverged"):
        raise BadResult(f"expected the status done or diverged, found {result['status']!r}")
    if result["status"] == "done" and not (result["selected"] and result["last"]):
        raise BadResult("a finished run without its evaluation")
    run, seconds, machine = result["run"], result["seconds"], result["environment"]
    row: dict[str, Any] = {
        "fingerprint": fingerprint,
        "data": run["data"], "benchmark": run["benchmark"], "setting": run["setting"], "target": run["target"],
        "method": run["method"], "backbone": _backbone(result), "ratio": run["ratio"],
        "hparam_seed": run["hparam_seed"], "split_seed": run["split_seed"], "train_seed": run["train_seed"],
        "status": result["status"], "steps": run["steps"],
        "selected_step": result["selected"]["step"] if result["selected"] else None,
    }  # fmt: skip
    row |= _measures(result["selected"], "")
    row |= _measures(result["last"], "last_")
    row |= {"oracle_step": None, **dict.fromkeys(ORACLE_MEASURES), "validation_curve": ""}
    averaged = result.get("averaged")
    if averaged:
        row |= {"average": run["average"], "averaged_step": averaged["step"], **_measures(averaged, "averaged_")}
    row |= {
        "seconds_per_step": _number(seconds["per_step"]),
        "seconds_total": _number(seconds["total"]),
        "memory_gib": _number(result["memory_gib"]),
        "hparams": json.dumps(result["hparams"], sort_keys=True),
        "commit": str(machine["commit"]),
        "device": str(machine["device"] if machine["device"] != "cpu" else f"cpu: {machine['cpu']}"),
    }
    return row


def _backbone(result: Mapping[str, Any]) -> str:
    """The network by name; earlier versions wrote "auto" where the program had chosen it."""
    run = result["run"]
    found = str(result.get("backbone", run["backbone"]))
    return "mlp" if found == "auto" and str(run["data"]).endswith(".npz") else found


def with_average(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The row, and one more for its averaged weights where it has them: the same run as the method "ndcl+ema"."""
    yield row
    if row.get("average"):
        averaged = {name: row[f"averaged_{name}"] for name in MEASURES}
        averaged |= dict.fromkeys((*LAST_MEASURES, "oracle_step", *ORACLE_MEASURES))
        averaged |= {"method": f"{row['method']}+{row['average']}", "selected_step": row["averaged_step"]}
        averaged["validation_curve"] = row.get("averaged_validation_curve", "")
        yield {**row, **averaged}


def from_rows(row: Mapping[str, Any], averaged: Mapping[str, Any] | None, kind: str) -> dict[str, Any]:
    """The other way round: one row of a run and of the average of that kind, such that `with_average` gives both."""
    if averaged is None:
        return dict(row)
    extra = {f"averaged_{name}": averaged[name] for name in (*MEASURES, "validation_curve")}
    return {**row, "average": kind, "averaged_step": averaged["selected_step"], **extra}


def curves(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """[step, validation accuracy] of each evaluation as JSON: of the weights, and of their average where it was judged.

    Without any evaluation (the run diverged before its first, or its metrics.jsonl was removed) there is no curve.
    """
    found = {}
    for name in ("validation", "averaged_validation"):
        points = [[int(row["step"]), round(_accuracy(row[name]), 4)] for row in rows if name in row]
        found[f"{name}_curve"] = json.dumps(points) if points else ""
    return found


def oracle(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The evaluation with the highest target accuracy (the first of equals): what nobody could have chosen."""
    found: dict[str, Any] = {"oracle_step": None, **dict.fromkeys(ORACLE_MEASURES)}
    measured = [row for row in rows if "target" in row]
    if measured:
        best = max(measured, key=lambda row: float(row["target"]["accuracy"]))
        found["oracle_step"] = int(best["step"])
        found |= {f"oracle_target_{metric}": _number(best["target"][metric]) for metric in METRICS}
    return found


def _measures(part: Mapping[str, Any] | None, prefix: str) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name in SETS:
        found = part.get(name) if part else None
        for metric in METRICS:
            values[f"{prefix}{name}_{metric}"] = _number(found[metric]) if found else None
    values[prefix + BALANCED] = _balanced((part or {}).get("validation") or {})
    gaps = (part or {}).get("posterior", {})  # runs of earlier versions do not have them
    for name in GAPS:
        values[prefix + name] = _number(gaps.get(name.removeprefix("posterior_")))
    return values


def _balanced(part: Mapping[str, Any]) -> float | None:
    """As the engine judges a step: equal to the accuracy where all classes have as many samples."""
    known = [value for value in map(_number, part.get("per_class", {}).values()) if value is not None]
    return round(sum(known) / len(known), 12) if known else None


def _accuracy(part: Mapping[str, Any]) -> float:
    value = _number(part["accuracy"])
    if value is None:
        raise BadResult("an evaluation without its accuracy")
    return value


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadResult(f"expected a finite number, found {value!r}")
    return float(value)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")
