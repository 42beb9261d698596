"""Version and oldest allowed versions of dependencies."""

from __future__ import annotations

import re
from pathlib import Path

import longshift
from longshift.io import read_toml

ROOT = Path(__file__).parents[1]


def test_the_version_has_one_place() -> None:
    project = read_toml(ROOT / "pyproject.toml")
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "longshift.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", longshift.__version__)
    assert "\nversion:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_oldest_versions_are_those_that_the_project_allows() -> None:
    lines = (ROOT / "tools" / "oldest-versions.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    needed = [name for name in read_toml(ROOT / "pyproject.toml")["project"]["dependencies"] if ";" not in name]
    allowed = dict(name.split(">=") for name in needed)
    assert pinned.keys() == allowed.keys()
    for name, version in pinned.items():
        assert f"{version}.".startswith(f"{allowed[name]}."), name
