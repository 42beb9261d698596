"""`train`, killed, with damaged files, on a full disk and twice at once: nothing lost, nothing wrong in silence."""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from longshift.errors import LongshiftError
from longshift.files import read_json, write_sealed
from longshift.inference.evaluate_run import evaluate
from longshift.inference.loading import load_model
from longshift.training.checkpoint import load_resume, save_resume
from longshift.training.interrupt import Interrupted
from longshift.training.run_folder import RunFolder, read_metrics, read_result
from longshift.training.trainer import Trainer
from tests.commands import Command, wait_for
from tests.faults.tools import (
    DAMAGES,
    LONG,
    flipped,
    leftovers,
    loaded_or_error,
    on_small_disk,
    outcome,
)  # fmt: skip
from tests.training.small_runs import CPU, config

FLAGS = (
    "--data", "digits", "--target", "ink", "--method", "erm", "--steps", "8", "--eval-every", "4",
    "--set", "batch_size=4", "--image-size", "16", "--device", "cpu", "--quiet",
)  # fmt: skip
RUN = config(steps=8, eval_every=4, hparams={"batch_size": 4})
MACHINE = ("seconds", "environment", "memory_gib", "files", "checksum")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing happens to."""
    out = tmp_path_factory.mktemp("calm") / "run"
    assert outcome("train", *FLAGS, "--out", str(out)) is None
    return out


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, stopped after 5 of its 8 steps."""
    from longshift.training.task import make_task

    out = tmp_path_factory.mktemp("broken") / "run"
    trainer = Trainer(RUN, make_task(RUN), out, CPU)
    trainer.stop = lambda: trainer.progress.step >= 5
    with pytest.raises(Interrupted, match="stopped at step 5 of 8"):
        trainer.run()
    return out


def same(one: Path, other: Path) -> bool:
    """Whether two runs ended alike: weights bit for bit, every number of the result."""
    first, second = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    results: list[dict[str, Any]] = [read_json(folder / "result.json") for folder in (one, other)]
    numbers = [{k: v for k, v in result.items() if k not in MACHINE} for result in results]
    equal = first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
    return equal and numbers[0] == numbers[1]


@pytest.mark.slow
def test_the_stopped_run_goes_on_to_the_same_end(calm: Path, broken_off: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(broken_off, tmp_path / "run")
    assert outcome("train", "--resume", str(copy), "--quiet", "--device", "cpu") is None
    assert same(calm, copy)


@pytest.mark.slow
def test_killed_at_any_step_it_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    """A method that draws random numbers, with dropout: all of them must come back."""
    long = ("--steps", "30", "--eval-every", "10", "--image-size", "32")  # enough to be killed in time
    flags = ("--method", "ndcl", *long, "--set", "dropout=0.1")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert outcome("train", *FLAGS, *flags, "--out", str(whole)) is None
    process = Command("train", *FLAGS, *flags, "--out", str(broken), "--checkpoint-every", "1")
    stop_at = random.Random().randint(1, 25)
    wait_for(lambda: _step_reached(broken) >= stop_at or process.poll() is not None, pause=0.005)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, f"the run ended before it could be killed at step {stop_at}"
    assert not (broken / "result.json").exists()
    (broken / ".resume.pt.left.part").write_bytes(b"half")  # as if killed while writing
    assert outcome("train", "--resume", str(broken), "--quiet", "--device", "cpu") is None
    assert same(whole, broken), f"the run differs after a kill at step {stop_at}"
    assert not leftovers(broken)
    assert not (broken / "resume.pt").exists()


def _step_reached(folder: Path) -> int:
    if not (folder / "resume.pt").exists():
        return 0
    return int(load_resume(folder / "resume.pt", torch.device("cpu"))["progress"]["step"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resume.pt", "config.json", "split.json", "metrics.jsonl", "environment.json"])
def test_damage_to_an_unfinished_run(calm: Path, broken_off: Path, tmp_path: Path, name: str) -> None:
    """It is refused, and what the message says to do helps; or the run resumes to the same end."""
    helped = name == "config.json"  # a new command
    for kind in DAMAGES if LONG else ("half", "object"):
        copy = shutil.copytree(broken_off, tmp_path / kind)
        (copy / name).write_bytes(DAMAGES[kind]((copy / name).read_bytes()))
        error = outcome("train", "--resume", str(copy), "--quiet", "--device", "cpu")
        if error is not None:
            assert str(copy / name) in str(error)
            assert "Remove" in str(error)
            if helped:
                continue
            helped = True
            (copy / name).unlink()
            assert outcome("train", "--resume", str(copy), "--quiet", "--device", "cpu") is None
        assert same(calm, copy)
        assert (copy / "split.json").read_bytes() == (calm / "split.json").read_bytes()
        assert [row["step"] for row in read_metrics(RunFolder(copy))] == [4, 8]


def test_every_flipped_bit_of_a_checkpoint_is_noticed(broken_off: Path, tmp_path: Path) -> None:
    """All that matters in the file is under a checksum: with a bit changed it is refused, or loads as it was."""
    from longshift.training.checkpoint import load_resume

    cpu = torch.device("cpu")
    raw = (broken_off / "resume.pt").read_bytes()
    whole = load_resume(broken_off / "resume.pt", cpu)
    file, rng, refused = tmp_path / "resume.pt", random.Random(3), 0
    for _ in range(40):
        file.write_bytes(flipped(raw, rng.randrange(len(raw))))
        found = loaded_or_error(lambda: load_resume(file, cpu))
        if isinstance(found, LongshiftError):
            assert str(file) in str(found)
            refused += 1
        else:
            assert found["progress"] == whole["progress"]
            assert all(torch.equal(v, found["best"][k]) for k, v in whole["best"].items())
            assert all(torch.equal(v, found["method"]["module"][k]) for k, v in whole["method"]["module"].items())
    assert refused > 20


def test_the_checkpoint_of_another_run_is_refused(broken_off: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(broken_off, tmp_path / "run")
    state = load_resume(copy / "resume.pt", torch.device("cpu"))
    save_resume(copy / "resume.pt", {**state, "run": "0" * 64})
    error = outcome("train", "--resume", str(copy), "--quiet", "--device", "cpu")
    assert "belongs to another run" in str(error)
    for key in ("progress", "best", "method"):
        save_resume(copy / "resume.pt", {k: v for k, v in state.items() if k != key})
        error = outcome("train", "--resume", str(copy), "--quiet", "--device", "cpu")
        assert f"it lacks '{key}'" in str(error)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["model.safetensors", "model.json", "config.json", "split.json", "result.json"])
def test_damage_to_a_finished_run(calm: Path, tmp_path: Path, name: str, damage: str) -> None:
    copy = shutil.copytree(calm, tmp_path / "run")
    (copy / name).write_bytes(DAMAGES[damage]((copy / name).read_bytes()))
    with pytest.raises(LongshiftError) as found:
        evaluate(copy, ["validation"], runtime=CPU)
    assert str(copy / name) in str(found.value)
    if name.startswith("model"):
        with pytest.raises(LongshiftError, match=name.replace(".", r"\.")):
            load_model(copy, device="cpu")


def test_every_flipped_bit_of_a_model_is_noticed(calm: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(calm, tmp_path / "run")
    raw, whole = (calm / "model.safetensors").read_bytes(), load_file(calm / "model.safetensors")
    rng, refused = random.Random(4), 0
    for place in [*range(8, 60, 4), *(rng.randrange(len(raw)) for _ in range(30))]:
        (copy / "model.safetensors").write_bytes(flipped(raw, place))
        model = loaded_or_error(lambda: load_model(copy, device="cpu"))
        if isinstance(model, LongshiftError):
            assert str(copy / "model.safetensors") in str(model)
            refused += 1
        else:
            found = model.predictor.state_dict()
            assert all(torch.equal(value, whole[f"network.{name}"]) for name, value in found.items())
    assert refused >= 30


def test_changed_numbers_in_a_result_are_noticed(calm: Path, tmp_path: Path) -> None:
    copy = RunFolder(shutil.copytree(calm, tmp_path / "run"))
    text = copy.result.read_text()
    value = read_json(copy.result)
    accuracy = value["selected"]["target"]["accuracy"]
    copy.result.write_text(text.replace(f'"accuracy": {accuracy}', '"accuracy": 0.99'))
    with pytest.raises(LongshiftError, match="its values are not those that were written"):
        read_result(copy)
    value["selected"]["target"]["accuracy"] = 0.99
    write_sealed(copy.result, value)
    with pytest.raises(LongshiftError, match=r"accuracy on target is 0\.99, but the other numbers give 0\.\d+"):
        read_result(copy)
    copy.result.write_text(text)
    assert read_result(copy)["selected"]["target"]["accuracy"] == accuracy
    with pytest.raises(LongshiftError, match="expected the run 000000000000, got"):
        read_result(copy, "0" * 64)


def test_damaged_metrics_are_named(calm: Path, tmp_path: Path) -> None:
    copy = RunFolder(shutil.copytree(calm, tmp_path / "run"))
    assert [row["step"] for row in read_metrics(copy)] == [4, 8]
    for name, damage in DAMAGES.items():
        copy.metrics.write_bytes(damage((calm / "metrics.jsonl").read_bytes()))
        if name == "empty":
            assert read_metrics(copy) == []
        else:
            with pytest.raises(LongshiftError, match=r"metrics\.jsonl is damaged"):
                read_metrics(copy)


@pytest.mark.slow
def test_a_full_disk_costs_nothing(calm: Path, broken_off: Path, tmp_path: Path) -> None:
    """There is room for one checkpoint and not for the next; with room again, the run goes on from the first.

    The second fails in the background, which the third, two steps later, tells.
    """
    disk, after = tmp_path / "disk", tmp_path / "after"
    kib = (broken_off / "resume.pt").stat().st_size * 3 // 2048
    train = ("train", *FLAGS, "--checkpoint-every", "2", "--out", str(disk / "run"))
    code, said = on_small_disk(disk, kib, None, after, train)
    assert code == 1, said
    assert "the disk is full. Free some space" in said
    assert "Traceback" not in said
    assert not leftovers(after)
    run = after / "run"
    assert not (run / "result.json").exists()
    for path in run.glob("*.json"):
        read_json(path)  # whole, or not there
    assert load_resume(run / "resume.pt", torch.device("cpu"))["progress"]["step"] == 2
    assert outcome("train", "--resume", str(run), "--device", "cpu", "--quiet") is None
    assert same(calm, run)


@pytest.mark.slow
def test_of_two_at_once_one_wins(calm: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    pair = [Command("train", *FLAGS, "--out", out) for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in pair]
    assert {process.returncode for process in pair} == {0, 1}, said
    loser = next(text for process, text in zip(pair, said, strict=True) if process.returncode)
    assert "another command is using" in loser or "holds a finished run" in loser
    assert "Traceback" not in loser
    assert same(calm, out)
    assert not leftovers(out)
