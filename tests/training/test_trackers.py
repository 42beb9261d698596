"""Trackers against the real packages: what was logged is read back with their own readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longshift.errors import UsageError
from longshift.training.interrupt import Interrupted
from longshift.training.run_config import RunConfig, Runtime, parse_run_config
from longshift.training.run_folder import RunFolder, read_metrics
from longshift.training.task import make_task
from longshift.training.trackers import TrackerKind, open_tracker, scalars, tracker_kind
from longshift.training.trainer import Trainer


def _config() -> RunConfig:
    return parse_run_config({"target": "ink", "method": "erm", "steps": 4, "eval_every": 2, "evaluate": "full"})


def _train(kind: TrackerKind, folder: Path, stop_at: int = 0) -> dict[str, Any]:
    config = _config()
    with open_tracker(kind, folder, config) as tracker:
        runtime = Runtime(device="cpu", keep_model=False)
        trainer = Trainer(config, make_task(config), folder, runtime, on_row=tracker.row)
        trainer.stop = lambda: 0 < stop_at <= trainer.progress.step
        result = trainer.run()
        tracker.finish(result)
    return result


def _expected(folder: Path, result: dict[str, Any]) -> dict[tuple[str, int], float]:
    found = {
        (name, row["step"]): value for row in read_metrics(RunFolder(folder)) for name, value in scalars(row).items()
    }
    chosen = result["selected"]
    return found | {(f"selected/{name}", chosen["step"]): value for name, value in scalars(chosen).items()}


@pytest.mark.slow
def test_tensorboard_holds_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="pip install -e '.[tracking]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = tmp_path / "run"
    with pytest.raises(Interrupted):
        _train("tensorboard", folder, stop_at=3)
    result = _train("tensorboard", folder)
    events: Any = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    logged = {
        (tag, event.step): event.value for tag in events.Tags()["scalars"] for event in events.Scalars(tag)
    }  # fmt: skip
    expected = _expected(folder, result)
    assert set(logged) == set(expected)
    assert ("validation/accuracy", 2) in logged
    assert ("terms/loss", 4) in logged
    for key, value in expected.items():
        assert logged[key] == pytest.approx(value, rel=1e-6, abs=1e-7), key  # it keeps single precision
    assert "config/text_summary" in events.Tags()["tensors"]


@pytest.mark.slow
def test_mlflow_holds_every_number_and_a_run_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="pip install -e '.[tracking]'")
    from mlflow.tracking import MlflowClient

    folder = tmp_path / "runs" / "one"
    with pytest.raises(Interrupted):
        _train("mlflow", folder, stop_at=3)
    client: Any = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'runs' / 'mlflow.db'}")
    name = json.loads((folder / "mlflow.json").read_text())["run_id"]
    assert client.get_run(name).info.status == "KILLED"
    result = _train("mlflow", folder)
    _train("mlflow", tmp_path / "runs" / "two")
    experiment = client.get_experiment_by_name("longshift")
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["one", "two"]
    run = client.get_run(name)
    assert run.info.status == "FINISHED"
    assert run.data.params["method"] == "erm"
    assert float(run.data.params["hparams.lr"]) == _config().method_config().lr
    logged = {
        (metric, point.step): point.value
        for metric in run.data.metrics
        for point in client.get_metric_history(name, metric)
    }
    expected = {(key.replace("/", "."), step): value for (key, step), value in _expected(folder, result).items()}
    assert logged == expected
    with pytest.raises(ZeroDivisionError), open_tracker("mlflow", tmp_path / "runs" / "three", _config()):
        raise ZeroDivisionError
    name = json.loads((tmp_path / "runs" / "three" / "mlflow.json").read_text())["run_id"]
    assert client.get_run(name).info.status == "FAILED"
    assert not (Path.cwd() / "mlruns").exists()


def test_an_unknown_tracker_and_a_missing_package_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="tensorboard"):
        tracker_kind("tensorbord")

    def absent(name: str) -> None:
        raise ImportError(f"no module named {name}")

    monkeypatch.setattr("longshift.training.trackers.importlib.import_module", absent)
    with pytest.raises(UsageError, match=r"\[tracking\]"):
        tracker_kind("mlflow")
