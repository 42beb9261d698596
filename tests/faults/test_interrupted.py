"""Commands that are killed, on a full disk, or twice at once: nothing is lost, and the end is the same."""

from __future__ import annotations

import functools
import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file, save_file

from longshift.data import load_dataset
from longshift.nn import make_backbone
from tests.commands import Command
from tests.faults.tools import FIT, full_disk_at_write, killed_at_write, leftovers, outcome, tiny_sites

pytestmark = pytest.mark.slow


class Verb(NamedTuple):
    """A command on the files of `stage`, how it is repeated, and what it makes, in a form that two runs share."""

    words: tuple[str, ...]
    made: Callable[[], Any]
    again: tuple[str, ...] = ()


def weights(file: str) -> dict[str, list[Any]]:
    return {name: value.tolist() for name, value in load_file(file).items()}


def trained(folder: str) -> tuple[Any, ...]:
    result = json.loads(Path(folder, "result.json").read_text())
    return weights(f"{folder}/model.safetensors"), result["selected"], result["last"]


def embedded() -> tuple[Any, ...]:
    found = load_dataset("v.npz")
    return found.fingerprint(), found.paths


# A method that draws random numbers, with dropout: all of them must come back.
TRAIN = (
    "train", "--data", "digits", "--target", "ink", "--method", "ndcl", "--steps", "6", "--eval-every", "3",
    "--set", "batch_size=4", "--set", "dropout=0.1", "--image-size", "16", "--device", "cpu", "-q",
    "--checkpoint-every", "1", "--out", "run",
)  # fmt: skip
EMBED = ("--backbone", "small_conv", "--weights", "w.safetensors", "--image-size", "16", "--device", "cpu", "-q")
QUICK = ("--data", "digits", "--quick", "--steps", "2", "--target", "ink", "--method", "erm", "--method", "ndcl")
VERBS = {
    "train": Verb(TRAIN, lambda: trained("run"), ("train", "--resume", "run", "--device", "cpu", "-q")),
    "fit": Verb(("fit", "sites", *FIT, "--out", "new"), lambda: weights("new/final/model.safetensors")),
    "embed": Verb(("embed", "sites", *EMBED, "--out", "v.npz"), embedded),
    "adapt": Verb(
        ("adapt", "fit", "labels.csv", "--out", "adapted", "--device", "cpu", "-q"),
        lambda: weights("adapted/model.safetensors"),
    ),
    "reproduce": Verb(
        ("reproduce", "totalheavytail", *QUICK, "--out", "paper", "--workers", "1", "-q"),
        lambda: {file.name: file.read_text() for file in sorted(Path("paper").glob("*.csv"))},
    ),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the verbs work on: images of two sites, a fit of them, labels and weights."""
    root = tmp_path_factory.mktemp("stage")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        tiny_sites(root / "sites", each=6)
        torch.manual_seed(0)
        save_file(make_backbone("small_conv").module.state_dict(), root / "w.safetensors")
        assert outcome("fit", "sites", *FIT, "--out", "fit") is None
        lines = [f"{path},{path.parts[-2]}" for path in sorted(Path("sites").rglob("*.png"))]
        Path("labels.csv").write_text("\n".join(["path,label", *lines]))
    return root


@pytest.fixture
def here(stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the stage as the current folder, with a cache of its own."""
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(shutil.copytree(stage, tmp_path / "here"))
    return tmp_path / "here"


@pytest.fixture(scope="module")
def expected(stage: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """What a command makes when nothing happens."""

    @functools.cache
    def calm(name: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(shutil.copytree(stage, tmp_path_factory.mktemp("calm") / "here"))
            assert outcome(*VERBS[name].words) is None
            return VERBS[name].made()

    return calm


@pytest.mark.parametrize(
    ("name", "file", "number"),
    [
        ("train", "resume.pt", 3),
        ("train", "result.json", 1),
        ("fit", "plan.json", 1),
        ("fit", "result.json", 2),
        ("embed", "v.npz", 1),
        ("adapt", "model.json", 1),
        ("reproduce", "result.json", 2),
    ],
)
def test_a_killed_command_can_be_repeated(
    name: str, file: str, number: int, here: Path, expected: Callable[[str], Any]
) -> None:
    verb = VERBS[name]
    process = Command(*verb.words, around=functools.partial(killed_at_write, file, number))
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    for path in here.rglob("*.json"):
        json.loads(path.read_text())  # whole, or not there
    finished = {path: path.read_bytes() for path in here.rglob("result.json")}
    assert len(finished) == (number - 1 if file == "result.json" else 0) + len(list(here.glob("fit/**/result.json")))
    assert outcome(*(verb.again or verb.words)) is None
    assert verb.made() == expected(name)
    assert all(path.read_bytes() == raw for path, raw in finished.items())
    assert not list(here.rglob("resume.pt"))


@pytest.mark.parametrize(
    ("name", "file", "number"), [("train", "resume.pt", 3), ("fit", "result.json", 2), ("embed", "v.npz", 1)]
)
def test_a_full_disk_loses_nothing(
    name: str, file: str, number: int, here: Path, expected: Callable[[str], Any]
) -> None:
    verb = VERBS[name]
    with full_disk_at_write(file, number):
        error = outcome(*verb.words)
    assert "full" in str(error)
    assert not leftovers(here)
    for path in here.rglob("*.json"):
        json.loads(path.read_text())
    assert outcome(*(verb.again or verb.words)) is None
    assert verb.made() == expected(name)


@pytest.mark.parametrize("name", ["train", "fit", "embed"])
def test_two_at_once_do_not_mix(name: str, here: Path, expected: Callable[[str], Any]) -> None:
    """Each succeeds, or is refused with exit code 1."""
    pair = [Command(*VERBS[name].words) for _ in range(2)]
    said = [process.communicate()[1] for process in pair]
    assert {process.returncode for process in pair} in ({0}, {0, 1}), said
    assert not any("Traceback" in text for text in said), said
    assert VERBS[name].made() == expected(name)
    assert not leftovers(here)
