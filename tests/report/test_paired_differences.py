"""Paired differences against a plain loop, and what is left of a table of runs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from longshift.errors import UsageError
from longshift.report.report_tables import build_tables
from longshift.report.run_filters import filter_runs
from longshift.report.table import Table
from longshift.report.table_registry import ReportRuns
from longshift.results import as_frame
from tests.report.fake import frame, row

SETTINGS = ("Duality", "Cross")


def paired(against: str = "erm", **options: object) -> Table:
    (table,) = build_tables(ReportRuns(frame(settings=SETTINGS, **options), against=against), ["paired"])
    return table


def test_each_trial_on_each_target_is_a_pair() -> None:
    runs = frame(settings=SETTINGS)
    (table,) = build_tables(ReportRuns(runs, against="erm"), ["paired"])
    assert [r.name for r in table.rows] == ["bsoftmax", "boda", "ndcl"]
    good = {  # the second draw is the one that validation chooses
        (r["method"], r["setting"], r["target"], r["trial"]): r["target_accuracy"]
        for r in runs[runs["draw"] == 1].to_dict("records")
    }
    for heading, settings in (("Duality", SETTINGS[:1]), ("Cross", SETTINGS[1:]), ("All", SETTINGS)):
        gaps = [
            100 * (good["ndcl", s, t, trial] - good["erm", s, t, trial])
            for s, t, trial in product(settings, ("chalk", "ink"), range(3))
        ]
        j = next(j for j, c in enumerate(table.columns) if (c.group, c.title) == (heading, "Target"))
        cell = table.rows[-1].cells[j]
        assert (cell.value, cell.stderr) == pytest.approx((np.mean(gaps), np.std(gaps, ddof=1) / len(gaps) ** 0.5))
        assert cell.runs == len(gaps)


@pytest.mark.slow
def test_differences_change_their_sign_with_the_method() -> None:
    one = next(r for r in paired("erm").rows if r.name == "ndcl")
    other = next(r for r in paired("ndcl").rows if r.name == "erm")
    for a, b in zip(one.cells, other.cells, strict=True):
        assert a.value == pytest.approx(-(b.value or 0))
        assert a.stderr == pytest.approx(b.stderr)


def test_a_pair_needs_both_and_one_setting_has_no_column_for_all() -> None:
    made = [row(m, t, value=v + 0.1 * t) for m, v in (("erm", 0.4), ("ndcl", 0.5)) for t in range(3)]
    made[4] = row("ndcl", 1, status="failed")
    made.append(row("boda", 7))
    (table,) = build_tables(ReportRuns(as_frame(made), against="erm"), ["paired"])
    assert {c.group for c in table.columns} == {"Duality"}
    found = {r.name: r.cells[1] for r in table.rows}
    assert found["ndcl"].value == pytest.approx(10)
    assert found["ndcl"].runs == 2
    assert (found["boda"].value, found["boda"].note) == (None, "no pair with both numbers")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"settings": SETTINGS}, ", 6 pairs in each setting and 12 over all at most."),
        ({"settings": SETTINGS, "datasets": ("digits", "more")}, ", 6 pairs in each dataset and setting and 24 over"),
        ({"settings": SETTINGS[:1]}, ", 6 pairs at most."),
    ],
)
def test_the_caption_says_how_many_pairs_a_column_has(options: dict[str, Any], words: str) -> None:
    (table,) = build_tables(ReportRuns(frame(**options), against="erm"), ["paired"])
    assert words in table.caption


def test_parts() -> None:
    runs = frame(settings=SETTINGS, draws=3)
    assert len(filter_runs(runs)) == len(runs)
    assert set(filter_runs(runs, draws=1)["draw"]) == {0}
    assert set(filter_runs(runs, draws=2)["draw"]) == {0, 1}
    assert set(filter_runs(runs, ["Cross"])["setting"]) == {"Cross"}
    with pytest.raises(UsageError, match="did you mean Cross"):
        filter_runs(runs, ["Crosss"])
    with pytest.raises(UsageError, match="expected 1 or more, got 0"):
        filter_runs(runs, draws=0)


@pytest.mark.slow
def test_the_row_to_compare_with_may_be_named_as_it_is_printed() -> None:
    for spelled in ("BSoftmax", "bsoftmax", "BSOFTMAX"):
        assert [r.name for r in paired(spelled).rows] == ["erm", "boda", "ndcl"]
    with pytest.raises(UsageError, match="did you mean bsoftmax"):
        paired("bsofmax")
