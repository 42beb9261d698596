"""Folders of strangers with Python files in them and named in them: no verb runs a line of those files.

Every kind of folder that people hand over is filled with a file that leaves a trace, and its own files name that file
in every way in which a name could be taken for code. Then every verb is called on it.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longshift.cli.main import VERBS, app
from longshift.errors import LongshiftError
from longshift.files import sealed
from longshift.plugins import VARIABLE, use_plugin
from tests.faults.tools import tiny_sites
from tests.registries import restore_registries
from tests.sweep.small import write_sweep

# Also under names that Python or its tools import by themselves when they find them.
NAMES = ("evil.py", "conftest.py", "sitecustomize.py", "usercustomize.py", "__init__.py", "torch.py", "longshift.py")
pytestmark = pytest.mark.slow
SPELLINGS = ("evil.py:Method", "evil:Method", "evil.py", "evil", "./evil.py:Method")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that appears when a stranger's code runs."""
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "trace"


def with_code(folder: Path, trace: Path) -> Path:
    """The folder with files that leave the trace, at every level."""
    text = f"open({str(trace)!r}, 'w').close()\nclass Method: pass\n"
    for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        for name in NAMES:
            (place / name).write_text(text)
    return folder


def replaced(value: Any, old: str, new: str) -> Any:
    """The JSON value with one text for another, wherever it stands."""
    if isinstance(value, dict):
        return {key: replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    return new if value == old else value


def rename_method(folder: Path, spelling: str) -> None:
    """Let every JSON file of a folder say that its method is the file; checksums are made to fit."""
    for file in folder.rglob("*.json"):
        value = replaced(json.loads(file.read_text()), "erm", spelling)
        if isinstance(value, dict) and "checksum" in value:
            value = sealed({**value, "predictor": "method"} if file.name == "model.json" else value)
        file.write_text(json.dumps(value))


def call(*arguments: str | Path) -> None:
    """Run a verb; it may refuse in words, and nothing else."""
    found = CliRunner().invoke(app, list(map(str, arguments)))
    known = found.exception is None or isinstance(found.exception, (LongshiftError, SystemExit))
    assert known, (arguments, repr(found.exception))


def test_a_dataset(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = with_code(tiny_sites(tmp_path / "sites"), trace)
    archive = tmp_path / "sites.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for path in data.rglob("*"):
            out.write(path, path.relative_to(data).as_posix())
    (data / "table.csv").write_text("path,label,domain\nnorth/red/0.png,evil.py:Method,a\nnorth/blue/0.png,x,b\n")
    monkeypatch.chdir(data)
    for given in (data, archive, data / "table.csv", data / "evil.py", "evil.py:Method"):
        for words in (("data", "inspect"), ("data", "verify"), ("data", "prepare", "--size", "8"), ("split", "show")):
            call(*words, given)
        call("train", "--data", given, "--target", "north", "--setting", "Natural", "--steps", "1", "--method", "erm")
        call("train", "--data", given, "--target", "north", "--setting", data / "evil.py", "--method", "evil.py:Method")
        call("embed", given, "--weights", "evil.py", "--out", tmp_path / "v.npz")
        call("fit", given, "--steps", "1", "--method", "erm", "--backbone", "evil.py", "--out", tmp_path / "f")
    assert not trace.exists()


def test_a_run_and_a_model(digits_run: Path, tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, spelling in enumerate(SPELLINGS):
        run = with_code(shutil.copytree(digits_run, tmp_path / "runs" / str(number)), trace)
        rename_method(run, spelling)
        monkeypatch.chdir(run)
        call("evaluate", run, "--device", "cpu")
        call("export", run, "--format", "torch", "--out", tmp_path / "m.pt2")
        call("predict", run, run)
        call("report", run.parent)
        (run / "result.json").unlink()
        call("train", "--resume", run)
    assert not trace.exists()


def test_a_sweep_and_results(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[Callable[[str], dict[str, Any]]] = [
        lambda name: {"methods": [name]},
        lambda name: {"settings": [name]},
        lambda name: {"datasets": [{"path": name}]},
        lambda name: {"run": {"backbone": name, "augment": name}},
    ]
    for number, change in enumerate(changes):
        folder = tmp_path / f"sweep{number}"
        for spelling in SPELLINGS[:3]:
            with_code(write_sweep(folder, **change(spelling)), trace)
            (folder / "runs.csv").write_text("method,evil.py:Method\n")
            monkeypatch.chdir(folder)
            for verb in ("plan", "status", "retry", "cancel", "best", "collect", "run"):
                call("sweep", verb, folder)
            call("report", folder)
    assert not trace.exists()


def test_a_fit(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = tiny_sites(tmp_path / "sites"), tmp_path / "fit"
    flags = ("--method", "erm", "--steps", "2", "--set", "batch_size=2", "--device", "cpu", "--out", out)
    call("fit", data, *flags)
    assert (out / "final" / "model.json").exists()
    with_code(out, trace)
    rename_method(out, "evil.py:Method")
    monkeypatch.chdir(out)
    call("fit", data, *flags)
    call("fit", data, "--method", "evil.py:Method", "--out", out)
    labels = tmp_path / "labels.csv"
    lines = [f"{path},{path.parent.name}" for path in sorted(data.rglob("*.png"))]
    labels.write_text("\n".join(["path,label", *lines]))
    for words in (
        ("predict", out, data, "--page", tmp_path / "p.html"), ("evaluate", out), ("evaluate", out, data),
        ("export", out), ("report", out / "sites"), ("suggest", out, data, "--out", tmp_path / "ask.csv"),
        ("adapt", out, labels, "--out", tmp_path / "adapted"),
    ):  # fmt: skip
        call(*words)
    assert not trace.exists()


def test_the_other_verbs(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(with_code(folder, trace))
    call("methods", "evil.py:Method")
    call("methods")
    quick = ("--quick", "--steps", "1", "--target", "ink", "--method", "erm")
    call("reproduce", "--list", "--no-measure", *quick)
    call("reproduce", "evil.py:Method")
    call("reproduce", "ratios", "--data", "evil.py", "--quick")
    call("reproduce", "ratios", *quick, "--out", folder)
    call("demo", "--data", "evil.py")
    with_code(write_sweep(folder, methods=["evil.py:Method"]), trace)
    call("demo", "--data", "digits", "--out", folder)  # another sweep is there: refused
    assert not trace.exists()
    tried = {"data", "split", "train", "embed", "fit", "evaluate", "export", "predict", "report", "sweep", "methods"}
    assert set(VERBS) == tried | {"reproduce", "demo", "suggest", "adapt"}, "call the new verb above, too"


def test_a_file_that_the_user_names_does_run(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would prove nothing."""
    folder = tmp_path / "mine"
    folder.mkdir()
    with_code(folder, trace)
    restore_registries(monkeypatch)
    use_plugin(folder / "evil.py")
    assert trace.exists()
