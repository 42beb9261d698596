"""The table that `longshift train` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from longshift.cli import common
from longshift.cli.train import show_result
from tests.golden import check_golden


def scores(step: int) -> dict[str, Any]:
    keys = ("accuracy", "many", "medium", "few", "worst_domain")
    return {"step": step, "validation": dict.fromkeys(keys, 0.5), "target": dict.fromkeys(keys, 0.25)}


def test_what_a_run_ends_with(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common.console, "_width", 120)
    seconds = {"per_step": 0.0123, "total": 75.0}
    found = {"selected": scores(200), "averaged": scores(300), "last": scores(300), "seconds": seconds}
    show_result(Path("run"), {"status": "done", **found})
    check_golden("train.txt", capsys.readouterr().out)
