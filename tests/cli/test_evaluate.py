"""`longshift evaluate`: its table, its JSON, and failure when accuracies differ from the recorded ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError
from longshift.inference.loading import load_model
from longshift.io import read_json, write_json
from longshift.training.run_folder import RunFolder, read_result
from longshift.training.task import Task

runner = CliRunner()


def test_table_and_json(digits_run: Path) -> None:
    shown = runner.invoke(app, ["evaluate", str(digits_run), "--device", "cpu"])
    assert shown.exit_code == 0
    found = runner.invoke(app, ["evaluate", str(digits_run), "--on", "target", "--json", "--device", "cpu"])
    value = json.loads(found.stdout)
    assert value["target"] == read_json(digits_run / "result.json")["selected"]["target"]
    assert "validation" not in value


def test_calibration_is_that_of_predictions(digits_run: Path, digits_task: Task) -> None:
    """The ECE in the table, from the probabilities that `predict` gives, by plain loops."""
    model = load_model(digits_run, device="cpu")
    target = digits_task.split.target_indices
    p = model.probabilities(torch.from_numpy(digits_task.store.inputs[target])).numpy()
    sure, right = p.max(axis=1), p.argmax(axis=1) == digits_task.labels(target)
    expected = 0.0
    for low in range(15):
        inside = (sure > low / 15) & (sure <= (low + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(right[inside].mean() - sure[inside].mean())
    found = runner.invoke(app, ["evaluate", str(digits_run), "--on", "target", "--json", "--device", "cpu"])
    value = json.loads(found.stdout)
    assert value["temperature"] == model.temperature != 1
    assert value["calibrated"]["target"]["ece"] == pytest.approx(expected, abs=2e-3)
    assert value["calibrated"]["target"]["ece"] != pytest.approx(value["target"]["ece"], abs=1e-4)
    shown = runner.invoke(app, ["evaluate", str(digits_run), "--on", "target", "--device", "cpu"])
    assert f"{100 * value['calibrated']['target']['ece']:.1f}" in shown.output


def test_disagreement_fails(digits_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(digits_run, tmp_path / "copy")
    result = read_result(RunFolder(copy))
    result["selected"]["test"] = result["selected"]["target"]
    write_json(RunFolder(copy).result, result)
    failed = runner.invoke(app, ["evaluate", str(copy), "--on", "test", "--device", "cpu"])
    assert isinstance(failed.exception, LongshiftError)
    assert failed.exit_code == 1
    assert "result.json" in str(failed.exception)
