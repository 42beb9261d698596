"""Resume states are written in the background: copies, in order, with errors that are not lost."""

import threading
from pathlib import Path

import pytest
import torch

from longshift.errors import LongshiftError
from longshift.training import checkpoint
from longshift.training.checkpoint import ResumeWriter, load_resume
from longshift.training.run_folder import RunFolder
from tests.training.small_runs import config, train

CPU = torch.device("cpu")


def test_what_is_written_is_the_state_at_the_time_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    original = checkpoint.save_resume

    def slow(path: Path, state: dict[str, object]) -> None:
        assert go_on.wait(10)
        original(path, state)

    monkeypatch.setattr(checkpoint, "save_resume", slow)
    weights = torch.zeros(3)
    writer = ResumeWriter(tmp_path / "resume.pt")
    writer.save({"weights": weights, "nested": [{"again": weights}, (weights, 1)], "step": 4})
    weights += 1  # training goes on before the state has reached the disk
    go_on.set()
    writer.close()
    found = load_resume(tmp_path / "resume.pt", CPU)
    assert found["step"] == 4
    for tensor in (found["weights"], found["nested"][0]["again"], found["nested"][1][0]):
        assert torch.equal(tensor, torch.zeros(3))


def test_a_write_that_failed_is_told_by_the_next_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    writer = ResumeWriter(tmp_path / "file" / "resume.pt")
    writer.save({"step": 1})
    with pytest.raises(LongshiftError, match="write"):
        writer.save({"step": 2})
    writer.close()


def test_a_run_finishes_although_its_last_state_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, state: dict[str, object]) -> None:
        raise LongshiftError(f"cannot write {path}: the disk is full")

    monkeypatch.setattr(checkpoint, "save_resume", full)
    result = train(config(steps=2, eval_every=2), tmp_path / "run")
    assert result["status"] == "done"
    assert RunFolder(tmp_path / "run").finished()
    with pytest.raises(LongshiftError, match="full"):  # but a longer one tells of it
        train(config(steps=6, eval_every=2), tmp_path / "longer")
