"""A command does not write over its own input."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from longshift.errors import LongshiftError
from longshift.io import refuse_overwrite
from tests.cli.main_calls import Run


def test_inputs_and_files_of_ours_in_input_folders_are_refused(tmp_path: Path) -> None:
    for name in ("a.npz", "sweep.toml", "runs.parquet", "page.html"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link.npz").hardlink_to(tmp_path / "a.npz")
    for out, given in (("link.npz", "a.npz"), ("sweep.toml", "."), ("runs.parquet", ".")):
        with pytest.raises(LongshiftError, match=out):
            refuse_overwrite(tmp_path / out, [tmp_path / given])
    for out, given in (("page.html", "."), ("sweep.toml", "page.html"), ("new.toml", "."), ("a.npz", "absent")):
        refuse_overwrite(tmp_path / out, [tmp_path / given])


def test_no_verb_destroys_its_input(run: Run, tmp_path: Path, digits_run: Path) -> None:
    shutil.copytree(digits_run, tmp_path / "model")
    table, sweep, counts = tmp_path / "x.parquet", tmp_path / "sweep.toml", tmp_path / "counts.json"
    picture, config = tmp_path / "image.html", tmp_path / "model" / "config.json"
    for file in (table, sweep, counts, picture):
        file.write_text("kept")
    commands = {
        table: ("embed", table, "--out", table, "--pretrained"),
        sweep: ("report", tmp_path, "--html", sweep),
        counts: ("split", "make", "digits", "--setting", counts, "--target", "ink", "--out", counts),
        config: ("predict", tmp_path / "model", picture, "--out", config),
        picture: ("predict", tmp_path / "model", picture, "--page", picture),
    }
    for file, command in commands.items():
        before = file.read_bytes()
        code, _, err = run(*command)
        assert code == 1, err
        assert file.name in err
        assert file.read_bytes() == before
