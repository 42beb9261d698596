"""Write the best hyper-parameters as files for `longshift train --config`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from longshift.io import content_hash, write_text
from longshift.results import best_runs
from longshift.sweep.jobs import Plan
from longshift.training import RunConfig


def write_best(plan: Plan, frame: pd.DataFrame, out: Path) -> list[Path]:
    """Write OUT/DATASET/SETTING/TARGET/METHOD.toml for the run with the best validation accuracy of each.

    Each file describes the run that won, with its seeds and all hyper-parameters.
    """
    runs = {job.fingerprint: job.run for job in plan.jobs}
    written = []
    for row in best_runs(frame).to_dict("records"):
        path = out.joinpath(*(_safe(str(row[key])) for key in ("dataset", "setting", "target")))
        path /= f"{_safe(str(row['method']))}.toml"
        head = (
            f"# The best run of {row['method']} by accuracy on the balanced validation set: "
            f"{row['validation_accuracy']:.4f} (trial {row['trial']}, draw {row['draw']}).\n"
            f"# longshift train --config {path}\n"
        )
        run = runs[str(row["fingerprint"])]
        config = RunConfig.model_validate(run)
        style = config.style_config()
        tables = {"hparams": config.method_config().to_dict(), "style": style.to_dict() if style else {"mix": "none"}}
        write_text(path, head + run_toml(run, tables))
        written.append(path)
    return written


def run_toml(run: dict[str, Any], tables: dict[str, dict[str, Any]]) -> str:
    """A run as TOML: values that differ from the defaults, and the tables of hyper-parameters and style."""
    defaults = {name: field.default for name, field in RunConfig.model_fields.items()}
    lines = [
        f"{name} = {_value(value)}"
        for name, value in run.items()
        if name not in tables
        and value is not None
        and (value != defaults[name] or name in ("data", "method", "setting"))
    ]
    for table, values in tables.items():
        lines += ["", f"[{table}]", *(f"{name} = {_value(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    # TOML writes strings, integers and booleans as JSON does; repr keeps every digit of a float.
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _safe(name: str) -> str:
    """The name for a file; a hash keeps names apart that differ only in what a file cannot have ("a b", "a_b")."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in name).lstrip(".")
    return plain if plain == name else f"{plain}-{content_hash(name)[:6]}"
