"""`longshift predict`: output formats, list input, unreadable files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.data.digits import digit_images as images
from longshift.errors import LongshiftError, UsageError
from longshift.inference import (
    HeldOutSite,
    Signals,
    SiteKnowledge,
    SureRule,
    load_model,
    make_reference,
    write_knowledge,
)

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "new").mkdir()
    for number in range(25):
        Image.fromarray(images()[number]).save(tmp_path / "new" / f"{number:02d}.png")
    (tmp_path / "new" / "bad.png").write_bytes(b"nothing")
    return tmp_path / "new"


def test_csv_and_json_files(digits_run: Path, folder: Path, tmp_path: Path) -> None:
    for name in ("p.csv", "p.json"):
        arguments = ["predict", str(digits_run), str(folder), "--out", str(tmp_path / name), "--top-k", "2", "-q"]
        assert runner.invoke(app, [*arguments, "--device", "cpu"]).exit_code == 0
    table = pd.read_csv(tmp_path / "p.csv", dtype={"class": str})
    value = json.loads((tmp_path / "p.json").read_text())
    assert table["class"].tolist() == [row["class"] for row in value["predictions"]]
    assert len(value["predictions"][0]["top"]) == 2
    assert [Path(row["path"]).name for row in value["skipped"]] == ["bad.png"]


def test_list_from_standard_input(digits_run: Path, folder: Path) -> None:
    listed = f"{folder / '03.png'}\n{folder / '01.png'}\n\n"
    found = runner.invoke(app, ["predict", str(digits_run), "-", "--json", "-q", "--device", "cpu"], input=listed)
    assert [Path(row["path"]).name for row in json.loads(found.stdout)["predictions"]] == ["03.png", "01.png"]
    empty = runner.invoke(app, ["predict", str(digits_run), "-"], input="")
    assert "standard input" in str(empty.exception)


def test_inputs_that_do_not_exist_fail_at_once(digits_run: Path, folder: Path) -> None:
    def failed(*inputs: str) -> str:
        found = runner.invoke(app, ["predict", str(digits_run), *inputs, "--device", "cpu"])
        assert isinstance(found.exception, LongshiftError)
        assert found.exit_code == 1
        assert "predicting" not in found.output
        assert "skipped" not in found.output
        return str(found.exception)

    assert "nwe" in failed(str(folder.parent / "nwe"))
    assert "qqq" in failed(str(folder.parent / "qqq"))
    assert "nwe" in failed(str(folder.parent / "nwe"), str(folder.parent / "qqq"))
    some_exist = runner.invoke(app, ["predict", str(digits_run), "qqq", str(folder), "-q", "--device", "cpu"])
    assert some_exist.exit_code == 0
    assert "qqq" in some_exist.stderr


def test_another_kind_of_table_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    failed = runner.invoke(app, ["predict", str(tmp_path / "no-model"), "x.png", "--out", "p.xlsx"])
    assert isinstance(failed.exception, UsageError)
    assert "p.xlsx" in str(failed.exception)


def with_rule(digits_run: Path, model: Path, rule: SureRule) -> Path:
    """A copy of a run with a threshold, as `fit` writes it."""
    shutil.copytree(digits_run, model)
    found = load_model(model, device="cpu")
    _, features = found.outputs(torch.zeros(2, found.size, found.size, 3, dtype=torch.uint8))
    reference = make_reference(len(found.classes), np.zeros(2, np.int64), features.numpy(), ["a", "b"])
    held = HeldOutSite("a", 0.5, Signals(9, 0.5, 0.5, 0.5, {"a": 0.1}))
    write_knowledge(model, SiteKnowledge((held,), reference, rule), found.info.weights)
    return model


def test_the_usual_threshold_comes_with_its_measured_accuracy(digits_run: Path, folder: Path, tmp_path: Path) -> None:
    model = with_rule(digits_run, tmp_path / "model", SureRule(0.62, 0.71, 0.3))  # no threshold reached 90%
    arguments = ["predict", str(model), str(folder), "-q", "--device", "cpu"]
    value = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert (value["unsure_below"], value["sure_accuracy"]) == (0.62, 0.71)
    value = json.loads(runner.invoke(app, [*arguments, "--json", "--unsure", "0.5"]).stdout)
    assert (value["unsure_below"], value.get("sure_accuracy")) == (0.5, None)


def test_all_predictions_are_unsure_if_no_threshold_is_useful(digits_run: Path, folder: Path, tmp_path: Path) -> None:
    model, table = with_rule(digits_run, tmp_path / "model", SureRule(0.05, 0.24, 0.1)), tmp_path / "p.csv"
    arguments = ["predict", str(model), str(folder), "-q", "--device", "cpu"]
    assert runner.invoke(app, [*arguments, "--out", str(table), "--page", str(tmp_path / "site.html")]).exit_code == 0
    assert set(pd.read_csv(table)["unsure"]) == {"yes"}
    value = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert (value["unsure_below"], value["all_unsure"], value.get("sure_accuracy")) == (1, True, None)
    value = json.loads(runner.invoke(app, [*arguments, "--json", "--unsure", "0"]).stdout)
    assert not value["all_unsure"]
    assert not any(row["unsure"] for row in value["predictions"])
