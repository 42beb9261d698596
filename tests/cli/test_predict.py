"""`longshift predict`: output formats, list input, unreadable files."""

from __future__ import annotations

import json
import re
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


def test_table(digits_run: Path, folder: Path) -> None:
    shown = runner.invoke(app, ["predict", str(digits_run), str(folder), "--device", "cpu", "-q"])
    assert shown.exit_code == 0, shown.output
    assert "and 5 more" in shown.output
    assert "25 predicted" in shown.output
    assert "1 skipped" in shown.output
    assert "bad.png: not an image" in shown.stderr


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
    assert "on standard input, got none. For example: find" in str(empty.exception)


def test_only_unreadable_inputs_fail(digits_run: Path, folder: Path) -> None:
    failed = runner.invoke(app, ["predict", str(digits_run), str(folder / "bad.png"), "-q", "--device", "cpu"])
    assert isinstance(failed.exception, LongshiftError)
    assert failed.exit_code == 1
    assert "got 0 of 1 input" in str(failed.exception)
    assert "bad.png: not an image" in failed.stderr


def test_inputs_that_do_not_exist_fail_at_once(digits_run: Path, folder: Path) -> None:
    def failed(*inputs: str) -> str:
        found = runner.invoke(app, ["predict", str(digits_run), *inputs, "--device", "cpu"])
        assert isinstance(found.exception, LongshiftError)
        assert found.exit_code == 1
        assert "predicting" not in found.output
        assert "skipped" not in found.output
        return str(found.exception)

    place = folder.parent.resolve()
    assert failed(str(folder.parent / "nwe")) == f"no file or folder 'nwe' in {place}; did you mean new?"
    assert failed(str(folder.parent / "qqq")) == f"no file or folder 'qqq' in {place}"
    both = failed(str(folder.parent / "nwe"), str(folder.parent / "qqq"))
    assert both.startswith("Expected inputs that exist, got none of 2. For the first: no file or folder 'nwe' in ")
    some_exist = runner.invoke(app, ["predict", str(digits_run), "qqq", str(folder), "-q", "--device", "cpu"])
    assert some_exist.exit_code == 0
    assert "skipped qqq: there is no such file or folder" in some_exist.stderr


def test_an_empty_folder(digits_run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    failed = runner.invoke(app, ["predict", str(digits_run), str(tmp_path / "empty")])
    assert f"in {tmp_path / 'empty'} or below, got none" in str(failed.exception)
    assert "files that end with .bmp" in str(failed.exception)


def test_another_kind_of_table_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    failed = runner.invoke(app, ["predict", str(tmp_path / "no-model"), "x.png", "--out", "p.xlsx"])
    assert isinstance(failed.exception, UsageError)
    assert "expected a file that ends with .csv or .json, got p.xlsx" in str(failed.exception)


def with_rule(digits_run: Path, model: Path, rule: SureRule) -> Path:
    """A copy of a run with a threshold, as `fit` writes it."""
    shutil.copytree(digits_run, model)
    found = load_model(model, device="cpu")
    logits, features = found.outputs(torch.zeros(2, found.size, found.size, 3, dtype=torch.uint8))
    reference = make_reference(logits.numpy(), np.zeros(2, np.int64), features.numpy(), ["a", "b"], 1.0)
    held = HeldOutSite("a", 0.5, Signals(9, 0.5, 0.5, 0.5, 0.5, 0.5, {"a": 0.1}, 0.0))
    write_knowledge(model, SiteKnowledge((held,), reference, rule), found.info.weights)
    return model


def test_the_usual_threshold_comes_with_its_measured_accuracy(digits_run: Path, folder: Path, tmp_path: Path) -> None:
    model = with_rule(digits_run, tmp_path / "model", SureRule(0.62, 0.71, 0.3))  # no threshold reached 90%
    arguments = ["predict", str(model), str(folder), "-q", "--device", "cpu"]
    text = " ".join(runner.invoke(app, arguments).output.split())
    assert "(probability below 0.62; at held-out sites, 71% of the predictions above it were right)" in text
    value = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert (value["unsure_below"], value["sure_accuracy"]) == (0.62, 0.71)
    assert "held-out sites, 71%" not in runner.invoke(app, [*arguments, "--unsure", "0.5"]).output


def test_all_predictions_are_unsure_if_no_threshold_is_useful(digits_run: Path, folder: Path, tmp_path: Path) -> None:
    model, table = with_rule(digits_run, tmp_path / "model", SureRule(0.05, 0.24, 0.1)), tmp_path / "p.csv"
    arguments = ["predict", str(model), str(folder), "-q", "--device", "cpu"]
    text = " ".join(runner.invoke(app, [*arguments, "--out", str(table)]).output.split())
    assert "25 of them unsure, 1 skipped" in text
    assert (
        "All predictions are unsure: at held-out sites, no threshold was found above which at least 50% of the "
        "predictions were right (at best 24%)."
    ) in text
    assert set(pd.read_csv(table)["unsure"]) == {"yes"}
    value = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert value["unsure_below"] == 1
    assert value["all_unsure"].startswith("All predictions are unsure")
    assert "sure_accuracy" not in value
    page = tmp_path / "site.html"
    assert runner.invoke(app, [*arguments, "--page", str(page)]).exit_code == 0
    assert "All predictions are unsure" in page.read_text(encoding="utf-8")
    assert "of the predictions above" not in page.read_text(encoding="utf-8")
    asked = runner.invoke(app, [*arguments, "--unsure", "0"]).output
    assert "0 of them unsure (probability below 0)" in asked
    assert "All predictions" not in asked


def test_warnings_come_before_the_number_and_mark_it(digits_run: Path, folder: Path, tmp_path: Path) -> None:
    model, page = tmp_path / "model", tmp_path / "site.html"
    shutil.copytree(digits_run, model)
    found = load_model(model, device="cpu")
    pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (40, found.size, found.size, 3), np.uint8))
    logits, features = found.outputs(pixels)
    sites = ["a"] * 20 + ["b"] * 20
    reference = make_reference(logits.numpy(), logits.argmax(1).numpy(), features.numpy(), sites, 1.0)
    held = HeldOutSite("a", 0.1, Signals(200, 0.9, 0.9, 0.9, 0.9, 0.9, {"b": 0.0001}, 0.0))
    write_knowledge(model, SiteKnowledge((held,), reference), found.info.weights)
    arguments = ["predict", str(model), str(folder), "-q", "--device", "cpu"]
    shown = runner.invoke(app, [*arguments, "--page", str(page)])
    warning = "This site is farther from the training sites than any held-out one was: "
    html = page.read_text(encoding="utf-8")
    for text in (shown.stdout, html):
        assert text.index(warning) < text.index("Expected accuracy here: ")
        assert ", unreliable here (80% interval " in text
        assert "That is above" not in text
    assert "warning: " not in shown.stderr
    assert re.search(r"<dd>\d+%, unreliable here \(\d+ to \d+%\)</dd>", html)
    assert "This compares single images. The distance of the site compares means over all images" in html
    asked = runner.invoke(app, [*arguments, "--json"])
    assert f"warning: {warning}" in asked.stderr
    assert json.loads(asked.stdout)["site"]["wider_because"]


def test_what_is_unsure_is_counted_with_its_limit(digits_run: Path, folder: Path) -> None:
    arguments = ["predict", str(digits_run), str(folder), "--unsure", "1", "-q", "--device", "cpu"]
    assert "25 of them unsure (probability below 1), 1 skipped" in runner.invoke(app, arguments).output
