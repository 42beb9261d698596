"""Fixtures of the tests of the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from longshift.cli.main import main
from tests.cli.main_calls import Result, Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`run("data", "inspect", ...)` gives exit code, standard output and standard error."""
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["longshift", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return stopped.value.code, captured.out, captured.err

    return call
