"""The folders of tests mirror those of the source."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "longshift"
WITHOUT_SOURCE = {
    "benchmarks",  # scripts that measure
    "docs",  # what the pages in docs/ promise
    "tools",  # scripts of the Makefile
    "results",  # scripts that make published tables
    "faults",  # kills, damaged files and full disks, across packages
}
MODULES = sorted(TESTS.rglob("test_*.py"))


def test_folders_of_tests_are_packages_of_the_source() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    folders = {path.relative_to(TESTS).parts[0] for path in MODULES if path.parent != TESTS}
    assert folders - WITHOUT_SOURCE <= packages


def test_every_folder_of_tests_is_a_package() -> None:
    # Without __init__.py, two test modules of the same name in different folders shadow each other.
    assert {path.parent for path in MODULES} == {path.parent for path in TESTS.rglob("__init__.py")}
