"""Trackers: TensorBoard and MLflow (local stores), which receive each evaluation of a run. Both are optional."""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args

from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.io import locked, read_json, require_inside, write_json
from longshift.training.run_config import RunConfig

TrackerKind = Literal["tensorboard", "mlflow"]
EXPERIMENT = "longshift"


class Tracker(Protocol):
    """Receives the evaluations and the result of a run."""

    def row(self, row: Mapping[str, Any]) -> None:
        """An evaluation, as it is in metrics.jsonl."""
        ...

    def finish(self, result: Mapping[str, Any]) -> None:
        """The result, as it is in result.json."""
        ...


def tracker_kind(name: str) -> TrackerKind:
    """The tracker of that name, with its package present."""
    if name not in get_args(TrackerKind):
        raise UsageError(unknown_name("tracker", name, get_args(TrackerKind)))
    _need("torch.utils.tensorboard" if name == "tensorboard" else "mlflow.tracking")
    return cast(TrackerKind, name)


@contextlib.contextmanager
def open_tracker(kind: TrackerKind, folder: Path, config: RunConfig, root: Path | None = None) -> Iterator[Tracker]:
    """A tracker for the run in `folder`.

    TensorBoard writes into the run's folder; MLflow into ROOT/mlflow.db (by default next to the run's folder), which
    all runs there share. A resumed run continues in the tracker as well.
    """
    require_inside(folder / "tensorboard", folder)
    require_inside((root or folder.parent) / "mlflow.db", root or folder.parent)
    style = config.style_config()
    tables = {"hparams": config.method_config().to_dict(), "style": style.to_dict() if style else {}}
    run = {name: value for name, value in config.model_dump(exclude=set(tables)).items() if value is not None}
    if kind == "tensorboard":
        writer = _need("torch.utils.tensorboard").SummaryWriter(str(folder / "tensorboard"))
        board = TensorBoard(writer, run | {f"{table}/{k}": v for table in tables for k, v in tables[table].items()})
        try:
            yield board
        finally:
            writer.close()
    else:
        stated = run | {f"{table}.{k}": v for table in tables for k, v in tables[table].items()}
        flow = MLflow(folder, root or folder.parent, stated)
        try:
            yield flow
        except BaseException as error:
            flow.end("KILLED" if isinstance(error, LongshiftError) and error.exit_code == 130 else "FAILED")
            raise
        flow.end("FINISHED")


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an evaluation under flat names: terms/loss, validation/accuracy, ..."""
    found: dict[str, float] = {}
    for group, values in row.items():
        if isinstance(values, Mapping):
            for name, value in values.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    found[f"{group}/{name}"] = float(value)
    return found


class TensorBoard:
    """Event files in the run's folder."""

    def __init__(self, writer: Any, params: Mapping[str, Any]) -> None:
        self._writer = writer
        text = "\n".join(f"| {name} | {value} |" for name, value in params.items())
        writer.add_text("config", f"| key | value |\n|---|---|\n{text}", 0)

    def row(self, row: Mapping[str, Any]) -> None:
        """Write the numbers at their step."""
        for name, value in scalars(row).items():
            self._writer.add_scalar(name, value, row["step"])
        self._writer.flush()

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the numbers of the selected weights."""
        if result["selected"]:
            for name, value in scalars(result["selected"]).items():
                self._writer.add_scalar(f"selected/{name}", value, result["selected"]["step"])


class MLflow:
    """A run in a local SQLite store."""

    def __init__(self, folder: Path, root: Path, params: Mapping[str, Any]) -> None:
        client_class = _need("mlflow.tracking").MlflowClient
        logging.getLogger("mlflow").setLevel(logging.WARNING)  # it logs every table it creates
        root = root.resolve()
        root.mkdir(parents=True, exist_ok=True)
        note = folder / "mlflow.json"
        # Two workers that make the same tables at the same time would both fail.
        with locked(root / ".mlflow.lock"):
            self._client = client_class(tracking_uri=f"sqlite:///{root / 'mlflow.db'}")
            experiment = self._client.get_experiment_by_name(EXPERIMENT)
            number = (
                experiment.experiment_id
                if experiment
                else self._client.create_experiment(EXPERIMENT, artifact_location=(root / "mlartifacts").as_uri())
            )
        if note.exists():
            self.run_id = str(read_json(note)["run_id"])
            self._client.update_run(self.run_id, "RUNNING")
        else:
            run = self._client.create_run(number, run_name=folder.name, tags={"folder": str(folder)})
            self.run_id = str(run.info.run_id)
            write_json(note, {"run_id": self.run_id})
            entities = importlib.import_module("mlflow.entities")
            self._client.log_batch(
                self.run_id, params=[entities.Param(name, str(value)) for name, value in params.items()]
            )

    def _log(self, values: Mapping[str, float], step: int) -> None:
        entities = importlib.import_module("mlflow.entities")
        now = int(time.time() * 1000)
        metrics = [entities.Metric(name.replace("/", "."), value, now, step) for name, value in values.items()]
        self._client.log_batch(self.run_id, metrics=metrics)

    def row(self, row: Mapping[str, Any]) -> None:
        """Log the numbers at their step."""
        self._log(scalars(row), int(row["step"]))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Log the numbers of the selected weights."""
        self._client.set_tag(self.run_id, "status", result["status"])
        if result["selected"]:
            values = {f"selected/{name}": value for name, value in scalars(result["selected"]).items()}
            self._log(values, int(result["selected"]["step"]))

    def end(self, status: str) -> None:
        """Close the run."""
        self._client.set_terminated(self.run_id, status)


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = "tensorboard" if "tensorboard" in module else "mlflow-skinny"
        raise UsageError(
            f"tracking needs {package}, which is not installed ({error}); pip install -e '.[tracking]'"
        ) from error
