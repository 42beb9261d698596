"""Places that cannot be written to are refused before the work, and reading many files shows progress."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import longshift
from longshift.cli.main import app
from longshift.inference import loading
from longshift.sweep import collecting, run_job
from tests.faults.tools import outcome, tiny_sites
from tests.sweep.small import write_sweep


@pytest.mark.parametrize(
    "words",
    [
        ("demo", "--data", "digits", "--out", "{file}/x"),
        ("reproduce", "totalheavytail", "--quick", "--out", "{file}/x"),
        ("sweep", "best", "{sweep}", "--out", "{file}/x"),
        ("suggest", "{run}", "{run}", "--out", "{file}/x.csv"),
        ("adapt", "{run}", "{run}", "--out", "{file}/x"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(
    words: tuple[str, ...], tmp_path: Path, digits_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*arguments: object, **options: object) -> None:
        raise AssertionError("the work began")

    # Wherever they are known by name. A module that is first imported meanwhile would keep `work` for later tests.
    for found in pkgutil.walk_packages(longshift.__path__, "longshift."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    for real in (run_job.execute, collecting.collect_plan, loading.load_model):
        for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == "longshift"]:
            if getattr(module, real.__name__, None) is real:  # packages look their names up when first asked
                monkeypatch.setattr(module, real.__name__, work)
    (tmp_path / "file").write_text("")
    write_sweep(tmp_path / "sweep", draws=1)
    places = {"file": tmp_path / "file", "sweep": tmp_path / "sweep", "run": digits_run}
    error = outcome(*(word.format(**places) for word in words))
    assert f"cannot write {tmp_path / 'file' / 'x'}" in str(error)


def test_a_page_that_is_a_folder_is_refused_before_the_demo_runs(tmp_path: Path) -> None:
    (tmp_path / "demo" / "index.html").mkdir(parents=True)
    assert "it is a folder" in str(outcome("demo", "--data", "digits", "--out", str(tmp_path / "demo")))
    assert not (tmp_path / "demo" / "sweep.toml").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("data", "prepare", "{data}", "--size", "8"),
        ("reproduce", "totalheavytail", "--data", "{data}", "--dry-run", "--quick", "--method", "erm"),
    ],
)
def test_reading_many_files_shows_progress(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("longshift.data.content_version.MANY", 1)
    data = tiny_sites(tmp_path / "sites", each=8)
    for label in ("red", "blue"):  # the recipes need three domains
        (data / "west" / label).mkdir(parents=True)
        for path in (data / "north" / label).iterdir():
            (data / "west" / label / path.name).write_bytes(path.read_bytes())
    found = CliRunner().invoke(app, [word.format(data=data) for word in words])
    assert "hashing sites" in found.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--target", "inkk"), "--target: unknown site of digits 'inkk'; did you mean ink?"),
        (("--set", "alpa=1"), "--set: unknown hyper-parameter 'alpa'; did you mean alpha"),
        (("--method", "ndcll"), "unknown method 'ndcll'; did you mean ndcl"),
    ],
)
def test_wrong_names_of_a_fit_are_reported_before_pytorch_is_imported(words: tuple[str, ...], error: str) -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom longshift.cli.main import app\n"
        f"found = CliRunner().invoke(app, ['fit', 'digits', *{words!r}])\n"
        "print(found.exception)\nassert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert error in done.stdout
