"""Weak classes and domains: one definition, never the best, with calibrated sureness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshift.data.manifest import Manifest
from longshift.metrics import fit_temperature
from longshift.report.records import Record, class_accuracy, read_records, run_folders
from longshift.report.sections.classes import class_section, confusion_section
from longshift.report.sections.runs import run_section
from longshift.report.sections.weak import weak_classes, weak_domains, weak_section
from longshift.report.weakness import weak_indices
from longshift.report.wrong import wrong_samples
from longshift.sweep.collect import collect
from longshift.sweep.selection import choose
from tests.report.folders import write_run

CLASSES = ("cat", "dog", "owl")


def records_in(folder: Path) -> list[Record]:
    return read_records(choose(collect(folder)), run_folders(folder), ["ndcl"])


def made_up(target: str, confusion: list[list[int]], test: bool = False) -> Record:
    """A record with nothing but a confusion matrix; `test`: and the worst of the domains trained on."""
    table = np.array(confusion)
    chosen: dict[str, Any] = {
        "target": {"confusion": confusion, "accuracy": float(np.trace(table) / table.sum())},
        "test": {"worst_domain": 0.5, "worst_domain_name": "elsewhere"} if test else None,
    }
    split = {"classes": list(CLASSES), "counts": [[9, 3, 1], [9, 3, 1]]}
    result = {"selected": chosen, "split": split, "run": {"data": "zoo"}}
    return Record(Path("run"), "ndcl", "zoo", "Natural", target, 0, result, "validation")


def test_every_sample_counts_once() -> None:
    """3 owls of which 1 is right at one site, 9 of which 6 are right at another: 7 of 12, not (1/3 + 2/3) / 2."""
    records = [
        made_up("a", [[9, 1, 0], [0, 0, 0], [2, 0, 1]]),
        made_up("b", [[10, 0, 0], [0, 0, 0], [2, 1, 6]]),
    ]
    assert class_accuracy(records) == [19 / 20, None, 7 / 12]
    (weak,) = weak_classes(records)
    assert (weak.name, weak.accuracy, weak.title) == ("owl", 7 / 12, "Weak class")
    assert (
        weak.text == "7 of 12 samples right; a run trains on 2 on average. Most often taken for cat (33 %), dog (8 %)."
    )


def test_the_bars_show_what_the_weak_points_say(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "ndcl", "sketch", classes=CLASSES)
    write_run(tmp_path / "b", "ndcl", "photo", classes=CLASSES, skill=3.0)
    records = records_in(tmp_path)
    total = np.sum([record.chosen["target"]["confusion"] for record in records], axis=0)
    shares = {name: float(total[k, k] / total[k].sum()) for k, name in enumerate(CLASSES)}
    bars, weak = class_section({"ndcl": records}).body, weak_section(records).body
    for name, share in shares.items():
        assert f"{name}: NDCL {100 * share:.1f} %" in bars
    lowest = min(shares, key=lambda name: shares[name])
    assert f"{lowest} ({100 * shares[lowest]:.1f} %)" in weak
    assert f"class: {max(shares, key=lambda name: shares[name])}" not in weak
    assert "No example images: the runs kept no predictions" in weak


@given(st.lists(st.none() | st.floats(0, 1), max_size=12))
def test_the_best_is_never_weak(values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    weak = weak_indices(values)
    for k in weak:
        value = values[k]
        assert value is not None
        assert value < max(known)
        assert value < 0.5 or value < np.mean(known) - 0.15 + 1e-12
    assert {k for k, v in enumerate(values) if v is not None and v < 0.5 and v < max(known)} <= set(weak)


def test_without_a_weak_class_the_lowest_is_shown_as_such() -> None:
    (only,) = weak_classes([made_up("a", [[9, 1, 0], [0, 10, 0], [0, 0, 10]])])
    assert (only.name, only.title) == ("cat", "Lowest class, not weak")
    assert weak_classes([made_up("a", [[9, 1, 0], [1, 9, 0], [1, 0, 9]])]) == []


def test_the_best_domain_is_not_a_weak_point() -> None:
    bad, good = [[1, 9, 0], [0, 5, 5], [0, 0, 10]], [[9, 1, 0], [0, 9, 1], [0, 0, 10]]
    assert [w.name for w in weak_domains([made_up("a", bad), made_up("b", good)])] == ["a"]
    (alone,) = weak_domains([made_up("b", good, test=True)], "site")
    assert alone.title == "The only unseen site"
    assert alone.text == (
        "Percent of its samples right when the model has not seen it. "
        "Of the sites trained on, elsewhere does worst (50.0 % on held-out samples)."
    )
    twice = weak_domains([made_up("a", bad), made_up("a", bad), made_up("b", good)])
    assert "mean of 2 runs." in twice[0].text


def test_one_run_is_not_one_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "ndcl", "sketch", classes=CLASSES)
    records = records_in(tmp_path)
    sections = (
        class_section({"ndcl": records}),
        confusion_section(records),
        weak_section(records),
        run_section(records, tmp_path / "page.html", 1),
    )
    shown = "".join(section.intro + section.body for section in sections)
    assert "1 run " in shown
    assert "1 runs" not in shown


def test_sureness_is_calibrated_on_the_validation_set(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "ndcl", "sketch", classes=CLASSES, predictions=True)
    (record,) = records_in(tmp_path)
    arrays = record.predictions()
    assert arrays is not None
    temperature = fit_temperature(arrays["validation_logits"], arrays["validation_labels"])
    assert record.temperature(arrays) == temperature != 1
    labels = arrays["target_labels"]
    names = tuple(f"{i}.png" for i in range(len(labels)))
    manifest = Manifest("zoo", None, names, labels, np.zeros_like(labels), CLASSES, ("sketch",))
    found = wrong_samples(record, manifest)
    assert found
    for wrong in found:
        powers = np.exp(arrays["target_logits"][wrong.index] / temperature)
        assert wrong.confidence == pytest.approx(powers.max() / powers.sum())
    assert record.temperature({"target_logits": arrays["target_logits"]}) == 1.0
