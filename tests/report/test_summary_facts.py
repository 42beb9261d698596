"""The findings of a report: the facts, and their words in one golden file."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from longshift.report.kinds import ReportRuns
from longshift.report.summary_facts import FINDINGS, findings, report_facts
from longshift.sweep import as_frame
from tests.golden import check_golden
from tests.report.fake import row


def made(values: dict[str, dict[str, float]], trials: int = 3, spread: float = 0.0) -> pd.DataFrame:
    """Runs from method -> target -> accuracy; trials differ by `spread`, those of the first method by twice that."""
    return as_frame(
        row(method, trial, target=target, value=value + (2 - bool(i)) * spread * (trial - 1))
        for i, (method, targets) in enumerate(values.items())
        for target, value in targets.items()
        for trial in range(trials)
    )


def on(targets: str, value: float) -> dict[str, float]:
    return dict.fromkeys(targets, value)


def test_facts() -> None:
    runs = made({"ndcl": {"easy": 0.9, "hard": 0.4}, "erm": {"easy": 0.5, "hard": 0.41}}, 2)
    extra = as_frame([row("mmd", 0, target="easy", value=0.99)])  # lacks a target: it cannot win
    facts = report_facts(ReportRuns(pd.concat([runs, extra], ignore_index=True)))
    assert facts is not None
    assert (facts.ranking.winner, facts.ranking.left_out) == ("ndcl", ("mmd",))
    assert (facts.few, facts.many) == pytest.approx((0.35, 0.55))
    assert facts.hardest is not None
    assert facts.hardest["target"] == "hard"
    assert facts.hardest["target_accuracy"] == pytest.approx(0.4)
    assert (facts.lost, facts.better) == (1, ("erm",))
    assert (facts.missing.count, facts.missing.expected, facts.rising) == (1, 10, None)
    assert len(findings(facts)) <= len(FINDINGS) == 6
    assert findings(None) == []


def test_runs_without_accuracy_on_a_target_have_no_facts() -> None:
    assert report_facts(ReportRuns(as_frame([row("erm", 0)]).assign(target_accuracy=float("nan")))) is None


def test_the_words() -> None:
    curve = json.dumps([[100, 0.3], [200, 0.5], [300, 0.6]])
    better = {m: on("abcdefgh", v) for m, v in (("ndcl_plus", 0.56), ("bsoftmax", 0.55), ("ndcl", 0.4), ("erm", 0.3))}
    failed = as_frame([row("boda", t, target="a", status="failed") for t in range(2)])
    cases = {
        "a lead": made({"ndcl": on("abc", 0.6), "erm": on("abc", 0.5)}, spread=0.001),
        "a lead in one trial": made({"ndcl": on("abc", 0.6), "erm": on("abc", 0.5)}, 1),
        "significant": made(better).assign(validation_curve=curve, steps=300),
        "tied": made({"ndcl": on("abc", 0.6), "boda": on("abc", 0.59), "erm": on("abc", 0.4)}, spread=0.03),
        "a higher mean": made({"erm": {**on("abc", 0.52), "d": 0.2}, "ndcl": {**on("abc", 0.51), "d": 0.89}}),
        "one method": made({"ndcl": on("ab", 0.6)}),
        "one case": made({"ndcl": on("a", 0.6), "erm": on("a", 0.5)}),
        "no common trial": as_frame([row("ndcl", 0, value=0.7), row("erm", 1, value=0.5)]),
        "incomplete": pd.concat(
            [
                made({"ndcl": on("ab", 0.7), "erm": on("ab", 0.5)}),
                made({"boda": on("ab", 0.6), "ndcl+ema": on("ab", 0.8)}, 1),
                made({"mmd": on("a", 0.6)}, 1),
                failed,
            ],
            ignore_index=True,
        ),
    }
    parts = [
        "\n".join([f"== {name}", *findings(report_facts(ReportRuns(runs, "last" if name == "tied" else "validation")))])
        for name, runs in cases.items()
    ]
    check_golden("report-findings.txt", "\n\n".join(parts) + "\n")
