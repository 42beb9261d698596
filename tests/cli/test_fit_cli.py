from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import UsageError
from tests.data.trees import make_tree

runner = CliRunner()


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    y, d = np.arange(90) % 3, np.arange(90) // 3 % 3
    np.savez(tmp_path / "e.npz", x=rng.normal(size=(90, 4)) + 3 * np.eye(4)[y], label=y, domain=d)
    return tmp_path / "e.npz"


def test_fit_then_predict(vectors: Path, tmp_path: Path) -> None:
    arguments = ["fit", str(vectors), "--steps", "20", "--out", str(tmp_path / "fit"), "--device", "cpu", "-q"]
    shown = runner.invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    for name in ("report.html", "MODEL_CARD.md", "final", "NEW_SITE.npz"):
        assert name in shown.output
    again = runner.invoke(app, [*arguments, "--json"])
    value = json.loads(again.stdout)
    assert value["method"] == "NDCL"
    assert 0 <= value["expected_accuracy"]["low"] <= value["expected_accuracy"]["high"] <= 1
    assert runner.invoke(app, ["predict", str(tmp_path / "fit"), str(vectors), "-q"]).exit_code == 0


def test_the_next_command_can_be_pasted(vectors: Path, tmp_path: Path) -> None:
    out = tmp_path / "my fits" / "a b"
    arguments = ["fit", str(vectors), "--steps", "5", "--target", "1", "--out", str(out), "--device", "cpu", "-q"]
    assert f"longshift predict '{out}' NEW_SITE.npz" in runner.invoke(app, arguments).output


def test_one_site_is_told_which_folder_is_meant(tmp_path: Path) -> None:
    hospitals = make_tree(tmp_path / "hospitals", ("north", "south"), ("melanoma", "naevus"))
    failed = runner.invoke(app, ["fit", str(hospitals / "north"), "--out", str(tmp_path / "f"), "-q"])
    assert failed.exit_code == 1
    assert f"give the folder above it, {str(hospitals)!r}, which also has south" in str(failed.exception)


def test_it_says_what_it_sees(vectors: Path, tmp_path: Path) -> None:
    arguments = ["fit", str(vectors), "--steps", "5", "--target", "1", "--out", str(tmp_path / "f"), "--device", "cpu"]
    shown = runner.invoke(app, arguments)
    assert "e has 90 vectors of 3 classes from 3 sites" in shown.output
    assert "in 0:00:0" in shown.stderr  # progress


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--average", "mean"], "expected none, ema or swa"),
        (["--minutes", "-1"], "expected a positive number"),
        (["--method", "ndlc"], "did you mean ndcl"),
        (["--target", "9"], "unknown site"),
        (["--set", "alpa=1"], "did you mean alpha"),
    ],
)
def test_mistakes(vectors: Path, tmp_path: Path, flags: list[str], message: str) -> None:
    failed = runner.invoke(app, ["fit", str(vectors), "--out", str(tmp_path / "f"), "-q", *flags])
    assert isinstance(failed.exception, UsageError)
    assert message in str(failed.exception)
    assert not (tmp_path / "f").exists()
