"""Weak classes and domains: one definition, never the best, with calibrated sureness."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.errors import LongshiftError
from longshift.metrics import fit_temperature
from longshift.report.runs import Record, class_accuracy, read_records, run_folders
from longshift.report.weak import (
    CorrectCount,
    misclassified_samples,
    share_interval,
    weak_classes,
    weak_domains,
    weak_indices,
    weak_section,
)
from longshift.sweep import choose, collect
from tests.golden import check_golden
from tests.report.folders import write_run
from tests.report.page_words import words_of

CLASSES = ("cat", "dog", "owl")


def records_in(folder: Path) -> list[Record]:
    return read_records(choose(collect(folder)), run_folders(folder), ["ndcl"])


def made_up(target: str, confusion: list[list[int]], counts: tuple[int, ...] = (18, 6, 2)) -> Record:
    """A record with nothing but a confusion matrix."""
    table = np.array(confusion)
    chosen: dict[str, Any] = {
        "target": {"confusion": confusion, "accuracy": float(np.trace(table) / table.sum())},
    }
    split = {"classes": list(CLASSES), "counts": [list(counts)]}
    result = {"selected": chosen, "split": split, "run": {"data": "zoo"}}
    return Record(Path("run"), "ndcl", "zoo", "Natural", target, 0, result, "validation")


def owls(**right: int) -> list[Record]:
    """20 owls at each site, of which some are right; cats and dogs are always."""
    return [made_up(name, [[20, 0, 0], [0, 20, 0], [20 - n, 0, n]], counts=(90, 90, 90)) for name, n in right.items()]


def test_every_sample_counts_once() -> None:
    """3 owls of which 1 is right at one site, 9 of which 6 are right at another: 7 of 12, not (1/3 + 2/3) / 2."""
    records = [
        made_up("a", [[9, 1, 0], [0, 0, 0], [2, 0, 1]]),
        made_up("b", [[10, 0, 0], [0, 0, 0], [2, 1, 6]]),
    ]
    assert class_accuracy(records) == [19 / 20, None, 7 / 12]
    (weak,) = weak_classes(records)
    assert (weak.count, weak.weak, weak.unsure) == (CorrectCount("owl", 7, 12), True, True)
    assert weak.interval == share_interval(7 / 12, 12)
    assert weak.parts == (CorrectCount("a", 1, 3), CorrectCount("b", 6, 9))
    assert (weak.trained, weak.usual) == (2, 6)
    assert weak.taken_for == (("cat", 4 / 12), ("dog", 1 / 12))


def test_the_same_samples_in_several_trials_count_once_for_the_interval() -> None:
    (weak,) = weak_classes([made_up("a", [[9, 1, 0], [0, 9, 0], [2, 0, 1]])] * 2)
    assert (weak.count, weak.samples, weak.unsure) == (CorrectCount("owl", 2, 6), 3, True)
    assert weak.interval == share_interval(1 / 3, 3)


def test_a_class_that_no_run_could_learn_is_not_called_weak() -> None:
    """The owl is at a only: while a is the target no run has an owl to learn from."""
    first = made_up("a", [[9, 1, 0], [1, 9, 0], [2, 1, 0]], counts=(9, 3, 0))
    (lowest,) = weak_classes([first, made_up("b", [[9, 0, 1], [0, 10, 0], [0, 0, 0]])])
    assert (lowest.count.name, lowest.weak) == ("cat", False)  # the mean is not drawn down by the owl


def test_the_best_is_never_weak() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = [None if rng.random() < 0.2 else float(rng.random()) for _ in range(rng.integers(0, 12))]
        known = [value for value in values if value is not None]
        expected = [v for v in known if v < max(known) and (v < 0.5 or v < np.mean(known) - 0.15)]
        assert [values[k] for k in weak_indices(values)] == sorted(expected)


def test_without_a_weak_class_the_lowest_is_shown_as_such() -> None:
    (only,) = weak_classes([made_up("a", [[9, 1, 0], [0, 10, 0], [0, 0, 10]])])
    assert (only.count.name, only.weak) == ("cat", False)
    assert weak_classes([made_up("a", [[9, 1, 0], [1, 9, 0], [1, 0, 9]])]) == []


def test_domains() -> None:
    bad, good, best = (
        [[1, 9, 0], [0, 5, 5], [0, 0, 10]], [[9, 1, 0], [0, 9, 1], [0, 0, 10]], [[10, 0, 0], [0, 10, 0], [0, 0, 10]],
    )  # fmt: skip
    (noisy,) = weak_domains([made_up("a", bad), made_up("b", good)])
    assert (noisy.count, noisy.weak, noisy.unsure) == (CorrectCount("a", 16, 30), True, True)
    assert noisy.parts == (CorrectCount("cat", 1, 10), CorrectCount("dog", 5, 10))
    (hard,) = weak_domains([made_up("a", [[10 * n for n in row] for row in bad]), made_up("b", good)])
    assert (hard.weak, hard.unsure) == (True, False)
    (lowest,) = weak_domains([made_up("a", good), made_up("b", best)])
    assert (lowest.count.name, lowest.weak) == ("a", False)
    assert weak_domains([made_up("a", best), made_up("b", best)]) == []


def test_the_words() -> None:
    """Every kind of weak class and domain."""
    cases = {
        "weak at one site": owls(sketch=0, art=5, photo=18),
        "too few samples": owls(sketch=2, art=18, photo=20),
        "rare, one site": [made_up("a", [[90, 0, 0], [0, 90, 0], [80, 0, 10]], counts=(90, 90, 9))],
        "hard site": [
            made_up("a", [[10, 90, 0], [0, 50, 50], [0, 0, 100]]),
            made_up("b", [[9, 1, 0], [0, 9, 1], [0, 0, 10]]),
        ],
    }
    parts = []
    for name, records in cases.items():
        section = weak_section(records)
        parts.append(f"== {name}\n{section.intro}\n{words_of(section.body)}")
    check_golden("report-weak.txt", "\n\n".join(parts) + "\n")


def test_sureness_is_calibrated_on_the_validation_set(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "ndcl", "ink", classes=tuple("0123456789"), predictions=True, data="digits")
    (record,) = records_in(tmp_path)
    arrays = record.predictions()
    assert arrays is not None
    temperature = fit_temperature(arrays["validation_logits"], arrays["validation_labels"])
    assert record.temperature(arrays) == temperature != 1
    assert record.temperature({"target_logits": arrays["target_logits"]}) == 1.0


def test_images_that_are_gone_or_changed_give_the_reason(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "ndcl", "sketch", predictions=True, data=str(tmp_path / "gone"))
    write_run(tmp_path / "b", "ndcl", "photo")
    record, without = sorted(records_in(tmp_path), key=lambda r: -r.folder.name.count("a"))
    with pytest.raises(LongshiftError, match="gone"):
        misclassified_samples([record])
    changed = replace(record, result={**record.result, "run": {**record.result["run"], "data": "digits"}})
    with pytest.raises(LongshiftError, match="digits"):
        misclassified_samples([changed])
    with pytest.raises(LongshiftError, match="save-predictions"):
        misclassified_samples([without])
    assert "gone" in weak_section([record]).body
