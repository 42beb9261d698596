"""NDCL is checked against the full set of fixtures where it is present, and always against the bundled excerpt."""

from __future__ import annotations

from pathlib import Path

import pytest

BUNDLED = Path(__file__).parents[1] / "fixtures" / "oracles"

each_source = pytest.mark.parametrize("source", [pytest.param("full", marks=pytest.mark.oracle), "bundled"])


def use(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `tests.methods.oracle.load` read the chosen set."""
    if source == "bundled":
        monkeypatch.setenv("LONGSHIFT_ORACLES", str(BUNDLED))
