"""`longshift demo`, and `pacs-features` wherever a command takes a dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError, UsageError

RUNNER = CliRunner()


def run(*arguments: str | Path) -> str:
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_data_and_split_take_the_word() -> None:
    counts = json.loads(run("data", "inspect", "pacs-features", "--json"))
    assert counts["sketch"]["dog"] == 772
    assert "guitar" in run("split", "show", "pacs-features", "--setting", "Duality", "--target", "P")


def test_train_evaluate_and_predict_take_the_word(tmp_path: Path) -> None:
    given = ("--data", "pacs-features", "--target", "P", "--method", "ndcl_plus", "--steps", "4", "--eval-every", "2")
    run("train", *given, "--out", tmp_path / "run", "--quiet")
    value = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert value["run"]["benchmark"] == "PACS"
    run("predict", tmp_path / "run", "pacs-features", "--out", tmp_path / "found.csv", "--quiet")
    lines = (tmp_path / "found.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 9992


@pytest.mark.slow
def test_sweep_and_report_take_the_word(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(
        'settings = ["Duality"]\ntargets = ["P"]\nmethods = ["erm"]\ntrials = 1\ndraws = 1\n'
        '[[datasets]]\npath = "pacs-features"\n[run]\nsteps = 2\neval_every = 1\n'
    )
    run("sweep", "run", tmp_path, "--quiet", "--workers", "1")
    run("report", tmp_path, "--html", tmp_path / "page.html")
    assert "PACS" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_fit_takes_the_word(tmp_path: Path) -> None:
    run("fit", "pacs-features", "--steps", "4", "--out", tmp_path / "fit", "--quiet")
    card = (tmp_path / "fit" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "192 principal components" in card


def test_another_word_or_another_sweep_is_an_error(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["demo", "--data", "digit", "--out", str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert "did you mean digits" in str(done.exception)
    (tmp_path / "sweep.toml").write_text("trials = 1\n")
    done = RUNNER.invoke(app, ["demo", "--out", str(tmp_path)])
    assert isinstance(done.exception, LongshiftError)
    assert "Choose another --out" in str(done.exception)
