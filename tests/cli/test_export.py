"""`longshift export`: formats, file endings, and the warning about a model that only guesses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.inference import UnseenAccuracy, keep_unseen

runner = CliRunner()


def test_export(digits_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.pt2"
    done = runner.invoke(app, ["export", str(digits_run), "--format", "torch", "--out", str(out), "--json"])
    value = json.loads(done.stdout)
    assert value["file"] == str(out)
    assert value["difference"] < 1e-4
    assert json.loads(Path(value["description"]).read_text())["classes"] == list("0123456789")
    assert (value["random_inputs"], value["real_inputs"]) == (100, 100)


@pytest.mark.slow
def test_a_model_that_only_guesses_is_exported_with_a_warning(digits_run: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(digits_run, model)
    keep_unseen(model / "model.json", {"selected": UnseenAccuracy(0.08, 3, 10)})
    done = runner.invoke(app, ["export", str(model), "--out", str(tmp_path / "m.pt2"), "--json"])
    value = json.loads(done.stdout)
    assert value["warning"]
    assert f"warning: {value['warning']}" in done.stderr
    assert json.loads(Path(value["description"]).read_text())["warning"] == value["warning"]


@pytest.mark.slow
def test_the_ending_names_the_format(digits_run: Path, tmp_path: Path) -> None:
    done = runner.invoke(app, ["export", str(digits_run), "--out", str(tmp_path / "m.pt2"), "--json"])
    assert json.loads(Path(json.loads(done.stdout)["description"]).read_text())["format"] == "torch"
    failed = runner.invoke(app, ["export", str(digits_run), "--out", str(tmp_path / "m.pt2"), "--format", "onnx"])
    assert "m.pt2" in str(failed.exception)
