"""The Python in docs/settings.md runs as it stands."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_block(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("docs_settings")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    exec(compile(BLOCKS[number], f"docs/settings.md, block {number}", "exec", dont_inherit=True), module.__dict__)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) == 2
