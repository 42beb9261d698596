"""A result that cannot be read is an error of longshift, whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from longshift.errors import LongshiftError
from longshift.io import write_sealed
from longshift.results.run_schema import BadResult
from longshift.results.run_summary import read_summary
from longshift.training.run_folder import RUN_SCHEMA, RunFolder, read_result


@pytest.mark.parametrize(("confusion", "kind"), [([[0]], "ZeroDivisionError"), ([[10**400]], "OverflowError")])
def test_numbers_that_cannot_be_computed_with(tmp_path: Path, confusion: list[list[int]], kind: str) -> None:
    part: dict[str, Any] = {"confusion": confusion, "per_domain": {}, "per_class": {"a": None}, "n": 1, "accuracy": 0.5}
    value = {
        "schema": RUN_SCHEMA, "status": "done", "fingerprint": "f", "split": {"shots": ["many"]},
        "last": {"test": part}, "selected": {"test": part},
    }  # fmt: skip
    write_sealed(RunFolder(tmp_path).result, value)
    with pytest.raises(LongshiftError, match=f"is damaged: {kind}"):
        read_result(RunFolder(tmp_path))
    with pytest.raises(BadResult):
        read_summary(tmp_path, "f")
