"""Files of strangers: no verb runs their code, unpickles them or follows a path out of the folder; names are only text.

Every kind of folder that people hand over is filled with a file that leaves a trace, and its own files name that file
in every way in which a name could be taken for code. Then every verb is called on it.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import longshift
from longshift.cli.main import VERBS, app
from longshift.data import load_dataset, verify
from longshift.errors import LongshiftError
from longshift.registry import VARIABLE, use_plugin
from tests.faults.tools import FIT, outcome, tiny_sites
from tests.registries import restore_registries
from tests.sweep.small import write_sweep

# Also under names that Python or its tools import by themselves when they find them.
NAMES = ("evil.py", "conftest.py", "sitecustomize.py", "usercustomize.py", "__init__.py", "torch.py", "longshift.py")
pytestmark = pytest.mark.slow
SPELLINGS = ("evil.py:Method", "evil.py", "evil")


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
    """Let every JSON file of a folder say that its method is the file."""
    for file in folder.rglob("*.json"):
        file.write_text(json.dumps(replaced(json.loads(file.read_text()), "erm", spelling)))


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
        for words in (("data", "inspect"), ("data", "verify"), ("split", "show")):
            call(*words, given)
        call("train", "--data", given, "--target", "north", "--setting", "Natural", "--steps", "1", "--method", "erm")
        call("train", "--data", given, "--target", "north", "--setting", data / "evil.py", "--method", "evil.py:Method")
        call("embed", given, "--weights", "evil.py", "--out", tmp_path / "v.npz")
        call("fit", given, "--steps", "1", "--method", "erm", "--network", "evil.py", "--out", tmp_path / "f")
    assert not trace.exists()


def test_a_run_and_a_model(digits_run: Path, tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, spelling in enumerate(SPELLINGS[::2]):
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
        for spelling in SPELLINGS:
            with_code(write_sweep(folder, **change(spelling)), trace)
            (folder / "runs.parquet").write_text("method,evil.py:Method\n")
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
    call("reproduce", "--list", *quick)
    call("reproduce", "evil.py:Method")
    call("reproduce", "ratios", "--data", "evil.py", "--quick")
    call("reproduce", "ratios", *quick, "--out", folder)
    call("demo", "--data", "evil.py")
    with_code(write_sweep(folder, methods=["evil.py:Method"]), trace)
    call("demo", "--data", "digits", "--out", folder)  # another sweep is there: refused
    assert not trace.exists()
    tried = {"data", "split", "train", "embed", "fit", "evaluate", "export", "predict", "report", "sweep", "methods"}
    assert set(VERBS) == tried | {"reproduce", "demo", "suggest", "adapt"}, "call the new verb above, too"


def test_a_picture_starts_no_program(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow gives EPS files, whatever they are called, to Ghostscript."""
    data, program = tiny_sites(tmp_path / "sites"), tmp_path / "bin" / "gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # it is looked for once
    text = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n"
    (data / "north" / "red" / "9.png").write_bytes(text)
    found = {problem.path: problem.kind for problem in verify(load_dataset(data))}
    assert found["north/red/9.png"] == "not an image"
    call("predict", data, data / "north" / "red")
    assert not trace.exists()
    with contextlib.suppress(OSError):
        Image.open(io.BytesIO(text)).load()  # what would have happened
    assert trace.exists()


# As an installed command, which has no current folder in its path; the worker itself only prints.
START = """
from types import SimpleNamespace
from longshift.sweep import local
if __name__ == "__main__":
    local.work = print
    team = local.LocalWorkers(SimpleNamespace(store="here"), None, None)
    team.start(local.Slot("cpu", 1))
    team.workers[0].process.join()
"""


def test_workers_import_nothing_from_the_current_folder(tmp_path: Path, trace: Path) -> None:
    """A worker is a new Python, and `python -c` looks for modules in the current folder first."""
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 cannot be told not to")
    folder = tmp_path / "sweep"
    folder.mkdir()
    for name in ("multiprocessing.py", "pickle.py", "socket.py", "torch.py"):
        (folder / name).write_text(f"open({str(trace)!r}, 'w').close()\n")
    command = tmp_path / "longshift_command.py"
    command.write_text(START)
    done = subprocess.run([sys.executable, command], cwd=folder, capture_output=True, text=True, check=True)
    assert "here" in done.stdout
    assert not trace.exists()


def test_a_file_that_the_user_names_does_run(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would prove nothing."""
    folder = tmp_path / "mine"
    folder.mkdir()
    with_code(folder, trace)
    restore_registries(monkeypatch)
    use_plugin(folder / "evil.py")
    assert trace.exists()


class Bomb:
    """Unpickled, it would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_does_not_run(tmp_path: Path, trace: Path, digits_run: Path) -> None:
    bomb, run = Bomb(trace), Path(shutil.copytree(digits_run, tmp_path / "run"))
    torch.save({"best": bomb}, tmp_path / "resume.pt")
    array = np.array([bomb], dtype=object)
    np.savez(tmp_path / "v.npz", x=np.eye(2), label=array, domain=array)
    assert "v.npz" in str(outcome("data", "inspect", tmp_path / "v.npz"))
    for name in ("model.safetensors", "predictions.npz"):
        (run / name).write_bytes(pickle.dumps(bomb))
    assert "model.safetensors" in str(outcome("evaluate", run, "--device", "cpu", "-q"))
    (run / "result.json").unlink()
    for raw in (pickle.dumps(bomb), (tmp_path / "resume.pt").read_bytes()):
        (run / "resume.pt").write_bytes(raw)
        assert "resume.pt" in str(outcome("train", "--resume", run, "--device", "cpu", "-q"))
    assert not trace.exists()
    pickle.loads(pickle.dumps(bomb))
    assert trace.exists()  # the bomb is a real one


NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "$(touch x)\"; touch y; '`touch z`",
    "[b](javascript:c)|*d*",
)


class Page(HTMLParser):
    """The tags, attributes and links of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]


def test_names_in_pages_are_only_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes called like markup, scripts and shell commands."""
    monkeypatch.chdir(tmp_path)
    tiny_sites(tmp_path / "sites", tuple(f"class{k}" for k in range(len(NASTY))))
    with (tmp_path / "sites" / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "domain"])
        for path in sorted((tmp_path / "sites").rglob("*.png")):
            site, label, name = path.parts[-3:]
            writer.writerow([f"{site}/{label}/{name}", NASTY[int(label[-1])], site])
    assert outcome("fit", "sites/t.csv", *FIT, "--compare", "--out", "fit") is None
    assert outcome("predict", "fit", "sites", "--page", "page.html", "-q") is None
    for page in (Page(tmp_path / "fit" / "report.html"), Page(tmp_path / "page.html")):
        assert ("img", ("src", "onerror")) not in page.tags
        assert not any(name.startswith("on") for _, names in page.tags for name in names)
        assert not any(link.startswith("javascript:") for link in page.links)
    for page_file in ("fit/report.html", "page.html", "fit/MODEL_CARD.md"):
        assert "<script>alert" not in (tmp_path / page_file).read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"sites", "fit", "page.html"}  # no x, y, z


def test_no_shell_and_no_pickle_anywhere_in_the_source() -> None:
    forbidden = re.compile(
        r"shell\s*=\s*True|os\.(system|popen)\b|getoutput|\bpickle\.loads?\b|weights_only\s*=\s*False|"
        r"allow_pickle\s*=\s*True|(?<![.`\w])(eval|exec)\(|yaml\.load\b"
    )
    texts = {path: path.read_text(encoding="utf-8") for path in Path(longshift.__file__).parent.rglob("*.py")}
    assert [f"{path}: {match[0]}" for path, text in texts.items() for match in forbidden.finditer(text)] == []
