"""Sweeps of a few short jobs on the embedded digits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from longshift.sweep import Plan, collect, make_plan, run_columns, write_runs
from longshift.sweep.state import Outcome
from longshift.sweep.worker import execute
from longshift.training.run_config import Runtime
from longshift.training.task import TaskCache

RUNTIME = Runtime(device="cpu", keep_model=False, checkpoint_every=1)


def write_sweep(folder: Path, **changes: Any) -> Path:
    """A sweep file: 1 method x 1 setting x 2 targets x 1 trial x 2 draws of 3 steps on small images, with changes."""
    values: dict[str, Any] = {
        "settings": ["TotalHeavyTail"], "targets": ["ink", "neon"], "methods": ["erm"], "trials": 1, "draws": 2,
        "datasets": [{"path": "digits"}], "run": {"steps": 3, "eval_every": 2, "evaluate": "full"},
        "runtime": {"checkpoint_every": 1},
    }  # fmt: skip
    values.update(changes)
    run = {"image_size": 16, **values["run"]}  # half the time of a job; None: not in the file
    values["run"] = {name: value for name, value in run.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    plain = {name: value for name, value in values.items() if not isinstance(value, dict) and name != "datasets"}
    lines = [f"{name} = {_toml(value)}" for name, value in plain.items()]
    for dataset in values["datasets"]:
        lines += ["[[datasets]]", *(f"{name} = {_toml(value)}" for name, value in dataset.items())]
    for table, content in tables.items():
        lines += [f"[{table}]", *(f"{name} = {_toml(value)}" for name, value in content.items())]
    (folder / "sweep.toml").write_text("\n".join(lines) + "\n")
    return folder


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def small_plan(folder: Path, **changes: Any) -> Plan:
    """The plan of such a sweep."""
    return make_plan(write_sweep(folder, **changes))[1]


def run_here(plan: Plan) -> None:
    """Run all jobs one after another, in this process."""
    tasks = TaskCache()
    for job in plan.jobs:
        assert execute(job, plan.folder.store, RUNTIME, tasks) == Outcome("done")


def table_bytes(folder: Path) -> bytes:
    """The finished runs as CSV, without what depends on the machine."""
    of_machine = [column.name for column in run_columns() if column.machine]
    write_runs(collect(folder).drop(columns=of_machine), folder / "table.csv")
    return (folder / "table.csv").read_bytes()
