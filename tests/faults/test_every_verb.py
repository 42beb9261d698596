"""Every verb that writes, killed at a random moment, and twice at once.

After a kill, what was finished stays, and the same command succeeds. Of two at once, each succeeds or refuses in words.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from longshift.files import read_json
from longshift.nn import make_backbone
from longshift.results import drop_machine_columns
from longshift.sweep import collect
from tests.commands import Command
from tests.faults.tools import FIT, LONG, outcome, tiny_sites
from tests.sweep.small import write_sweep

KILLS = 2 if LONG else 1
RUN = (
    "--method", "erm", "--steps", "6", "--eval-every", "3", "--set", "batch_size=4", "--device", "cpu", "-q",
    "--checkpoint-every", "1",
)  # fmt: skip
QUICK = ("--data", "digits", "--quick", "--steps", "2", "--target", "ink", "--method", "erm", "--method", "ndcl")


class Verb(NamedTuple):
    """A command on the files of `stage`, and what it makes, in a form that two runs have in common."""

    words: tuple[str, ...]
    made: Callable[[], Any]
    short: bool = False  # also tried in `make test`


def arrays(file: str) -> dict[str, list[Any]]:
    with np.load(file) as found:
        return {name: found[name].tolist() for name in found.files}


def table(folder: str) -> str:
    return drop_machine_columns(collect(Path(folder))).to_csv()


def texts(*patterns: str) -> dict[str, str]:
    return {str(path): path.read_text() for pattern in patterns for path in sorted(Path().glob(pattern))}


def weights(file: str) -> dict[str, list[Any]]:
    return {name: value.tolist() for name, value in load_file(file).items()}


def trained(folder: str) -> tuple[Any, ...]:
    result = read_json(Path(folder, "result.json"))
    return weights(f"{folder}/model.safetensors"), result["selected"], result["last"]


def exported() -> tuple[int, Any]:
    about = read_json(Path("m.pt2.json"))
    assert torch.export.load("m.pt2") is not None
    return Path("m.pt2").stat().st_size > 0, about["classes"]


def pixels() -> list[bytes]:
    return [file.read_bytes() for file in sorted(Path(os.environ["LONGSHIFT_CACHE"]).glob("v2-*/pixels.npy"))]


def adapted() -> tuple[Any, ...]:
    about = read_json(Path("adapted/model.json"))
    return weights("adapted/model.safetensors"), about["temperature"]


EMBED = ("--backbone", "small_conv", "--weights", "w.safetensors", "--image-size", "16", "--device", "cpu", "-q")
VERBS = {
    "split make": Verb(
        ("split", "make", "digits", "--setting", "Duality", "--target", "ink", "--out", "split.json"),
        lambda: texts("split.json"),
    ),
    "data prepare": Verb(("data", "prepare", "sites", "--size", "24", "-q"), pixels),
    "embed": Verb(("embed", "sites", *EMBED, "--out", "v.npz"), lambda: arrays("v.npz")),
    "train": Verb(("train", "--data", "digits", "--target", "ink", *RUN, "--out", "run"), lambda: trained("run")),
    "predict": Verb(
        ("predict", "fit", "sites", "--device", "cpu", "-q", "--out", "p.csv", "--page", "p.html"),
        lambda: texts("p.csv"), short=True,
    ),
    "export": Verb(("export", "fit", "--format", "torch", "--out", "m.pt2"), exported),
    "suggest": Verb(
        ("suggest", "fit", "sites", "--n", "4", "--out", "ask.csv", "--device", "cpu", "-q"), lambda: texts("ask.csv")
    ),
    "adapt": Verb(("adapt", "fit", "labels.csv", "--out", "adapted", "--device", "cpu", "-q"), adapted, short=True),
    "fit": Verb(
        ("fit", "sites", *FIT, "--out", "new"), lambda: (texts("new/fit.json"), weights("new/final/model.safetensors"))
    ),
    "sweep run, finished jobs present": Verb(
        ("sweep", "run", "begun", "--workers", "1", "--device", "cpu", "-q"), lambda: table("begun")
    ),
    "sweep collect": Verb(
        ("sweep", "collect", "sweep", "--out", "all.csv"), lambda: table("all.csv"), short=True
    ),
    "sweep best": Verb(("sweep", "best", "sweep", "--out", "best"), lambda: texts("best/**/*.toml")),
    "report": Verb(
        ("report", "sweep", "--out", "report", "--html", "report/index.html"), lambda: texts("report/*.csv")
    ),
    "reproduce": Verb(
        ("reproduce", "totalheavytail", *QUICK, "--out", "paper", "--workers", "1", "-q"), lambda: texts("paper/*.csv")
    ),
    "demo": Verb(
        ("demo", "--data", "digits", "--trials", "1", "--steps", "2", "--out", "demo", "-q"), lambda: table("demo")
    ),
}  # fmt: skip
CHOSEN = [name for name, verb in VERBS.items() if LONG or verb.short]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the verbs work on: images of two sites, a fit of them, labels, weights, a finished sweep and a begun one."""
    root = tmp_path_factory.mktemp("stage")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        tiny_sites(root / "sites", each=6)
        torch.manual_seed(0)
        save_file(make_backbone("small_conv").module.state_dict(), root / "w.safetensors")
        assert outcome("fit", "sites", *FIT, "--out", "fit") is None
        lines = [f"{path},{path.parts[-2]}" for path in sorted(Path("sites").rglob("*.png"))]
        Path("labels.csv").write_text("\n".join(["path,label", *lines]))
        write_sweep(root / "sweep")
        assert outcome("sweep", "run", "sweep", "--workers", "1", "--device", "cpu", "-q") is None
        write_sweep(root / "begun", draws=1)
        shutil.copytree(root / "sweep" / "jobs", root / "begun" / "jobs")
        write_sweep(root / "begun", draws=3)
    return root


@pytest.fixture
def here(stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the stage as the current folder, with a cache of its own."""
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(shutil.copytree(stage, tmp_path / "here"))
    return tmp_path / "here"


_calm: dict[str, tuple[float, Any]] = {}


def calm(name: str, here: Path, stage: Path) -> tuple[float, Any]:
    """How long the command takes when nothing happens, and what it makes; the folder is then as before."""
    if name not in _calm:
        began = time.monotonic()
        process = Command(*VERBS[name].words)
        _, said = process.communicate()
        assert process.returncode == 0, said
        _calm[name] = time.monotonic() - began, VERBS[name].made()
        os.chdir(here.parent)
        for folder in (here, here.parent / "cache"):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(stage, here)
        os.chdir(here)
    return _calm[name]


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.parametrize("name", CHOSEN)
def test_a_killed_command_can_be_repeated(name: str, kill: int, here: Path, stage: Path) -> None:
    verb = VERBS[name]
    seconds, expected = calm(name, here, stage)
    moment = seconds * (kill + random.random()) / KILLS  # spread over the whole command
    process = Command(*verb.words)
    deadline = time.monotonic() + moment
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    try:
        os.killpg(process.pid, signal.SIGKILL)  # with its workers
    except ProcessLookupError:  # it has no group yet, or has ended
        process.kill()
    process.communicate()
    for file in stage.rglob("*"):  # what was there before is untouched
        mine = here / file.relative_to(stage)
        if file.is_file() and file.name in ("result.json", "model.safetensors", "model.json", "fit.json"):
            assert mine.read_bytes() == file.read_bytes(), mine
    for path in here.rglob("*.json"):
        json.loads(path.read_text())  # whole, or not there
    if process.returncode == 0:  # it had ended before; some verbs refuse to overwrite
        assert verb.made() == expected
        return
    when = f"killed after {moment:.2f} of {seconds:.2f} s"
    again = Command(*verb.words)
    _, said = again.communicate()
    assert "Traceback" not in said, said
    if again.returncode != 0:
        advised = re.search(r"holds an unfinished run\. Resume it with: longshift (.+)", said)
        if advised:
            resumed = Command(*advised[1].split(), "-q")
            _, more = resumed.communicate()
            assert resumed.returncode == 0, f"{when}: {said}{more}"
        else:  # all was written before the kill
            assert "exists" in said or "holds a finished run" in said, f"{when}: {said}"
    assert verb.made() == expected, when
    assert not list(here.rglob("jobs/*/.*.part"))


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN if LONG else ["sweep collect"])
def test_two_at_once_do_not_disturb_each_other(name: str, here: Path, stage: Path) -> None:
    verb = VERBS[name]
    _, expected = calm(name, here, stage)
    pair = [Command(*verb.words) for _ in range(2)]
    said = [process.communicate(timeout=400)[1] for process in pair]
    codes = [process.returncode for process in pair]
    assert 0 in codes, said
    for code, text in zip(codes, said, strict=True):
        assert "Traceback" not in text, text
        assert code == 0 or "another command is using" in text or "exists" in text or "finished run" in text, text
    assert verb.made() == expected
