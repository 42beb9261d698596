"""`longshift fit` from the command line: a model folder, its warnings, and errors in the request."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.fitting.facts import LOGISTIC, MAJORITY
from longshift.inference.loading import load_model
from longshift.inference.prediction import predict
from tests.faults.tools import tiny_sites
from tests.report.page_words import words_of

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
    assert "NEW_SITE.npz" in shown.output
    again = runner.invoke(app, [*arguments, "--json"])
    value = json.loads(again.stdout)
    assert value["method"] in ("Logistic", "NDCL-plus")  # the better one
    score = {
        name: np.mean([row["accuracy"] + row["balanced"] for row in value["sites"][name]])
        for name in ("Logistic", "NDCL-plus")
    }
    assert score[value["method"]] == max(score.values())
    assert 0 <= value["expected_accuracy"]["low"] <= value["expected_accuracy"]["high"] <= 1
    assert runner.invoke(app, ["predict", str(tmp_path / "fit"), str(vectors), "-q"]).exit_code == 0


def test_a_comparison_is_kept_by_a_later_command(vectors: Path, tmp_path: Path) -> None:
    words = ["fit", str(vectors), "--steps", "5", "--out", str(tmp_path / "fit"), "--device", "cpu"]
    first = json.loads(runner.invoke(app, [*words, "--compare", "--json"]).stdout)
    assert set(first["sites"]) == {"Logistic", "NDCL-plus", "ERM", "BSoftmax", LOGISTIC, MAJORITY}
    assert json.loads(runner.invoke(app, [*words, "--json"]).stdout) == first


@pytest.fixture
def contrary(tmp_path: Path) -> Path:
    """What means one class at a site means another at the next: nothing that is learned carries over."""
    y, d = np.arange(90) % 3, np.arange(90) // 3 % 3
    x = np.random.default_rng(0).normal(0, 0.1, (90, 3)) + 3 * np.eye(3)[(y + d) % 3]
    np.savez(tmp_path / "e.npz", x=x, label=y, domain=d)
    return tmp_path / "e.npz"


@pytest.mark.slow
def test_a_model_no_better_than_guessing_says_so_everywhere(contrary: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit"
    arguments = ["fit", str(contrary), "--steps", "20", "--out", str(out), "--device", "cpu"]
    warning = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)["warning"]
    assert warning
    assert warning in runner.invoke(app, [*arguments, "-q"]).stdout
    assert warning in words_of((out / "report.html").read_text(encoding="utf-8"))
    assert warning in (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    with pytest.warns(UserWarning, match="model"):
        assert predict(out, [contrary], device="cpu").warning == warning
    copy = shutil.copytree(out / "final", tmp_path / "copy")  # the model alone
    assert load_model(copy, device="cpu").warning == warning


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/nowhere/sites"], "nowhere"),
        (["digits", "--minutes", "0"], "minutes"),
        (["digits", "--target", "inc"], "ink"),
    ],
)
def test_a_typo_is_told_before_heavy_packages_are_imported(words: list[str], message: str) -> None:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('torch' in sys.modules))\n"
        f"sys.argv = ['longshift', 'fit', *{words!r}]\n"
        "from longshift.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert message in done.stderr
    assert (done.returncode, done.stdout) == (2, "False\n")


def test_quiet_does_not_hide_warnings_about_the_data(tmp_path: Path) -> None:
    data = tiny_sites(tmp_path / "sites")
    (data / "south" / "red" / "0.png").write_bytes((data / "north" / "blue" / "0.png").read_bytes())
    flags = ["--method", "erm", "--steps", "2", "--set", "batch_size=2", "--device", "cpu", "-q"]
    done = runner.invoke(app, ["fit", str(data), *flags, "--out", str(tmp_path / "fit")])
    assert done.exit_code == 0, done.output
    assert "warning: " in done.stderr
