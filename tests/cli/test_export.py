"""`longshift export`: formats and file endings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longshift.cli.main import app

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
def test_the_ending_names_the_format(digits_run: Path, tmp_path: Path) -> None:
    done = runner.invoke(app, ["export", str(digits_run), "--out", str(tmp_path / "m.pt2"), "--json"])
    assert json.loads(Path(json.loads(done.stdout)["description"]).read_text())["format"] == "torch"
    failed = runner.invoke(app, ["export", str(digits_run), "--out", str(tmp_path / "m.pt2"), "--format", "onnx"])
    assert "m.pt2" in str(failed.exception)
