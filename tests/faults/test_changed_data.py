"""Data that change between two commands: runs on two versions never stand in one table in silence."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.data import data_version, load_dataset
from tests.faults.tools import FIT, outcome, tiny_sites
from tests.sweep.small import write_sweep

TRAIN = (
    "train", "--setting", "Natural", "--shrink", "--validation", "1", "--target", "south", "--steps", "2",
    "--eval-every", "1", "--set", "batch_size=2", "--device", "cpu", "--quiet",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tiny_sites(tmp_path / "sites")


def to_noise(data: Path) -> None:
    """Overwrite every image; names and sizes of the pictures stay."""
    rng = np.random.default_rng(1)
    for path in data.rglob("*.png"):
        Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(path)


def printed(*words: object) -> Any:
    """What a command prints as JSON."""
    told = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)


@pytest.mark.slow
def test_a_sweep_runs_changed_data_anew(data: Path, tmp_path: Path) -> None:
    folder = write_sweep(
        tmp_path / "s", settings=["Natural"], targets=["south"], draws=1, datasets=[{"path": str(data)}],
        run={"steps": 2, "eval_every": 1, "shrink": True, "validation": 1, "hparams": {"batch_size": 2}},
    )  # fmt: skip
    run = ("sweep", "run", folder, "--workers", "1", "--device", "cpu", "-q")
    assert outcome(*run) is None
    assert len(list(folder.glob("jobs/*/result.json"))) == 1
    (data / "north" / "red" / "0.png").unlink()
    told = CliRunner().invoke(app, ["sweep", "plan", str(folder)])
    assert "north/red/0.png" in told.stderr
    assert outcome(*run) is None
    assert len(list(folder.glob("jobs/*/result.json"))) == 2
    assert printed("report", folder)["runs"] == 1  # only those on the present data


def test_a_report_refuses_two_versions(data: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert outcome(*TRAIN, "--data", data, "--method", "erm", "--out", runs / "a") is None
    to_noise(data)
    assert outcome(*TRAIN, "--data", data, "--method", "reweight", "--out", runs / "b") is None
    refused = str(outcome("report", runs))
    assert "erm" in refused
    assert "reweight" in refused


def test_a_run_is_neither_resumed_nor_evaluated_on_other_data(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert outcome(*TRAIN, "--data", data, "--method", "erm", "--out", out) is None
    assert outcome("evaluate", out, "--device", "cpu", "--quiet") is None
    to_noise(data)
    assert outcome("evaluate", out, "--device", "cpu", "--quiet") is not None
    (out / "result.json").unlink()
    assert "north/blue/0.png" in str(outcome("train", "--resume", out, "--quiet"))
    assert outcome(*TRAIN, "--data", data, "--method", "erm", "--out", out) is not None
    assert not (out / "result.json").exists()


@pytest.mark.slow
def test_a_fit_is_not_resumed_on_other_data(data: Path, tmp_path: Path) -> None:
    fit = ("fit", data, *FIT, "--out", tmp_path / "fit")
    assert outcome(*fit) is None
    to_noise(data / "north")
    assert "north/blue/0.png" in str(outcome(*fit))


def test_data_that_are_copied_or_touched_are_the_same(data: Path, tmp_path: Path) -> None:
    version = data_version(load_dataset(data), tmp_path / "cache")
    for path in data.rglob("*.png"):
        os.utime(path, (1, 1))
    (data / "north" / ".DS_Store").write_text("x")
    assert data_version(load_dataset(data), tmp_path / "cache") == version
    assert data_version(load_dataset(shutil.copytree(data, tmp_path / "copy")), tmp_path / "cache") == version
