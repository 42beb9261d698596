"""The first lines of a fit's summary: whether the model may be used, and what to try first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longshift.fitting.data_summary import DataSummary
from longshift.fitting.fit_summary import Summary, summarize
from longshift.fitting.plan import Plan
from longshift.fitting.site_scores import SiteScore

FIRST = "No pretrained weights were used. Try --weights FILE.safetensors first. "
SCRATCH: dict[str, Any] = {"weights": None, "pretrained": False}
Tables = dict[str, list[list[int]]]
POOR: Tables = {site: [[11, 10], [10, 9]] for site in "abc"}
GOOD: Tables = {site: [[9, 1], [1, 9]] for site in "abc"}


def summary_of(
    tables: Tables, run: dict[str, Any], seen: float | None = 0.9, validation: float = 0.9, noun: str = "images",
    plan: Plan | None = None,
) -> Summary:  # fmt: skip
    """The summary of a fit with these confusion matrices at its held-out sites."""
    names = tuple(f"class {k}" for k in range(len(next(iter(tables.values())))))
    rows = []
    for site, confusion in tables.items():
        table = np.array(confusion)
        n = table.sum(axis=1)
        shares = {name: float(table[k, k] / n[k]) if n[k] else None for k, name in enumerate(names)}
        balanced = float(np.mean([share for share in shares.values() if share is not None]))
        accuracy = float(np.trace(table) / n.sum())
        rows.append(SiteScore(site, int(n.sum()), accuracy, balanced, seen, shares, tuple(map(tuple, confusion))))
    counts = np.array([np.array(table).sum(axis=1) for table in tables.values()])
    look = DataSummary("zoo", noun, tuple(tables), names, counts, ())
    plan = plan or Plan("erm", tuple(tables), {"steps": 10}, "", "", "")
    return summarize(look, plan, {"ERM": rows}, {"run": run, "selected": {"validation": {"accuracy": validation}}})


def test_the_verdict_is_the_first_line() -> None:
    found = summary_of(POOR, SCRATCH)
    assert "no better than guessing (50%): do not use this model." in found.warning
    assert found.sentences[0] == (
        f"{found.warning} More images from more sites, a pretrained backbone (--weights) or more steps (--steps) may "
        "help."
    )
    assert found.sentences[1].startswith("Accuracy of ERM at a new site")
    assert not any("may help" in sentence for sentence in found.sentences[1:])
    assert summary_of(GOOD, SCRATCH).sentences[0].startswith("Accuracy of ERM at a new site")


@pytest.mark.parametrize(
    ("run", "noun"),
    [
        ({"weights": "resnet18.safetensors", "pretrained": False}, "images"),
        ({"weights": None, "pretrained": True}, "images"),
        (SCRATCH, "vectors"),
    ],
)
def test_no_weights_are_suggested_where_there_are_some_or_none_apply(run: dict[str, Any], noun: str) -> None:
    found = summary_of(POOR, run, seen=0.3, noun=noun)
    assert found.sentences[0] == f"{found.warning} More {noun} from more sites or more steps (--steps) may help."
    assert "--weights" not in " ".join(found.sentences)


def test_the_verdict_leaves_out_a_class_of_one_site() -> None:
    """Class 1 is at c only: it cannot be learned while c is held out, and all its samples count as misclassified."""
    tables: Tables = {"a": [[15, 5], [0, 0]], "b": [[15, 5], [0, 0]], "c": [[13, 7], [40, 0]]}
    found = summary_of(tables, SCRATCH)
    assert found.balanced.mean < 1.25 * 0.5  # with it, hardly better than guessing
    assert found.warning == ""
    assert found.unseen["selected"].balanced == pytest.approx((0.75 + 0.75 + 0.65) / 3)
    assert "Only class 0 was measured, so these numbers do not show how well" in " ".join(found.sentences)


def test_a_verdict_without_a_class_of_one_site_says_so() -> None:
    tables: Tables = {
        "a": [[5, 5, 0], [5, 5, 0], [0, 0, 0]],
        "b": [[5, 5, 0], [5, 5, 0], [0, 0, 0]],
        "c": [[5, 5, 0], [5, 5, 0], [20, 20, 0]],
    }
    found = summary_of(tables, SCRATCH)
    assert found.warning == (
        "At sites it had not seen, it was right for 50% of samples, averaged over classes, no better than guessing "
        "(50%): do not use this model."
    )
    assert found.sentences[0].startswith(
        f"{found.warning} Classes that only one site has are left out of this number. More images"
    )
    assert "was measured, so" not in " ".join(found.sentences)


def test_if_every_class_is_at_one_site_all_count() -> None:
    found = summary_of({"a": [[0, 9], [0, 0]], "b": [[0, 0], [9, 0]]}, SCRATCH)
    assert found.unseen["selected"].balanced == 0
    assert "right for 0% of samples" in found.sentences[0]


@pytest.mark.parametrize(("seen", "validation"), [(0.59, 0.9), (None, 0.59)])
def test_without_weights_the_network_is_blamed_first(seen: float | None, validation: float) -> None:
    """The rule: below 60% even on other samples of the training sites (without such samples: on validation samples)."""
    low: Tables = {site: [[9, 5, 6], [6, 9, 5], [5, 6, 9]] for site in "abc"}
    found = summary_of(low, SCRATCH, seen, validation)
    assert found.warning == ""
    hints = [sentence for sentence in found.sentences if "--" in sentence]
    assert hints == [f"{FIRST}Accuracy is low even on other samples of the training sites (59%)."]
    assert "would help most" not in " ".join(found.sentences)
    poor = summary_of(POOR, SCRATCH, seen, validation)
    assert poor.sentences[0].startswith(f"{poor.warning} {FIRST}")
    assert "may help" not in poor.sentences[0]
    weights = {**SCRATCH, "weights": "w.safetensors"}
    assert FIRST not in " ".join(summary_of(low, weights, seen, validation).sentences)


def test_without_weights_but_with_good_accuracy_at_known_sites_the_data_may_be_at_fault() -> None:
    one: Tables = {"a": [[9, 5, 6], [6, 9, 5], [5, 6, 9]]}
    assert FIRST not in " ".join(summary_of(one, SCRATCH, 0.6, 0.3).sentences)
    assert "would help most" in " ".join(summary_of(one, SCRATCH, 0.6, 0.3).sentences)
    assert "would help most" not in " ".join(summary_of(one, SCRATCH, 0.55, 0.3).sentences)


@pytest.mark.parametrize(("steps", "said"), [(40, True), (45, False), (90, False)])
def test_a_final_model_with_few_of_its_steps_is_named_first(steps: int, said: bool) -> None:
    plan = Plan("erm", ("a", "b", "c"), {"steps": 90, "eval_every": 30}, "", "", "")
    found = summary_of(GOOD, SCRATCH, plan=plan.with_steps(steps, {"a": 90}, "Slow."))
    first = f"Training was cut short: the final model has only {steps} of the 90 planned steps."
    assert found.sentences[0].startswith(first) == said
