"""Data that change between two commands: runs on two versions never stand in one table in silence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError
from longshift.inference import evaluate
from longshift.results import read_runs
from longshift.sweep import collect, make_plan
from longshift.sweep.run_job import execute
from longshift.training import OpenDataset, RunConfig, RunFolder, Runtime, TaskCache, read_config, resolve
from tests.faults.tools import outcome, tiny_sites
from tests.sweep.small import write_sweep

CPU = Runtime(device="cpu", keep_model=False)
TRAIN = (
    "train", "--setting", "Natural", "--shrink", "--validation", "1", "--target", "south", "--steps", "2",
    "--eval-every", "1", "--set", "batch_size=2", "--device", "cpu", "--quiet",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))


def to_noise(data: Path) -> None:
    """Overwrite every image; names and sizes of the pictures stay."""
    rng = np.random.default_rng(1)
    for path in data.rglob("*.png"):
        Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(path)


def sweep(folder: Path, data: Path, *methods: str) -> pd.DataFrame:
    """Run a sweep to its end and return its table."""
    write_sweep(
        folder, methods=list(methods), settings=["Natural"], targets=["south"], draws=1, datasets=[{"path": str(data)}],
        run={"steps": 2, "eval_every": 1, "shrink": True, "validation": 1, "hparams": {"batch_size": 2}},
    )  # fmt: skip
    _, plan = make_plan(folder)
    tasks = TaskCache()
    for job in plan.jobs:
        assert execute(job, plan.folder.store, CPU, tasks).kind == "done"
    return collect(folder)


def test_a_sweep_runs_changed_data_anew(tmp_path: Path) -> None:
    data = tiny_sites(tmp_path / "sites")
    first = sweep(tmp_path / "sweep", data, "erm")
    to_noise(data)
    both = sweep(tmp_path / "sweep", data, "erm", "reweight")
    assert len(both) == 2
    assert both["data_version"].nunique() == 1
    assert not set(both["fingerprint"]) & set(first["fingerprint"])


def test_plan_and_run_tell_what_changed(tmp_path: Path) -> None:
    data = tiny_sites(tmp_path / "sites")
    sweep(tmp_path / "sweep", data, "erm")
    (data / "north" / "red" / "0.png").unlink()
    told = CliRunner().invoke(app, ["sweep", "plan", str(tmp_path / "sweep"), "--no-measure"])
    assert told.exit_code == 0
    assert "the files of sites changed: 1 file removed (north/red/0.png). Its jobs are new ones" in told.stderr
    assert "finished: 0" in told.stdout


def test_a_report_refuses_two_versions(tmp_path: Path) -> None:
    data, runs = tiny_sites(tmp_path / "sites"), tmp_path / "runs"
    assert outcome(*TRAIN, "--data", str(data), "--method", "erm", "--out", str(runs / "a")) is None
    to_noise(data)
    assert outcome(*TRAIN, "--data", str(data), "--method", "reweight", "--out", str(runs / "b")) is None
    error = outcome("report", str(runs))
    assert "the runs on sites saw 2 versions of its files" in str(error)
    advised = re.search(r"--data-version (\w+)", str(error))
    assert advised is not None
    told = CliRunner().invoke(app, ["report", str(runs), "--data-version", advised[1], "--json"])
    assert told.exit_code == 0, told.output
    assert '"runs": 1' in told.stdout
    assert "expected one of" in str(outcome("report", str(runs), "--data-version", "nothing"))


def test_copies_of_a_benchmark_are_told_apart_but_not_refused() -> None:
    from longshift.report import mixed_versions

    row = {"dataset": "PACS", "benchmark": "PACS", "status": "done", "method": "erm"}
    frame = pd.DataFrame([{**row, "data_version": "a" * 64}, {**row, "data_version": "b" * 64}])
    assert "saw 2 versions" in mixed_versions(frame)[0]
    assert mixed_versions(frame.assign(data_version=["", "b"])) == []  # published tables do not have it


def test_a_run_is_not_resumed_on_other_data(tmp_path: Path) -> None:
    data, out = tiny_sites(tmp_path / "sites"), tmp_path / "run"
    assert outcome(*TRAIN, "--data", str(data), "--method", "erm", "--out", str(out)) is None
    assert outcome("evaluate", str(out), "--device", "cpu", "--quiet") is None
    (out / "result.json").unlink()
    to_noise(data)
    again = outcome("train", "--resume", str(out), "--quiet")
    assert "have changed: 12 files changed (north/blue/0.png" in str(again)
    assert "have changed since it was trained" in str(outcome("evaluate", str(out), "--device", "cpu", "--quiet"))
    other = outcome(*TRAIN, "--data", str(data), "--method", "erm", "--out", str(out))
    assert "the data have changed, 12 files changed" in str(other)


@pytest.mark.slow
def test_a_fit_is_not_resumed_on_other_data(tmp_path: Path) -> None:
    data, out = tiny_sites(tmp_path / "sites"), tmp_path / "fit"
    flags = ("fit", str(data), "--method", "erm", "--steps", "2", "--set", "batch_size=2", "--device", "cpu", "--quiet")
    assert outcome(*flags, "--out", str(out)) is None
    for path in (data / "north").rglob("*.png"):
        Image.new("RGB", (16, 16)).save(path)
    error = outcome(*flags, "--out", str(out))
    assert re.search(r"changed since the fit .* started: 6 files changed \(north/blue/0\.png", str(error))


def test_a_run_counts_by_content_and_not_by_place(tmp_path: Path) -> None:
    keys = {"target": "south", "setting": "Natural", "shrink": True, "validation": 1}
    one, other = (resolve({**keys, "data": str(tiny_sites(tmp_path / name))}).config for name in ("a", "b"))
    assert one.fingerprint() == other.fingerprint()
    with pytest.raises(LongshiftError, match="is not the expected version"):
        resolve({**keys, "data": one.data, "data_version": "0" * 64})
    assert resolve({"data": "digits", "target": "ink"}).config.data_version == ""


def test_a_stated_version_is_also_required_of_a_benchmark(tmp_path: Path) -> None:
    dataset = OpenDataset(str(tiny_sites(tmp_path / "a")))
    run = RunConfig(data=dataset.data, benchmark="PACS", target="south")
    with pytest.raises(LongshiftError, match="is not the expected version"):
        dataset._with_version(run.model_copy(update={"data_version": "0" * 64}))
    right = dataset._with_version(run.model_copy(update={"data_version": dataset.version}))
    assert right.fingerprint() == run.fingerprint()


def test_a_run_on_a_benchmark_is_measured_on_another_copy_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tiny_sites(tmp_path / "sites"), tmp_path / "run"
    assert outcome(*TRAIN, "--data", str(data), "--method", "erm", "--out", str(out)) is None
    to_noise(data)
    config = read_config(RunFolder(out)).model_copy(update={"benchmark": "PACS", "image_size": 16})
    monkeypatch.setattr("longshift.inference.evaluate_run.read_config", lambda folder: config)
    with pytest.warns(UserWarning, match="measured on this copy of PACS"):
        assert "target" in evaluate(out, ["target"], runtime=Runtime(device="cpu"))


def test_a_benchmark_keeps_its_fingerprint() -> None:
    """Published tables name their runs by it."""
    run = RunConfig(data="a/PACS.zip", benchmark="PACS", target="sketch")
    assert run.fingerprint() == RunConfig(data="b", benchmark="PACS", target="sketch").fingerprint()


def test_the_table_has_the_version(tmp_path: Path) -> None:
    frame = sweep(tmp_path / "sweep", tiny_sites(tmp_path / "sites"), "erm")
    assert outcome("sweep", "collect", str(tmp_path / "sweep")) is None
    assert list(read_runs(tmp_path / "sweep" / "runs.parquet")["data_version"]) == list(frame["data_version"])
    assert len(frame["data_version"][0]) == 64
