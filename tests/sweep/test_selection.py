"""Selection and aggregation against plain loops over lists of numbers."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest

from longshift.errors import LongshiftError, UsageError
from longshift.metrics import evaluate_predictions
from longshift.sweep import as_frame, column_names
from longshift.sweep.columns import make_row
from longshift.sweep.selection import averages, best_runs, choose, per_target
from longshift.training.run_config import RunConfig

METHODS, TARGETS, TRIALS, DRAWS = ("a", "b"), ("x", "y", "z"), 3, 4


def _row(method: str, target: str, trial: int, draw: int, rng: np.random.Generator) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(column_names())
    row |= {
        "fingerprint": f"{method}{target}{trial}{draw}", "dataset": "d", "setting": "s", "target": target,
        "method": method, "trial": trial, "draw": draw, "status": "done", "selected_step": 5, "steps": 9,
        "oracle_step": 7, "hparams": "{}",
    }  # fmt: skip
    for prefix in ("", "last_", "oracle_"):
        for part in ("validation", "test", "target"):
            for metric in ("accuracy", "few"):
                if f"{prefix}{part}_{metric}" in row:
                    row[f"{prefix}{part}_{metric}"] = float(rng.random())
    return row


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        _row(m, x, t, i, rng) for m in METHODS for x in TARGETS for t in range(TRIALS) for i in range(DRAWS)
    ]  # fmt: skip


SCORES = {
    "validation": ("validation_accuracy", "target_accuracy", "target_few"),
    "last": ("last_validation_accuracy", "last_target_accuracy", "last_target_few"),
    "oracle": ("oracle_target_accuracy", "oracle_target_accuracy", "oracle_target_few"),
}


def _best(rows: list[dict[str, Any]], method: str, target: str, trial: int, rule: str) -> dict[str, Any]:
    """By hand: the draw with the best score."""
    best: dict[str, Any] = {}
    for row in rows:
        here = (row["method"], row["target"], row["trial"]) == (method, target, trial) and row["status"] == "done"
        if here and (not best or row[SCORES[rule][0]] > best[SCORES[rule][0]]):
            best = row
    return best


@pytest.mark.parametrize("rule", ["validation", "last", "oracle"])
def test_best_draw_per_trial_then_mean_and_standard_error(rows: list[dict[str, Any]], rule: Any) -> None:
    chosen = choose(as_frame(rows), rule)
    assert set(chosen["rule"]) == {rule}
    assert len(chosen) == len(METHODS) * len(TARGETS) * TRIALS
    table, total = per_target(chosen), averages(chosen)
    for method in METHODS:
        per_trial: list[list[float]] = [[] for _ in range(TRIALS)]
        for target in TARGETS:
            best = [_best(rows, method, target, t, rule) for t in range(TRIALS)]
            for trial, row in enumerate(best):
                per_trial[trial].append(row[SCORES[rule][1]])
                got = chosen.query("method == @method and target == @target and trial == @trial").iloc[0]
                assert got["draw"] == row["draw"]
                assert got["step"] == {"validation": 5, "last": 9, "oracle": 7}[rule]
                assert got["candidates"] == DRAWS
            cell = table.query("method == @method and target == @target").iloc[0]
            for measure, place in (("target_accuracy", 1), ("target_few", 2)):
                numbers = [row[SCORES[rule][place]] for row in best]
                assert cell[measure] == pytest.approx(statistics.mean(numbers), rel=1e-12)
                error = statistics.pstdev(numbers) / math.sqrt(TRIALS)
                assert cell[f"{measure}_stderr"] == pytest.approx(error, rel=1e-12)
        means = [statistics.mean(values) for values in per_trial]
        line = total.query("method == @method").iloc[0]
        assert line["target_accuracy"] == pytest.approx(statistics.mean(means), rel=1e-12)
        assert line["target_accuracy_stderr"] == pytest.approx(statistics.pstdev(means) / math.sqrt(TRIALS), rel=1e-12)
        assert (line["trials"], line["trials_missing"]) == (TRIALS, 0)


def test_the_target_has_no_say_in_the_protocols_choice(rows: list[dict[str, Any]]) -> None:
    before = choose(as_frame(rows))["fingerprint"].tolist()
    rng = np.random.default_rng(1)
    for row in rows:
        for name in row:
            if "target_" in name or "test_" in name:
                row[name] = float(rng.random())
    assert choose(as_frame(rows))["fingerprint"].tolist() == before
    for row in rows:
        row["validation_accuracy"] = float(rng.random())
    assert choose(as_frame(rows))["fingerprint"].tolist() != before


def test_of_equal_draws_the_first_wins(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["validation_accuracy"] = 0.5
    assert choose(as_frame(rows[::-1]))["draw"].tolist() == [0] * len(METHODS) * len(TARGETS) * TRIALS


def test_diverged_and_failed_runs_are_counted_not_averaged(rows: list[dict[str, Any]]) -> None:
    bad = [row for row in rows if (row["method"], row["target"], row["trial"]) == ("a", "x", 0)]
    bad[0].update(status="diverged", validation_accuracy=1.0, target_accuracy=1.0)
    bad[1].update(status="failed", validation_accuracy=None, target_accuracy=None)
    frame = as_frame(rows)
    got = choose(frame).query("method == 'a' and target == 'x' and trial == 0").iloc[0]
    assert (got["candidates"], got["diverged"], got["missing"]) == (2, 1, 1)
    assert got["draw"] == _best(rows, "a", "x", 0, "validation")["draw"]
    line = averages(choose(frame)).query("method == 'a'").iloc[0]
    assert (line["trials"], line["diverged"], line["missing"]) == (TRIALS, 1, 1)


def test_a_trial_that_lacks_a_target_is_left_out_of_the_average(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if (row["method"], row["target"], row["trial"]) == ("a", "x", 0):
            row["status"] = "failed"
    chosen = choose(as_frame(rows))
    line = averages(chosen).query("method == 'a'").iloc[0]
    assert (line["trials"], line["trials_missing"], line["missing"]) == (TRIALS - 1, 1, DRAWS)
    means = [
        statistics.mean(_best(rows, "a", x, t, "validation")["target_accuracy"] for x in TARGETS)
        for t in range(1, TRIALS)
    ]
    assert line["target_accuracy"] == pytest.approx(statistics.mean(means), rel=1e-12)
    cell = per_target(chosen).query("method == 'a' and target == 'x'").iloc[0]
    assert (cell["trials"], cell["trials_missing"]) == (TRIALS - 1, 1)
    # The same when the runs are not there at all.
    absent = as_frame([row for row in rows if row["status"] == "done"])
    assert averages(choose(absent)).query("method == 'a'").iloc[0]["target_accuracy"] == line["target_accuracy"]


def test_one_trial_has_no_standard_error(rows: list[dict[str, Any]]) -> None:
    table = per_target(choose(as_frame([row for row in rows if row["trial"] == 0])))
    assert table["target_accuracy"].notna().all()
    assert table["target_accuracy_stderr"].isna().all()


def test_no_oracle_without_evaluations_of_the_target(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["oracle_target_accuracy"] = None
    with pytest.raises(LongshiftError, match='evaluate = "full"'):
        choose(as_frame(rows), "oracle")


def test_an_unknown_rule_is_named(rows: list[dict[str, Any]]) -> None:
    wrong: Any = "orakel"
    with pytest.raises(UsageError, match="oracle"):
        choose(as_frame(rows), wrong)


def test_the_best_run_is_chosen_by_validation_over_all_trials(rows: list[dict[str, Any]]) -> None:
    best = best_runs(as_frame(rows))
    assert len(best) == len(METHODS) * len(TARGETS)
    for _, got in best.iterrows():
        mine = [row for row in rows if (row["method"], row["target"]) == (got["method"], got["target"])]
        assert got["validation_accuracy"] == max(row["validation_accuracy"] for row in mine)


@pytest.mark.parametrize("rule", ["validation", "last"])
def test_draws_are_chosen_by_what_steps_are_chosen_by(rows: list[dict[str, Any]], rule: Any) -> None:
    prefix = "last_" if rule == "last" else ""
    guesser, careful, equal = (dict(row) for row in rows[:3])  # draws 0, 1, 2 of one trial
    # 9 samples of one class and 1 of the other: all taken for the first class, or one mistake in each ten.
    guesser |= {f"{prefix}validation_accuracy": 0.9, f"{prefix}validation_balanced": 0.5}
    careful |= {f"{prefix}validation_accuracy": 0.8, f"{prefix}validation_balanced": 0.9}
    equal |= {f"{prefix}validation_accuracy": 0.9 + 1e-14}  # not measured: the accuracy counts
    chosen = choose(as_frame([guesser, careful, equal]), rule)
    assert chosen["draw"].tolist() == [1]
    if rule == "validation":
        assert best_runs(as_frame([guesser, careful, equal]))["draw"].tolist() == [1]


def test_the_row_of_a_run_has_the_score_of_its_selection() -> None:
    labels, logits = np.array([0] * 9 + [1]), np.tile([1.0, 0.0], (10, 1))
    logits[0] = [0.0, 1.0]
    found = evaluate_predictions(logits, labels, None, ("a", "b"))
    part = {"step": 3, "validation": found.to_dict(), "test": None, "target": None}
    result: dict[str, Any] = {
        "schema": 2, "fingerprint": "f", "status": "done", "selected": part, "last": part, "memory_gib": None,
        "hparams": {}, "backbone": "small", "averaged": None, "seconds": {"per_step": 1.0, "total": 3.0},
        "environment": {"commit": "", "device": "cpu", "cpu": "x"},
        "run": {**RunConfig(target="ink").model_dump(), "data": "digits"},
    }  # fmt: skip
    row = make_row(result)
    assert row["validation_accuracy"] == pytest.approx(0.8)
    assert row["validation_balanced"] == row["last_validation_balanced"] == found.balanced_accuracy
    assert found.balanced_accuracy == pytest.approx((8 / 9 + 0) / 2)
    natural = make_row(result | {"run": result["run"] | {"validation": 0.2}})  # whose accuracy is that of the cells
    assert natural["validation_balanced"] == natural["validation_accuracy"] == found.accuracy
