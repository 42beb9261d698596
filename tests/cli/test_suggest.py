"""`predict --page`, `suggest` and `adapt` on images, from the command line; the pages in a browser."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError, UsageError
from longshift.fitting.adaptation import Adapted, adapt, read_labels
from longshift.fitting.head_refit import HeadComparison
from longshift.inference import evaluate_site, load_model, predict
from longshift.templates import render
from tests.golden import check_golden
from tests.report.chromium import needs_browser, open_page

runner = CliRunner()
COLORS = {"red": (200, 60, 60), "green <b>": (60, 200, 60), "blue": (60, 60, 200)}


def images(root: Path, tint: int, n: int, flat: bool = False, seed: int = 0) -> Path:
    """Colored noise; `flat`: without folders of classes, but with the class in the name of the file."""
    rng = np.random.default_rng(seed)
    for name, color in COLORS.items():
        folder = root if flat else root / name
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(n):
            pixels = np.clip(np.array(color) + tint + rng.normal(0, 60, (16, 16, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{name}-{i}.png")
    return root


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sites")
    for number, site in enumerate(("north", "south", "west")):
        images(root / "data" / site, 15 * number, 12, seed=number)
    arguments = ["fit", str(root / "data"), "--steps", "30", "--method", "erm", "--out", str(root / "fit")]
    done = runner.invoke(app, [*arguments, "--device", "cpu", "--what-if-labeled", "-q"])
    assert done.exit_code == 0, done.output
    return root


@needs_browser
@pytest.mark.slow
def test_the_page_opens_in_a_browser_without_complaint(fitted: Path, tmp_path: Path) -> None:
    site, page = images(tmp_path / "site", 40, 10, flat=True), tmp_path / "site.html"
    assert runner.invoke(app, ["predict", str(fitted / "fit"), str(site), "--page", str(page), "-q"]).exit_code == 0
    document, console = open_page(page, tmp_path / "profile")
    assert console == []
    assert "<svg" in document


def test_suggest_then_adapt(fitted: Path, tmp_path: Path) -> None:
    site = images(tmp_path / "site", -70, 30, flat=True)
    labels = tmp_path / "labels.csv"
    ask = ["suggest", str(fitted / "fit"), str(site), "--n", "24", "--out", str(labels), "-q", "--device", "cpu"]
    shown = runner.invoke(app, ask)
    assert shown.exit_code == 0, shown.output
    assert labels.with_suffix(".html").exists()
    assert isinstance(runner.invoke(app, ask).exception, UsageError)  # the file may hold labels
    with labels.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert {row["label"] for row in rows} == {""}
    with labels.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([{**row, "label": Path(row["path"]).name.rsplit("-", 1)[0]} for row in rows])
    out = tmp_path / "adapted"
    done = runner.invoke(app, ["adapt", str(fitted / "fit"), str(labels), "--out", str(out), "-q", "--json"])
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert sum(value["labels"].values()) == value["n"] == 24
    before, after = (
        np.mean([Path(row.path).name.startswith(row.label) for row in predict(folder, [site], device="cpu").rows])
        for folder in (fitted / "fit", out)
    )
    assert after >= before
    assert load_model(fitted / "fit", device="cpu").knowledge is not None  # the old model is as it was
    assert load_model(out, device="cpu").knowledge is None
    assert predict(out, [site], device="cpu").no_estimate == "adapted"
    with pytest.raises(LongshiftError, match="adapted"):
        adapt(fitted / "fit", labels, out)
    with labels.open() as file:
        copied = [Path(row["path"]) for row in csv.DictReader(file)]
    for name in COLORS:
        (tmp_path / "labeled" / name).mkdir(parents=True)
    for path in copied:  # the same content at another place
        shutil.copy(path, tmp_path / "labeled" / path.name.rsplit("-", 1)[0])
    with pytest.raises(LongshiftError, match="labeled"):
        evaluate_site(out, tmp_path / "labeled", device="cpu")
    for path in site.iterdir():
        shutil.copy(path, tmp_path / "labeled" / path.name.rsplit("-", 1)[0])
    (found,) = evaluate_site(out, tmp_path / "labeled", device="cpu")
    assert (found.used, found.found.n) == (24, 90 - 24)
    (found,) = evaluate_site(fitted / "fit", tmp_path / "labeled", device="cpu")
    assert (found.used, found.found.n) == (0, 90)
    again = adapt(out, labels, tmp_path / "twice", device="cpu")  # known samples stay with the model
    assert (tmp_path / "twice" / "new_site.safetensors").exists()
    assert again.comparison.n == 24


def test_labels_from_a_folder_and_their_mistakes(fitted: Path, tmp_path: Path) -> None:
    classes = load_model(fitted / "fit", device="cpu").classes
    folder = images(tmp_path / "labeled", 0, 2)
    assert sorted({label for _, label in read_labels(folder, classes)}) == sorted(COLORS)
    table = tmp_path / "l.csv"
    for text, wrong in (
        ("file,label\n", "file"),
        ("path,label\na.png,rde\n", "rde"),
        ("path,label\na.png,red\na.png,red\n", r"a\.png"),
        ("path,label\na.png,\nb.png,\n", "label"),
    ):
        table.write_text(text)
        with pytest.raises(LongshiftError, match=wrong):
            read_labels(table, classes)
    table.write_text("path,label\na.png,red\nb.png,\n")
    assert read_labels(table, classes) == [("a.png", "red")]
    (tmp_path / "a.png").touch()  # a path relative to the table; semicolons of a spreadsheet
    table.write_text("path;label;predicted\na.png;red;blue\n")
    assert read_labels(table, classes) == [(str(tmp_path / "a.png"), "red")]
    table.write_text("path,label\na.png,red\nb.png,\n")
    with pytest.raises(LongshiftError, match="10"):
        adapt(fitted / "fit", table, tmp_path / "out", device="cpu")


def test_what_the_commands_say() -> None:
    labels = {"red": 8, "green <b>": 4, "blue": 0}
    texts = [
        render(
            "longshift.fitting", "suggest.txt.j2", chosen=50, total=200, out="labels.csv", page="labels.html",
            classes=tuple(COLORS), model="fits/skin",
        ),
        *("\n".join(Adapted(Path("x"), found, labels, ()).findings()) for found in (
            HeadComparison(5, 11, 7, 1, 12, np.zeros((12, 3))), HeadComparison(5, 8, 3, 0, 12, np.zeros((12, 3))),
        )),
    ]  # fmt: skip
    check_golden("suggest-adapt.txt", "\n\n".join(texts) + "\n")


def test_what_labels_would_bring_is_simulated(fitted: Path) -> None:
    value = json.loads((fitted / "fit" / "fit.json").read_text())
    assert [row["labels"] for row in value["label_curve"] if row["site"] == "mean"] == [0]  # sites of 36 images
    assert {row["site"] for row in value["label_curve"]} == {"north", "south", "west", "mean"}
