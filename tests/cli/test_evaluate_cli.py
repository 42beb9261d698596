from __future__ import annotations

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError, UsageError
from longshift.files import read_json, write_json

runner = CliRunner()


def test_table_and_json(digits_run: Path) -> None:
    shown = runner.invoke(app, ["evaluate", str(digits_run), "--device", "cpu"])
    assert shown.exit_code == 0
    assert "agrees with result.json" in shown.output
    found = runner.invoke(app, ["evaluate", str(digits_run), "--set", "target", "--json", "--device", "cpu"])
    value = json.loads(found.stdout)
    assert value["target"] == read_json(digits_run / "result.json")["selected"]["target"]
    assert "validation" not in value


def test_disagreement_fails(digits_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(digits_run, tmp_path / "copy")
    result = read_json(copy / "result.json")
    result["selected"]["test"]["accuracy"] += 0.1
    write_json(copy / "result.json", result)
    failed = runner.invoke(app, ["evaluate", str(copy), "--set", "test", "--device", "cpu"])
    assert isinstance(failed.exception, LongshiftError)
    assert failed.exit_code == 1
    assert "do not give the accuracies" in str(failed.exception)


def test_unknown_set(digits_run: Path) -> None:
    failed = runner.invoke(app, ["evaluate", str(digits_run), "--set", "train"])
    assert isinstance(failed.exception, UsageError)
