"""Version, oldest allowed versions of dependencies, changelog, workflows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import longshift
from longshift.io import read_toml

ROOT = Path(__file__).parents[1]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
HEADING = r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d"


def test_the_version_has_one_place() -> None:
    project = read_toml(ROOT / "pyproject.toml")
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "longshift.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", longshift.__version__)
    assert "\nversion:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_changelog_has_versions_and_kinds() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions
    assert all(re.fullmatch(HEADING, version) for version in versions)
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= KINDS
    released = [version for version in versions if version != "[Unreleased]"]
    assert not released or released[0].startswith(f"[{longshift.__version__}]")


def test_the_oldest_versions_are_those_that_the_project_allows() -> None:
    lines = (ROOT / "tools" / "oldest-versions.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    needed = [name for name in read_toml(ROOT / "pyproject.toml")["project"]["dependencies"] if ";" not in name]
    allowed = dict(name.split(">=") for name in needed)
    assert pinned.keys() == allowed.keys()
    for name, version in pinned.items():
        assert f"{version}.".startswith(f"{allowed[name]}."), name


@pytest.mark.parametrize("name", ["test.yml", "docs.yml", "release.yml", "newest.yml"])
def test_workflows_are_there(name: str) -> None:
    text = (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    for target in re.findall(r"run: make ([\w-]+)", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), target
