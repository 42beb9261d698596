"""Weak classes and domains: one definition, never the best, with calibrated sureness."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from longshift.data.manifest import Manifest
from longshift.metrics import fit_temperature
from longshift.report.figure_sections import class_section, confusion_section
from longshift.report.html_page import run_section
from longshift.report.misclassified import misclassified_samples
from longshift.report.run_records import Record, class_accuracy, read_records, run_folders
from longshift.report.weak_page_section import low_place, weak_classes, weak_domains, weak_section
from longshift.report.weak_rule import weak_indices
from longshift.results.selection import choose
from longshift.sweep.collecting import collect
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
    assert (weak.name, weak.accuracy, weak.title) == ("owl", 7 / 12, "Low-scoring class")
    assert weak.text == (
        "7 of 12 samples right (80% interval 40 to 74%, from the sample size alone). By domain: a 1 of 3, b 6 of 9. "
        "A run has 2 training samples of it on average, and 6 of the median class. "
        "Most often misclassified as cat (33%), dog (8%). It may not be weak: 12 samples are too few to tell."
    )


def test_the_same_samples_in_several_trials_give_no_interval() -> None:
    (weak,) = weak_classes([made_up("a", [[9, 1, 0], [0, 9, 0], [2, 0, 1]])] * 2)
    assert weak.text.endswith("It may not be weak: 3 samples are too few to tell.")  # and not 6
    assert weak.text.startswith("2 of 6 samples right. A run has 2 training samples of it on average")


def test_a_class_that_no_run_could_learn_is_not_called_weak() -> None:
    """The owl is at a only: while a is the target no run has an owl to learn from."""
    first = made_up("a", [[9, 1, 0], [1, 9, 0], [2, 1, 0]])
    first.result["split"]["counts"] = [[9, 3, 0]]
    unlearned, lowest = weak_classes(
        [first, made_up("b", [[9, 0, 1], [0, 10, 0], [0, 0, 0]])], noun="site", advise=True
    )
    assert (unlearned.name, unlearned.accuracy, unlearned.title) == ("owl", None, "Class that could not be learned")
    assert "was unseen, there was no sample of it to train on" in unlearned.text
    assert "Only one site" not in unlearned.text  # others may have some that are marked as test
    assert "its 3 samples count as wrong" in unlearned.text
    assert "collect samples of owl to train on at a second site" in unlearned.text
    assert (lowest.name, lowest.title) == ("cat", "Lowest class, not weak")  # the mean is not drawn down by the owl


def test_it_is_said_how_many_are_weak() -> None:
    records = [made_up("a", [[1, 9, 0], [0, 10, 0], [0, 8, 2]])]
    section = weak_section(records, most=1)
    assert section.title == "Lowest-scoring classes and domains"
    assert "2 classes are weak; the lowest 1 is shown." in section.intro
    assert "are weak;" not in weak_section(records).intro


def test_nothing_could_be_learned() -> None:
    only = made_up("a", [[0, 0, 0], [0, 0, 0], [2, 1, 0]])
    only.result["split"]["counts"] = [[9, 3, 0]]
    assert [weak.title for weak in weak_classes([only])] == ["Class that could not be learned"]


@pytest.mark.parametrize(
    ("tables", "counts", "advice"),
    [
        (
            [[[9, 0, 0], [0, 9, 0], [1, 0, 1]]],
            [90, 90, 90],
            "It may not be weak: 2 samples are too few to tell. Label more samples",
        ),
        ([[[90, 0, 0], [0, 90, 0], [80, 0, 10]]], [90, 90, 9], "little to learn it from, so collect more samples"),
        ([[[90, 0, 0], [0, 90, 0], [80, 0, 10]]], [9, 9, 8], "little to learn it from, so collect more samples"),
        (
            [[[90, 0, 0], [0, 90, 0], [80, 0, 10]]],
            [2, 2, 2],
            "most classes have no more samples, so their number alone",
        ),
        (
            [[[90, 0, 0], [0, 90, 0], [80, 0, 10]]],
            [4, 6, 9],  # the largest class, though small
            "check whether owl looks like cat, as which it is most often misclassified",
        ),
        (
            [[[90, 0, 0], [0, 90, 0], [80, 0, 10]]],
            [90, 90, 90],
            "it is not rare, so more of the same will hardly help; check whether owl looks like cat",
        ),
        (
            [[[90, 0, 0], [0, 90, 0], [80, 0, 1]], [[90, 0, 0], [0, 90, 0], [0, 0, 40]]],
            [90, 90, 90],
            "All mistakes are at a, where 1 of 81 samples is right. What to do: compare the samples and labels of owl",
        ),
    ],
)
def test_what_to_do_about_a_weak_class(tables: list[list[list[int]]], counts: list[int], advice: str) -> None:
    records = [made_up(name, table) for name, table in zip("ab", tables, strict=False)]
    for record in records:
        record.result["split"]["counts"] = [counts]
    (weak,) = weak_classes(records, noun="site", advise=True)
    assert (weak.name, weak.title) == ("owl", "Low-scoring class")
    assert advice in weak.text
    assert ("little to learn it from" in weak.text) == (counts[2] < np.median(counts))
    assert ("too few to tell" in weak.text) == (len(tables) == 1 and tables[0][2] == [1, 0, 1])
    assert ("What to do" in weak.text) == ("too few to tell" not in weak.text)  # nothing to do about what is not shown
    assert "What to do" not in weak_classes(records)[0].text


def owls(**right: int) -> list[Record]:
    """20 owls at each site, of which some are right; cats and dogs are always."""
    records = [made_up(name, [[20, 0, 0], [0, 20, 0], [20 - n, 0, n]]) for name, n in right.items()]
    for record in records:
        record.result["split"]["counts"] = [[90, 90, 90]]
    return records


def test_a_class_that_is_weak_at_one_site_gets_advice_about_that_site() -> None:
    (weak,) = weak_classes(owls(sketch=0, art=5, photo=18), noun="site", advise=True)
    assert "Most mistakes are at sketch, where 0 of 20 samples are right. What to do: compare" in weak.text
    assert "looks like" not in weak.text
    assert "not rare" not in weak.text


def test_a_class_that_is_alike_at_all_sites_gets_no_advice_about_one() -> None:
    (weak,) = weak_classes(owls(sketch=4, art=5, photo=6), noun="site", advise=True)
    assert "mistakes are at" not in weak.text
    assert "check whether owl looks like cat" in weak.text


def test_a_class_that_is_not_shown_to_be_weak_may_be_so_at_one_site() -> None:
    (weak,) = weak_classes(owls(sketch=2, art=18, photo=20), noun="site", advise=True)
    assert (
        "It may not be weak: 60 samples are too few to tell. At sketch, it is clearly weaker than at the other sites. "
        "Most mistakes are at sketch" in weak.text
    )
    assert "Label more" not in weak.text


@pytest.mark.parametrize(
    ("run", "accuracy", "blamed"),
    [
        ({"weights": None, "pretrained": False}, 0.59, "network"),
        ({"weights": None, "pretrained": False}, 0.61, "data"),
        ({"weights": "resnet18.safetensors", "pretrained": False}, 0.3, "data"),
        ({"weights": None, "pretrained": True}, 0.3, "data"),
        ({"weights": None, "pretrained": False, "data": "vectors.npz"}, 0.3, "data"),
    ],
)
@pytest.mark.parametrize("part", ["test", "validation"])
def test_a_network_without_weights_is_blamed_before_the_data(
    run: dict[str, Any], accuracy: float, blamed: str, part: str
) -> None:
    """If the accuracy is low even on other samples of the training sites, below 60%."""
    records = [made_up("a", [[90, 0, 0], [0, 90, 0], [80, 0, 10]]), made_up("b", [[0, 99, 0], [0, 9, 90], [9, 90, 0]])]
    for record in records:
        record.result["split"]["counts"] = [[90, 90, 90]]
        record.result["run"] |= run
        named = {"worst_domain": 0.5, "worst_domain_name": "elsewhere"}
        record.result["selected"][part] = {"accuracy": accuracy, **named}
    section = weak_section(records, noun="site", advise=True)
    texts = [
        weak.text for weak in (*weak_classes(records, noun="site", advise=True), *weak_domains(records, "site", True))
    ]
    first = "No pretrained weights were used. Try --weights FILE.safetensors first."
    assert (first in section.intro) == (blamed == "network")
    assert any("What to do" in text for text in texts) == (blamed == "data")
    assert first not in weak_section(records).intro  # pages of sweeps give no advice


def test_the_low_site_is_found_by_fishers_test() -> None:
    p = sum(math.comb(20, i) * math.comb(20, 19 - i) for i in range(7)) / math.comb(40, 19)
    assert 0.025 < p < 0.05
    assert low_place([("art", 6, 20), ("photo", 13, 20)]) is None  # p times two sites is above 0.05
    assert low_place([("art", 5, 20), ("photo", 13, 20)]) == ("art", 5, 20)
    assert low_place([("art", 10, 40), ("photo", 26, 40)], trials=2) == ("art", 10, 40)
    assert low_place([("art", 12, 40), ("photo", 26, 40)], trials=2) is None  # the same 20 samples twice
    assert low_place([("tiny", 0, 1), ("art", 20, 100), ("photo", 90, 100)]) == ("art", 20, 100)
    assert low_place([("art", 0, 100)]) is None


def test_the_bars_show_what_the_weak_points_say(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "ndcl", "sketch", classes=CLASSES)
    write_run(tmp_path / "b", "ndcl", "photo", classes=CLASSES, skill=3.0)
    records = records_in(tmp_path)
    total = np.sum([record.chosen["target"]["confusion"] for record in records], axis=0)
    shares = {name: float(total[k, k] / total[k].sum()) for k, name in enumerate(CLASSES)}
    bars, weak = class_section({"ndcl": records}).body, weak_section(records).body
    for name, share in shares.items():
        assert f"{name}: NDCL {100 * share:.1f}%" in bars
    lowest = min(shares, key=lambda name: shares[name])
    assert f"{lowest} ({100 * shares[lowest]:.1f}%)" in weak
    assert f"class: {max(shares, key=lambda name: shares[name])}" not in weak
    assert "No examples: the runs kept no predictions" in weak


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
        "28 of 30 samples correct when held out (80% interval 85 to 97%, from the sample size alone). "
        "Most mistakes: cat (9 of 10 right), dog (9 of 10 right). "
        "Among the training sites, elsewhere is the lowest (50.0% on held-out samples)."
    )
    twice = weak_domains([made_up("a", bad), made_up("a", bad), made_up("b", good)])
    assert "mean of 2 runs." in twice[0].text
    (noisy,) = weak_domains([made_up("a", bad), made_up("b", good)], "site", advise=True)
    assert noisy.title == "Low-scoring site"
    assert noisy.text.endswith("It may not be hard: 30 samples are too few to tell.")
    (hard,) = weak_domains([made_up("a", [[10 * n for n in row] for row in bad]), made_up("b", good)], "site", True)
    assert hard.title == "Low-scoring site"
    assert "may not be hard" not in hard.text
    assert "What to do: find out what is different at a" in hard.text


def test_a_good_domain_is_not_called_hard() -> None:
    good, better = [[9, 1, 0], [0, 9, 1], [0, 0, 10]], [[10, 0, 0], [0, 10, 0], [0, 0, 10]]
    (lowest,) = weak_domains([made_up("a", good), made_up("b", better)], "site", advise=True)
    assert (lowest.name, lowest.title) == ("a", "Lowest site, not hard")
    assert "What to do" not in lowest.text
    assert weak_domains([made_up("a", better), made_up("b", better)]) == []


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
    found = misclassified_samples(record, manifest)
    assert found
    for wrong in found:
        powers = np.exp(arrays["target_logits"][wrong.index] / temperature)
        assert wrong.confidence == pytest.approx(powers.max() / powers.sum())
    assert record.temperature({"target_logits": arrays["target_logits"]}) == 1.0
