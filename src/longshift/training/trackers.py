"""Trackers: TensorBoard and MLflow (local stores), which receive each evaluation of a run. Both are optional."""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.io import locked, read_json, require_inside, write_json
from longshift.training.run_config import RunConfig

TrackerKind = Literal["tensorboard", "mlflow"]
EXPERIMENT = "longshift"
Log = Callable[[Mapping[str, float], int], None]  # numbers by name, and their step


@dataclass(frozen=True)
class Tracker:
    """Receives the evaluations and the result of a run, as they are in metrics.jsonl and result.json."""

    log: Log

    def row(self, row: Mapping[str, Any]) -> None:
        """Log the numbers of an evaluation."""
        self.log(scalars(row), int(row["step"]))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Log the numbers of the selected weights."""
        if chosen := result["selected"]:
            self.log({f"selected/{name}": value for name, value in scalars(chosen).items()}, int(chosen["step"]))


def tracker_kind(name: str) -> TrackerKind:
    """The tracker of that name, with its package present."""
    if name not in get_args(TrackerKind):
        raise UsageError(unknown_name("tracker", name, get_args(TrackerKind)))
    _need("torch.utils.tensorboard" if name == "tensorboard" else "mlflow.tracking")
    return cast(TrackerKind, name)


@contextlib.contextmanager
def open_tracker(
    kind: TrackerKind | None, folder: Path, config: RunConfig, root: Path | None = None
) -> Iterator[Tracker]:
    """A tracker for the run in `folder`; None keeps nothing.

    TensorBoard writes into the run's folder; MLflow into ROOT/mlflow.db (by default next to the run's folder), which
    all runs there share. A resumed run continues in the tracker as well.
    """
    if kind is None:
        yield Tracker(lambda values, step: None)
        return
    style = config.style_config()
    tables = {"hparams": config.method_config().to_dict(), "style": style.to_dict() if style else {}}
    params = {name: value for name, value in config.model_dump(exclude=set(tables)).items() if value is not None}
    params |= {f"{table}.{name}": value for table in tables for name, value in tables[table].items()}
    log, end = _tensorboard(folder, params) if kind == "tensorboard" else _mlflow(folder, root or folder.parent, params)
    try:
        yield Tracker(log)
    except BaseException as error:
        end("KILLED" if isinstance(error, LongshiftError) and error.exit_code == 130 else "FAILED")
        raise
    end("FINISHED")


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an evaluation under flat names: terms/loss, validation/accuracy, ..."""
    return {
        f"{group}/{name}": float(value)
        for group, values in row.items()
        if isinstance(values, Mapping)
        for name, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def _tensorboard(folder: Path, params: Mapping[str, Any]) -> tuple[Log, Callable[[str], None]]:
    """Event files in the run's folder."""
    require_inside(folder / "tensorboard", folder)
    writer = _need("torch.utils.tensorboard").SummaryWriter(str(folder / "tensorboard"))
    text = "\n".join(f"| {name} | {value} |" for name, value in params.items())
    writer.add_text("config", f"| key | value |\n|---|---|\n{text}", 0)

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return log, lambda status: writer.close()


def _mlflow(folder: Path, root: Path, params: Mapping[str, Any]) -> tuple[Log, Callable[[str], None]]:
    """A run in a local SQLite store; a note in the run's folder says which."""
    require_inside(root / "mlflow.db", root)
    client_class, entities = _need("mlflow.tracking").MlflowClient, _need("mlflow.entities")
    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it logs every table it creates
    root = root.resolve()
    root.mkdir(parents=True, exist_ok=True)
    note = folder / "mlflow.json"
    # Two workers that make the same tables at the same time would both fail.
    with locked(root / ".mlflow.lock"):
        client = client_class(tracking_uri=f"sqlite:///{root / 'mlflow.db'}")
        known = client.get_experiment_by_name(EXPERIMENT)
        place = (root / "mlartifacts").as_uri()
        number = known.experiment_id if known else client.create_experiment(EXPERIMENT, artifact_location=place)
    if note.exists():
        run_id = str(read_json(note)["run_id"])
        client.update_run(run_id, "RUNNING")
    else:
        run_id = str(client.create_run(number, run_name=folder.name, tags={"folder": str(folder)}).info.run_id)
        write_json(note, {"run_id": run_id})
        client.log_batch(run_id, params=[entities.Param(name, str(value)) for name, value in params.items()])

    def log(values: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        metrics = [entities.Metric(name.replace("/", "."), value, now, step) for name, value in values.items()]
        client.log_batch(run_id, metrics=metrics)

    return log, lambda status: client.set_terminated(run_id, status)


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = "tensorboard" if "tensorboard" in module else "mlflow-skinny"
        raise UsageError(
            f"tracking needs {package}, which is not installed ({error}); pip install -e '.[tracking]'"
        ) from error
