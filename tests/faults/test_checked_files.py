"""Files that we wrote, changed by a disk or by a hand: read as they were written, made again, or refused in words."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError
from longshift.files import read_sealed, write_sealed
from longshift.inference import evaluate, export, load_model, predict
from longshift.results import BadResult, read_summary
from longshift.sweep import Plan, load_plan, scan_jobs
from longshift.sweep.run_job import execute
from longshift.training import RunFolder, Runtime, TaskCache, read_result
from longshift.training.result_checks import contradiction
from longshift.training.task import Task
from tests.faults.tools import LONG, outcome, tiny_sites
from tests.sweep.small import small_plan, table_bytes
from tests.training.runs import train

pytestmark = pytest.mark.slow
CPU = Runtime(device="cpu", keep_model=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    plan = small_plan(tmp_path_factory.mktemp("sweep") / "s", methods=["erm", "ndcl"], draws=1)
    tasks = TaskCache()
    for job in plan.jobs:
        assert execute(job, plan.folder.store, CPU, tasks).kind == "done"
    return plan


@pytest.fixture
def sweep(finished: Plan, tmp_path: Path) -> Path:
    return shutil.copytree(finished.folder.path, tmp_path / "s")


# -- caches of a sweep ------------------------------------------------------------------------------------------


def test_no_flipped_bit_of_the_index_changes_a_number(sweep: Path) -> None:
    """It is a cache: a damaged line is read again from its run."""
    expected, index, rng = table_bytes(sweep), sweep / "index.tsv", random.Random(0)
    whole = index.read_bytes()
    assert whole
    for _ in range(20):
        raw = bytearray(whole)
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        index.write_bytes(raw)
        assert table_bytes(sweep) == expected


def test_an_edited_number_of_the_index_is_not_believed(sweep: Path) -> None:
    expected, index = table_bytes(sweep), sweep / "index.tsv"
    before = index.read_text()
    index.write_text(before.replace('"target_accuracy": 0.', '"target_accuracy": 0.9'))
    assert index.read_text() != before
    assert table_bytes(sweep) == expected


@pytest.mark.parametrize(
    "edit",
    [
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [lines[0], *(line.replace('"ink"', '"neon"') for line in lines[1:])],
        lambda lines: [lines[0].replace('"jobs"', '"job"'), *lines[1:]],
        lambda lines: ["[]", *lines[1:]],
        lambda lines: [],
    ],
)
def test_an_edited_plan_is_made_again(sweep: Path, edit: Callable[[list[str]], list[str]]) -> None:
    expected, file = load_plan(sweep).jobs, sweep / "plan.jsonl"
    file.write_text("".join(f"{line}\n" for line in edit(file.read_text().splitlines())))
    assert load_plan(sweep).jobs == expected
    assert len(expected) == 4


def test_verify_checks_all_of_the_image_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    data = tiny_sites(tmp_path / "sites")
    assert outcome("data", "prepare", str(data), "--size", "16", "--quiet") is None
    whole = CliRunner().invoke(app, ["data", "verify", str(data), "--quiet", "--json"])
    assert json.loads(whole.stdout)["problems"] == []
    (file,) = (tmp_path / "cache").glob("v2-*/pixels.npy")
    raw = bytearray(file.read_bytes())
    raw[-5] ^= 1
    file.write_bytes(raw)
    found = CliRunner().invoke(app, ["data", "verify", str(data), "--quiet", "--json"])
    assert [problem["kind"] for problem in json.loads(found.stdout)["problems"]] == ["damaged store"]
    assert found.exit_code == 1


# -- results ----------------------------------------------------------------------------------------------------


def first_job(plan: Plan) -> tuple[RunFolder, str]:
    fingerprint = plan.jobs[0].fingerprint
    return RunFolder(plan.folder.store.job(fingerprint)), fingerprint


def _accuracy(value: dict[str, Any]) -> None:
    value["selected"]["target"]["accuracy"] = 0.99


def _per_class(value: dict[str, Any]) -> None:
    part = value["selected"]["target"]["per_class"]
    part[next(iter(part))] = 0.123


def _few(value: dict[str, Any]) -> None:
    value["last"]["test"]["few"] = 0.5


def _worst(value: dict[str, Any]) -> None:
    value["selected"]["test"]["worst_domain"] = 0.001


def _confusion(value: dict[str, Any]) -> None:
    value["selected"]["validation"]["confusion"][0][0] += 1


EDITS = [_accuracy, _per_class, _few, _worst, _confusion]


@pytest.mark.parametrize(("edit", "seal"), [(_accuracy, False), *((edit, True) for edit in EDITS)])
def test_edited_numbers_of_a_result_are_refused_everywhere(
    finished: Plan, sweep: Path, edit: Callable[[dict[str, Any]], None], seal: bool
) -> None:
    """Also if the checksum was made to fit: then the numbers contradict each other."""
    plan = load_plan(sweep)
    folder, fingerprint = first_job(plan)
    value = json.loads(folder.result.read_text())
    edit(value)
    if seal:
        write_sealed(folder.result, value)
    else:
        folder.result.write_text(json.dumps(value))
    said = "but (the other numbers give|the confusion matrix gives)|not the worst" if seal else "not those that were"
    with pytest.raises(LongshiftError, match=said):
        read_result(folder)
    with pytest.raises(BadResult):
        read_summary(folder.path, fingerprint)
    assert scan_jobs(plan.folder.store, [fingerprint])[fingerprint].state == "corrupt"
    if LONG or edit is _accuracy:
        assert execute(plan.jobs[0], plan.folder.store, CPU, TaskCache()).kind == "done"  # runs again
        assert table_bytes(sweep) == table_bytes(finished.folder.path)


def test_evaluations_of_another_run_are_refused(sweep: Path) -> None:
    plan = load_plan(sweep)
    one, other = (RunFolder(plan.folder.store.job(job.fingerprint)) for job in plan.jobs[:2])
    shutil.copy(other.metrics, one.metrics)
    with pytest.raises(BadResult, match=r"not the file that belongs to result\.json"):
        read_summary(one.path, plan.jobs[0].fingerprint)


def test_no_contradiction_in_real_results(finished: Plan) -> None:
    folder, _ = first_job(finished)
    value = read_result(folder)
    assert contradiction(value["selected"]["test"], value["split"]["shots"]) == ""


# -- models -----------------------------------------------------------------------------------------------------


def _reversed(info: dict[str, Any]) -> None:
    info["classes"].reverse()


def _warmer(info: dict[str, Any]) -> None:
    info["temperature"] *= 3


def _other_mean(info: dict[str, Any]) -> None:
    info["mean"][0] += 0.1


@pytest.mark.parametrize("edit", [_reversed, _warmer, _other_mean])
def test_an_edited_description_is_refused(
    digits_run: Path, tmp_path: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    copy = shutil.copytree(digits_run, tmp_path / "run")
    info = json.loads((copy / "model.json").read_text())
    edit(info)
    (copy / "model.json").write_text(json.dumps(info))
    image = tmp_path / "x.png"
    for use in (
        lambda: load_model(copy, device="cpu"),
        lambda: predict(copy, [image], device="cpu"),
        lambda: evaluate(copy, ["target"], runtime=CPU),
        lambda: export(copy, "torch", tmp_path / "m.pt2"),
    ):
        with pytest.raises(LongshiftError, match=r"model\.json is damaged or was edited.* train the run again"):
            use()


def test_weights_of_another_run_are_refused(digits_run: Path, digits_task: Task, tmp_path: Path) -> None:
    train(tmp_path / "other", digits_task, steps=2, eval_every=1, train_seed=1)
    copy = shutil.copytree(digits_run, tmp_path / "run")
    shutil.copy(tmp_path / "other" / "model.safetensors", copy / "model.safetensors")
    for use in (lambda: load_model(copy, device="cpu"), lambda: evaluate(copy, ["target"], runtime=CPU)):
        with pytest.raises(LongshiftError, match="has the weights of another model than"):
            use()


def test_a_description_without_the_hash_of_its_weights_is_refused(digits_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(digits_run, tmp_path / "run")
    write_sealed(copy / "model.json", {**read_sealed(copy / "model.json"), "weights": ""})
    with pytest.raises(LongshiftError, match="expected the hash of its weights"):
        load_model(copy, device="cpu")


# -- what stays behind ------------------------------------------------------------------------------------------


def test_half_written_checkpoints_of_killed_jobs_are_removed(tmp_path: Path) -> None:
    plan = small_plan(tmp_path / "s", draws=1, targets=["ink"])
    folder, _ = first_job(plan)
    folder.path.mkdir(parents=True)
    (folder.path / ".resume.pt.abc.part").write_bytes(b"half")
    assert execute(plan.jobs[0], plan.folder.store, CPU, TaskCache()).kind == "done"
    assert not [path.name for path in folder.path.iterdir() if path.name.startswith(".")]


def test_a_claim_of_tomorrow_blocks_nothing(tmp_path: Path) -> None:
    import time

    plan = small_plan(tmp_path / "s", draws=1, targets=["ink"])
    claim = plan.folder.store.claim(plan.jobs[0].fingerprint)
    claim.parent.mkdir(parents=True)
    claim.write_text(json.dumps({"machine": "elsewhere", "pid": 1, "since": 0}))
    os.utime(claim, (time.time() + 86400,) * 2)
    assert execute(plan.jobs[0], plan.folder.store, CPU, TaskCache()).kind == "done"


def test_a_job_and_train_resume_do_not_meet(tmp_path: Path) -> None:
    """Whoever comes second leaves the run to the first."""
    from longshift.locks import lock_folder

    plan = small_plan(tmp_path / "s", draws=1, targets=["ink"])
    job, store = plan.jobs[0], plan.folder.store
    with lock_folder(store.job(job.fingerprint)):  # `train --resume` holds it
        assert execute(job, store, CPU, TaskCache()).kind == "busy"
    seen: list[str] = []

    def stop() -> bool:
        seen.append(str(outcome("train", "--resume", str(store.job(job.fingerprint)), "--quiet", "--device", "cpu")))
        return True

    assert execute(job, store, CPU, TaskCache(), stop).kind == "stopped"
    assert "another command is using" in seen[0]


def test_a_limit_on_file_sizes_stops_the_sweep_and_fails_no_job(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    plan = small_plan(tmp_path / "s", draws=1, targets=["ink"])
    job, store, before = plan.jobs[0], plan.folder.store, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        found = execute(job, store, Runtime(device="cpu", checkpoint_every=1), TaskCache())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert found.kind == "full"
    assert "larger than the limit on file sizes" in found.message
    assert not store.failure(job.fingerprint).exists()


def test_a_read_only_sweep_without_a_plan_can_be_looked_at(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sweep / "plan.jsonl").unlink()

    def refuse(path: Path, text: str) -> None:
        raise LongshiftError(f"cannot write {path}: the folder is read-only")

    monkeypatch.setattr("longshift.sweep.jobs.write_text", refuse)
    assert outcome("sweep", "status", str(sweep)) is None
    assert outcome("report", str(sweep)) is None
    assert not (sweep / "plan.jsonl").exists()
