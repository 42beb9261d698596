"""Tests have a cache of their own, and one that writes into the user's cache fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from longshift.data import cache_folder

LEAK = """
from longshift.data import cache_folder

def test_leak(monkeypatch):
    monkeypatch.delenv("LONGSHIFT_CACHE")
    (cache_folder() / "features").mkdir(parents=True)

def test_next():
    pass
"""


def test_the_cache_of_tests_is_not_the_users(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder().is_relative_to(tmp_path_factory.getbasetemp())
    monkeypatch.delenv("LONGSHIFT_CACHE")
    assert cache_folder().is_relative_to(tmp_path_factory.getbasetemp())


@pytest.mark.slow
def test_a_test_that_writes_into_the_default_cache_fails(tmp_path: Path) -> None:
    (tmp_path / "test_leak.py").write_text(LEAK, encoding="utf-8")
    words = ["-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "base")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--rootdir", tmp_path, tmp_path / "test_leak.py"],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "['features']" in done.stdout
