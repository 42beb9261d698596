"""The table that `longshift train` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from longshift.cli import common
from longshift.cli.train import show_result


def scores(step: int) -> dict[str, Any]:
    keys = ("accuracy", "many", "medium", "few", "worst_domain")
    return {"step": step, "validation": dict.fromkeys(keys, 0.5), "target": dict.fromkeys(keys, 0.25)}


@pytest.mark.parametrize(
    ("last", "averaged", "rows"),
    [
        (300, None, ["selected (step 300)"]),
        (300, 300, ["selected (step 300)", "averaged (step 300)"]),
        (400, 300, ["selected (step 300)", "averaged (step 300)", "last (step 400)"]),
    ],
)
def test_selected_and_last_weights_of_one_step_are_one_row(
    last: int, averaged: int | None, rows: list[str], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    result = {
        "status": "done", "selected": scores(300), "averaged": scores(averaged) if averaged else None,
        "last": scores(last), "seconds": {"per_step": 0.0123, "total": 75.0},
    }  # fmt: skip
    monkeypatch.setattr(common.console, "_width", 120)
    show_result(Path("run"), result)
    shown = capsys.readouterr().out
    found = [line.split("\u2502")[1].strip() for line in shown.splitlines() if "(step" in line]
    assert found == [name for name in rows for _ in ("validation", "target")]
    assert ("The selected weights are those of the last step." in shown) == (last == 300)
    assert "12.3 ms per step, 1.2 minutes in total" in shown
