"""Edits that keep the meaning: people format, move, touch and copy files, and finished work must count as before."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from longshift.data import data_version, load_dataset
from longshift.inference import evaluate, load_model
from longshift.results import read_runs
from longshift.sweep import collect, job_entries, load_plan, make_plan
from longshift.sweep.run_job import execute
from longshift.training import RunFolder, Runtime, TaskCache, read_result
from tests.faults.tools import outcome, tiny_sites
from tests.sweep.small import small_plan, table_bytes, write_sweep

CPU = Runtime(device="cpu", keep_model=False)
JUNK = ("notes.txt", ".DS_Store", "Thumbs.db", "result.json~", ".result.json.swp", "Copy of result.json")


def formatted(text: str) -> str:
    """The same JSON in one line."""
    return json.dumps(json.loads(text), separators=(",", ":"))


def reordered(text: str) -> str:
    """The same JSON with sorted keys, Windows line ends and other indentation."""
    return json.dumps(json.loads(text), indent=5, sort_keys=True).replace("\n", "\r\n")


@pytest.mark.parametrize("edit", [formatted, reordered])
@pytest.mark.parametrize("name", ["result.json", "model.json", "config.json", "split.json"])
def test_json_that_is_formatted_anew(digits_run: Path, tmp_path: Path, name: str, edit: Callable[[str], str]) -> None:
    copy = Path(shutil.copytree(digits_run, tmp_path / "run"))
    (copy / name).write_bytes(edit((copy / name).read_text()).encode())
    assert read_result(RunFolder(copy)) == read_result(RunFolder(digits_run))
    assert load_model(copy, device="cpu").classes == load_model(digits_run, device="cpu").classes
    if name in ("config.json", "split.json"):
        assert evaluate(copy, ["validation"], runtime=CPU)["agrees"]


def test_a_run_among_other_files_and_elsewhere(digits_run: Path, tmp_path: Path) -> None:
    place = tmp_path / "other" / "deep" / "run"
    shutil.copytree(digits_run, place)
    for name in JUNK:
        (place / name).write_text("x")
    for path in place.iterdir():
        os.utime(path, (0, 0))
    assert read_result(RunFolder(place)) == read_result(RunFolder(digits_run))
    assert len(collect(place.parent)) == 1


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = small_plan(tmp_path_factory.mktemp("sweep") / "s", draws=1)
    tasks = TaskCache()
    for job in plan.jobs:
        assert execute(job, plan.folder.store, CPU, tasks).kind == "done"
    return plan.folder.path


def states(folder: Path) -> list[str]:
    return sorted(entry.state for entry in job_entries(load_plan(folder)).values())


def _comments(folder: Path) -> None:
    lines = (folder / "sweep.toml").read_text().splitlines()
    (folder / "sweep.toml").write_bytes("\r\n\r\n".join(f"{line}  # note" for line in lines).encode() + b"\r\n")


def _touched(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))


def _junk(folder: Path) -> None:
    for place in (folder, folder / "jobs", *(folder / "jobs").iterdir()):
        for name in JUNK:
            (place / name).write_text("x")


def _without_caches(folder: Path) -> None:
    for name in ("plan.jsonl", "index.tsv"):
        (folder / name).unlink(missing_ok=True)


@pytest.mark.parametrize("edit", [_comments, _touched, _junk, _without_caches])
def test_a_sweep_counts_as_before(finished: Path, tmp_path: Path, edit: Callable[[Path], None]) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "elsewhere"))
    edit(copy)
    assert states(copy) == ["done", "done"]
    assert table_bytes(copy) == table_bytes(finished)


def test_a_sweep_that_gains_and_loses_rows(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "s"))
    write_sweep(copy, draws=1, methods=["erm", "ndcl"])
    make_plan(copy)
    assert states(copy) == ["done", "done", "waiting", "waiting"]
    write_sweep(copy, draws=1, targets=["neon"])
    make_plan(copy)
    assert states(copy) == ["done"]
    write_sweep(copy, draws=1)  # as at first: nothing was lost meanwhile
    make_plan(copy)
    assert table_bytes(copy) == table_bytes(finished)


def test_a_table_that_another_program_saved(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "s"))
    assert outcome("sweep", "collect", str(copy)) is None
    frame = pd.read_parquet(copy / "runs.parquet")
    frame[frame.columns[::-1]].iloc[::-1].to_parquet(copy / "other.parquet", compression="gzip")
    found, expected = read_runs(copy / "other.parquet"), read_runs(copy / "runs.parquet")
    assert sorted(found["fingerprint"]) == sorted(expected["fingerprint"])
    assert list(found.columns) == list(expected.columns)


def test_data_that_are_copied_or_touched_are_the_same(tmp_path: Path) -> None:
    data, cache = tiny_sites(tmp_path / "sites"), tmp_path / "cache"
    version = data_version(load_dataset(data), cache)
    for path in data.rglob("*.png"):
        os.utime(path, (1, 1))
    (data / "north" / ".DS_Store").write_text("x")
    assert data_version(load_dataset(data), cache) == version
    assert data_version(load_dataset(shutil.copytree(data, tmp_path / "copy")), cache) == version
    lines = [f"{path.relative_to(data)},{path.parent.name},{path.parent.parent.name}" for path in data.rglob("*.png")]
    (data / "one.csv").write_text("\n".join(["path,label,domain", *sorted(lines)]))
    (data / "two.csv").write_bytes("\r\n".join(["\ufeffpath,label,domain", *sorted(lines)[::-1]]).encode())
    one, two = (load_dataset(data / name) for name in ("one.csv", "two.csv"))
    assert data_version(one, cache) == data_version(two, cache)
