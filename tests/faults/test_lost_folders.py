"""Folders that may not be written to, and folders that vanish before or while a command uses them."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest
from safetensors.torch import save_file

from longshift.nn import make_backbone
from tests.commands import Command, wait_for
from tests.faults.tools import FIT, LONG, need_own_mounts, outcome, read_only, tiny_sites
from tests.sweep.small import write_sweep

pytestmark = pytest.mark.slow
TRAIN = (
    "--setting", "Natural", "--shrink", "--validation", "1", "--target", "south", "--method", "erm", "--steps", "3",
    "--set", "batch_size=2", "--device", "cpu", "-q",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, a fit and a run of them, a finished sweep, and the cache of it all."""
    root = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("LONGSHIFT_CACHE", str(root / "cache"))
        tiny_sites(root / "sites")
        save_file(make_backbone("small_conv").module.state_dict(), root / "w.safetensors")
        assert outcome("fit", "sites", *FIT, "--out", "fit") is None
        assert outcome("train", "--data", "sites", *TRAIN, "--out", "run") is None
        write_sweep(root / "sweep", draws=1, targets=["ink"])
        assert outcome("sweep", "run", "sweep", "--workers", "1", "--device", "cpu", "-q") is None
    return root


# Verb -> whether it can do its work where nothing may be written.
READ_ONLY: dict[tuple[str, ...], bool] = {
    ("data", "inspect", "sites"): True,
    ("predict", "fit", "sites", "--device", "cpu", "-q"): True,
    ("predict", "fit", "sites", "--device", "cpu", "-q", "--out", "p.csv"): False,
    ("sweep", "collect", "sweep"): False,
    ("train", "--data", "sites", *TRAIN, "--out", "other"): False,
    **(
        {
            ("data", "verify", "sites", "-q"): True,
            ("sweep", "status", "sweep"): True,
            ("report", "sweep"): True,
            ("evaluate", "run", "--device", "cpu", "-q"): True,
            ("sweep", "plan", "sweep", "--no-measure"): True,
            ("split", "make", "sites", "-s", "Natural", "-t", "south", "--shrink", "--validation", "1"): False,
            ("sweep", "best", "sweep"): False,
            ("report", "sweep", "--out", "tables"): False,
            ("suggest", "fit", "sites", "-q"): False,
            ("fit", "sites", *FIT, "--out", "other"): False,
            ("sweep", "init", "new"): False,
            ("data", "prepare", "sites", "--size", "8", "-q"): False,
            ("export", "fit", "--format", "torch"): False,
            ("demo", "--data", "digits", "--trials", "1", "--steps", "1", "-q"): False,
            ("reproduce", "ratios", "-q"): False,
            ("sweep", "cancel", "sweep"): False,
            ("split", "plot", "digits", "-s", "Duality", "-t", "ink"): False,
            ("embed", "sites", "--backbone", "small_conv", "--weights", "w.safetensors", "--out", "v.npz"): False,
        }
        if LONG
        else {}
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", READ_ONLY, ids=" ".join)
def test_a_read_only_folder(place: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is on a disk that is mounted read-only; rights of files would not stop an administrator."""
    need_own_mounts()
    monkeypatch.setenv("LONGSHIFT_CACHE", str(place / "cache"))
    process = Command(*words, cwd=place, around=functools.partial(read_only, place))
    _, text = process.communicate()
    assert "Traceback" not in text, text[-2000:]
    if READ_ONLY[words]:
        assert process.returncode == 0, text
    else:
        assert process.returncode == 1, text
        assert "cannot write" in text
        assert "read-only" in text


# What vanishes before the command, and what the command then says; None: it needs it not.
VANISHED: dict[tuple[str, tuple[str, ...]], str | None] = {
    ("sites", ("data", "inspect", "sites")): "sites",
    ("sites", ("evaluate", "run", "--device", "cpu", "-q")): "sites",
    ("cache", ("evaluate", "run", "--device", "cpu", "-q")): None,
    ("fit/final", ("predict", "fit", "sites", "-q")): "holds no model",
    ("run/config.json", ("train", "--resume", "run")): "config.json",
    ("sweep/sweep.toml", ("sweep", "status", "sweep")): "sweep.toml",
    ("sweep/jobs", ("sweep", "collect", "sweep")): "got none",
    **(
        {
            ("sites", ("fit", "sites", *FIT, "--out", "fit")): "sites",
            ("sites", ("train", "--data", "sites", *TRAIN, "--out", "again")): "sites",
            ("sites", ("predict", "fit", "sites", "-q")): "no file or folder 'sites' in ",
            ("sites", ("export", "fit", "--format", "torch", "--out", "m.pt2")): None,
            ("cache", ("fit", "sites", *FIT, "--out", "fit")): None,
            ("fit/sites", ("predict", "fit", "sites", "-q", "--device", "cpu")): None,
            ("sweep/jobs", ("sweep", "status", "sweep")): None,
            ("sweep/jobs", ("sweep", "best", "sweep")): "got none",
            ("sweep/plan.jsonl", ("report", "sweep")): None,
            ("sweep", ("report", "sweep")): "sweep",
        }
        if LONG
        else {}
    ),
}


@pytest.mark.parametrize(
    ("gone", "words"), VANISHED, ids=lambda part: part if isinstance(part, str) else " ".join(part)[:30]
)
def test_a_vanished_folder(
    place: Path, gone: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path(shutil.copytree(place, tmp_path / "here"))
    monkeypatch.setenv("LONGSHIFT_CACHE", str(here / "cache"))
    monkeypatch.chdir(here)
    if (here / gone).is_dir():
        shutil.rmtree(here / gone)
    else:
        (here / gone).unlink()
    error, expected = outcome(*words), VANISHED[gone, words]
    if expected is None:
        assert error is None, error
    else:
        assert expected in str(error)


@pytest.mark.parametrize("verb", ["train", "fit"] if LONG else ["train"])
def test_a_folder_that_vanishes_during_the_work(place: Path, verb: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if verb == "train":
        digits = ("--data", "digits", "--target", "ink", "--method", "erm", "--set", "batch_size=4", "--device", "cpu")
        process = Command("train", *digits, "--steps", "100000", "--checkpoint-every", "3", "--out", out)
    else:
        words = [*FIT]
        words[words.index("--steps") + 1] = "100000"
        process = Command("fit", place / "sites", *words, "--out", out)
    wait_for(lambda: any(out.rglob("environment.json")) or process.poll() is not None)
    shutil.rmtree(out, ignore_errors=True)
    while process.poll() is None and not _ended(process, 3):
        process.send_signal(15)
    _, said = process.communicate()
    assert process.returncode in (1, 130), said
    assert "Traceback" not in said, said


def _ended(process: Command, seconds: float) -> bool:
    try:
        wait_for(lambda: process.poll() is not None, seconds)
    except AssertionError:
        return False
    return True
