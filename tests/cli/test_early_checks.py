"""Mistakes are reported before the work: places that cannot be written to, and wrong names before PyTorch is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.main_calls import Run
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
def test_a_place_that_cannot_be_written_to_is_named(
    words: tuple[str, ...], tmp_path: Path, digits_run: Path, run: Run
) -> None:
    (tmp_path / "file").write_text("")
    write_sweep(tmp_path / "sweep", draws=1)
    places = {"file": tmp_path / "file", "sweep": tmp_path / "sweep", "run": digits_run}
    code, _, err = run(*(word.format(**places) for word in words))
    assert code in (1, 2)
    assert str(tmp_path / "file" / "x") in err
    assert not list(tmp_path.glob("sweep/jobs/*"))


def test_a_page_that_is_a_folder_is_refused_before_the_demo_runs(tmp_path: Path, run: Run) -> None:
    (tmp_path / "demo" / "index.html").mkdir(parents=True)
    code, _, err = run("demo", "--data", "digits", "--out", tmp_path / "demo")
    assert code == 1
    assert "index.html" in err
    assert not (tmp_path / "demo" / "sweep.toml").exists()
