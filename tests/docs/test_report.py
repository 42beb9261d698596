"""docs/report.md: its flags exist and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from longshift.cli.main import app
from longshift.report import sections

DOC = Path(__file__).parents[2] / "docs" / "report.md"


def test_flags_exist() -> None:
    commands = vars(typer.main.get_command(app))["commands"]
    known = {name for param in commands["report"].params for name in param.opts}
    text = DOC.read_text(encoding="utf-8")
    lines = re.findall(r"^ +longshift report .*$", text, re.MULTILINE)
    used = {flag for line in lines for flag in re.findall(r"--[a-z]+", line)}
    assert len(lines) == 4
    assert used | {"--selection", "--json", "--data", "--ranked"} <= known
    for name in ("table_section", "weak_section", "rank_section", "theory_section", "length_section"):
        assert name in text
        assert callable(getattr(sections, name))


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, str(DOC), "exec"), {})
    assert "NDCL still improves." in (tmp_path / "mine.html").read_text(encoding="utf-8")
