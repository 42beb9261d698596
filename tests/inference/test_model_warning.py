"""A model's own record of sites it had not seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longshift.errors import LongshiftError
from longshift.inference.model_warning import UnseenAccuracy, keep_unseen, read_unseen
from longshift.io import sealed, write_sealed


@pytest.mark.parametrize(
    ("balanced", "said"),
    [
        (0.20, "right for 20% of samples, averaged over classes, no better than guessing (25%)"),
        (0.25, "right for 25% of samples, averaged over classes, no better than guessing (25%)"),
        (0.30, "right for 30% of samples, averaged over classes, hardly better than guessing (25%)"),
        (0.3125, ""),
        (0.90, ""),
    ],
)
def test_when_not_to_use_a_model_of_four_classes(balanced: float, said: str) -> None:
    warning = UnseenAccuracy(balanced, 3, 4).warning()
    assert warning == (said and f"At sites it had not seen, it was {said}: do not use this model.")
    if said:
        assert UnseenAccuracy(balanced, 1, 4).warning().startswith("At a site it had not seen")


def test_it_is_kept_beside_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    write_sealed(file, {"schema": 1, "classes": ["x", "y"]})
    assert read_unseen(file) is None  # as `longshift train` writes it
    records = {"selected": UnseenAccuracy(0.4, 2, 2), "averaged": UnseenAccuracy(0.9, 2, 2)}
    for _ in range(2):  # a finished fit may be run again
        keep_unseen(file, records)
        assert {name: read_unseen(file, name) for name in records} == records
        assert list(json.loads(file.read_text())) == ["schema", "classes", "unseen_sites", "checksum"]
    keep_unseen(file, {"selected": UnseenAccuracy(0.4, 2, 2)})
    assert read_unseen(file, "averaged") is None


@pytest.mark.parametrize(
    "value",
    [
        3, None, {"selected": 3}, {"selected": None}, {"selected": {}},
        {"selected": {"balanced": "x", "sites": 2, "classes": 2}},
        {"selected": {"balanced": 0.4, "sites": 2, "classes": 0}},
        {"selected": {"balanced": float("nan"), "sites": 2, "classes": 2}},
        {"selected": {"balanced": 0.4, "sites": float("inf"), "classes": 2}},
    ],
)  # fmt: skip
def test_a_damaged_record_is_named(tmp_path: Path, value: Any) -> None:
    file = tmp_path / "model.json"
    file.write_text(json.dumps(sealed({"schema": 1, "unseen_sites": value})))
    with pytest.raises(LongshiftError, match=r"model\.json is damaged: unseen_sites|is not a JSON value"):
        read_unseen(file)


def test_nothing_is_added_to_what_is_no_description(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("[]")
    with pytest.raises(LongshiftError, match="expected an object, got list"):
        keep_unseen(tmp_path / "model.json", {})
