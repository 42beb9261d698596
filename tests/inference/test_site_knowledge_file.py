"""What is kept with a model about new sites: written, read again, and refused where it is damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.array_types import FloatArray
from longshift.errors import LongshiftError
from longshift.inference import (
    HeldOutSite,
    SiteKnowledge,
    SureRule,
    read_knowledge,
    read_signals,
    write_knowledge,
)
from longshift.io import read_json, write_json, write_sealed
from tests.inference.site_outputs import known, outputs, reference, signals


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    held = HeldOutSite("a", 0.8, signals(0.3))
    write_knowledge(tmp_path, SiteKnowledge((held,), reference(), SureRule(0.6, 0.92, 0.7)), "w")
    found = read_knowledge(tmp_path, "w", 3)
    assert found is not None
    assert found.held_out == (held,)
    assert found.sure == SureRule(0.6, 0.92, 0.7)
    assert found.reference.threshold == reference().threshold
    again = read_signals(found.reference, *outputs(300, 1.0, 1.0, 5)[::2], 1.0)
    first = read_signals(reference(), *outputs(300, 1.0, 1.0, 5)[::2], 1.0)
    assert again.distances == pytest.approx(first.distances, rel=1e-4)
    assert again.agreement == first.agreement


def test_a_model_of_train_has_no_knowledge(tmp_path: Path) -> None:
    assert read_knowledge(tmp_path, "w", 3) is None


@pytest.mark.parametrize("change", [{"held_out": []}, {"schema": 1}, {"schema": 7}, {"reference": {}}, {"sure": 3}])
def test_damaged_knowledge_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    write_knowledge(tmp_path, known(), "w")
    write_sealed(tmp_path / "new_site.json", {**read_json(tmp_path / "new_site.json"), **change})
    with pytest.raises(LongshiftError, match=r"new_site\.json .* is damaged"):
        read_knowledge(tmp_path, "w", 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": -1}, "expected samples"),
        ({"distances": {}}, "expected a distance to each training site"),
        ({"confidence": 1.5}, "expected shares from 0 to 1"),
        ({"distances": {"a": -1.0}}, "expected finite distances"),
    ],
)
def test_numbers_that_no_fit_writes_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write_knowledge(tmp_path, known(replace(signals(0.3), **change)), "w")
    with pytest.raises(LongshiftError, match=message):
        read_knowledge(tmp_path, "w", 3)


def test_features_of_two_lengths_are_refused(tmp_path: Path) -> None:
    whole = reference()
    write_knowledge(tmp_path, replace(known(), reference=replace(whole, seen=whole.seen[:, :4])), "w")
    with pytest.raises(LongshiftError, match="expected features of one length"):
        read_knowledge(tmp_path, "w", 3)


def _with_prototype(row: int, column: int, value: float) -> FloatArray:
    made = reference().prototypes.copy()
    made[row, column] = value
    return made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prototypes": reference().prototypes[:2]}, "expected a class mean for each of 3 classes"),
        ({"prototypes": np.vstack([reference().prototypes] * 2)}, "expected a class mean for each of 3 classes"),
        ({"prototypes": _with_prototype(1, 2, np.inf)}, "expected finite class means"),
        ({"prototypes": _with_prototype(1, 2, np.nan)}, "expected finite class means"),
        ({"prototypes": np.full_like(reference().prototypes, np.nan)}, "expected finite class means"),
        ({"prototypes": reference().prototypes[0]}, "expected features of one length"),
        ({"seen_labels": reference().seen_labels + 1}, "expected labels of the model's classes"),
    ],
)
def test_class_means_and_labels_that_do_not_fit_the_model_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    write_knowledge(tmp_path, replace(known(), reference=replace(reference(), **change)), "w")
    with pytest.raises(LongshiftError, match=message):
        read_knowledge(tmp_path, "w", 3)


def test_a_class_without_samples_has_no_mean(tmp_path: Path) -> None:
    prototypes = reference().prototypes.copy()
    prototypes[1] = np.nan
    write_knowledge(tmp_path, replace(known(), reference=replace(reference(), prototypes=prototypes)), "w")
    found = read_knowledge(tmp_path, "w", 3)
    assert found is not None
    assert np.isnan(found.reference.prototypes[1]).all()


def test_edited_numbers_other_features_and_another_model_are_noticed(tmp_path: Path) -> None:
    write_knowledge(tmp_path, known(), "w")
    with pytest.raises(LongshiftError, match="got those of another one"):
        read_knowledge(tmp_path, "v", 3)
    numbers = read_json(tmp_path / "new_site.json")
    write_json(tmp_path / "new_site.json", {**numbers, "sure": {"threshold": 0.3, "accuracy": 1.0, "coverage": 1.0}})
    with pytest.raises(LongshiftError, match="was edited"):
        read_knowledge(tmp_path, "w", 3)
    write_json(tmp_path / "new_site.json", numbers)
    assert read_knowledge(tmp_path, "w", 3) is not None
    features = tmp_path / "new_site.safetensors"
    features.write_bytes(features.read_bytes()[:-2] + b"zz")
    with pytest.raises(LongshiftError, match=r"expected the new_site\.safetensors that was written with it"):
        read_knowledge(tmp_path, "w", 3)


def test_a_fit_that_learned_nothing_leaves_no_old_numbers(tmp_path: Path) -> None:
    write_knowledge(tmp_path, known(), "w")
    write_knowledge(tmp_path, None, "w")
    assert list(tmp_path.iterdir()) == []


def test_features_beyond_half_precision_stay_finite(tmp_path: Path) -> None:
    whole = reference()
    write_knowledge(tmp_path, replace(known(), reference=replace(whole, seen=1e5 * whole.seen)), "w")
    found = read_knowledge(tmp_path, "w", 3)
    assert found is not None
    np.testing.assert_allclose(found.reference.seen, 1e5 * whole.seen, rtol=1e-6)
