"""Whether runs were long enough: means, thirds and gains from curves of validation accuracy."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from longshift.report.kinds import build_tables, omitted_tables
from longshift.report.run_lengths import curve_groups, length_tables, still_rising
from longshift.report.sections import length_section
from longshift.report.table import Table
from longshift.sweep import as_frame
from tests.report.fake import row

CURVES = {  # method, trial -> accuracy at 100, 200, 300
    ("erm", 0): (0.50, 0.70, 0.72),
    ("erm", 1): (0.40, 0.60, 0.70),
    ("ndcl", 0): (0.60, 0.80, 0.79),
    ("ndcl", 1): (0.70, 0.90, 0.91),
}


def runs(curves: Mapping[tuple[str, int], tuple[float, ...]] = CURVES, setting: str = "Duality") -> pd.DataFrame:
    made = []
    for (method, trial), values in curves.items():
        best = 100 * (1 + int(np.argmax(values)))
        made.append(row(method, trial, setting=setting, steps=300) | {"selected_step": best})
    frame = as_frame(made)
    texts = [
        json.dumps([[100 * (i + 1), value] for i, value in enumerate(curves[str(m), int(t)])])
        for m, t in zip(frame["method"], frame["trial"], strict=True)
    ]
    return frame.assign(validation_curve=texts)


def cell(table: Table, name: str, column: str) -> tuple[float | None, float | None]:
    j = next(j for j, c in enumerate(table.columns) if column in (c.title, c.key.get("measure")))
    found = next(r for r in table.rows if r.name == name).cells[j]
    return found.value, found.stderr


def test_means_gains_and_their_errors() -> None:
    short, methods, curves = build_tables(runs(), ["length"])
    values = np.array(list(CURVES.values()))
    gains = values[:, 2] - values[:, 1]
    assert cell(short, "Duality", "end") == pytest.approx(
        (100 * values[:, 2].mean(), 100 * values[:, 2].std() / np.sqrt(4))
    )
    assert cell(short, "Duality", "last_gain") == pytest.approx((100 * gains.mean(), 100 * gains.std() / 2))
    assert cell(short, "Duality", "middle_gain") == pytest.approx((20, 0))
    assert cell(short, "Duality", "runs")[0] == 4
    assert cell(short, "Duality", "chosen_late")[0] == 75  # three of four chose step 300
    assert [c.text for c in short.rows[0].cells][:2] == ["4", "300"]
    assert cell(methods, "erm", "Duality") == pytest.approx((6, 4 / np.sqrt(2)))  # +2 and +10 points
    assert cell(methods, "ndcl", "Duality") == pytest.approx((0, 1 / np.sqrt(2)))
    assert [r.name for r in curves.rows] == ["100", "200", "300"]
    assert cell(curves, "200", "Duality") == pytest.approx((75, 100 * values[:, 1].std() / 2))
    assert [t.long for t in (short, methods, curves)] == [False, True, True]


def test_a_step_that_some_runs_lack_is_not_averaged() -> None:
    frame = runs()
    frame.loc[0, "validation_curve"] = "[[150, 0.5], [200, 0.6], [300, 0.7]]"
    (group,) = curve_groups(frame)
    assert group.steps == [200, 300]
    short = length_tables(frame)[0]
    assert cell(short, "Duality", "one_third") == (None, None)
    assert short.footnotes
    assert cell(short, "Duality", "last_gain")[0] is not None


@pytest.mark.parametrize(
    ("length", "thirds"), [(300, [100, 200, 300]), (299, [0, 100, 200]), (450, [100, 300, 300]), (90, [0, 0, 0])]
)
def test_thirds_end_at_the_last_evaluation_inside_them(length: int, thirds: list[int]) -> None:
    frame = runs({("erm", 0): (0.1, 0.2, 0.3)}).assign(steps=length)
    frame["validation_curve"] = "[[0, 0.0], [100, 0.1], [200, 0.2], [300, 0.3]]"
    (group,) = curve_groups(frame)
    assert [group.third(k) for k in (1, 2, 3)] == thirds


def test_runs_of_other_lengths_settings_and_datasets_stand_apart() -> None:
    short_runs = runs({("erm", 0): (0.5, 0.6)}).assign(steps=200)
    parts = [runs(), short_runs, runs(setting="TotalHeavyTail"), runs(setting="GINIDG").assign(dataset="PACS")]
    groups = curve_groups(pd.concat(parts, ignore_index=True))
    assert [g.title for g in groups] == [
        "PACS, GINIDG", "digits, TotalHeavyTail", "digits, Duality, 200 steps", "digits, Duality, 300 steps",
    ]  # fmt: skip
    methods = length_tables(pd.concat(parts, ignore_index=True))[1]
    ndcl = next(r for r in methods.rows if r.name == "ndcl")
    assert (ndcl.cells[2].value, bool(ndcl.cells[2].note)) == (None, True)


def test_averaged_and_unfinished_runs_do_not_count() -> None:
    frame = pd.concat([runs(), runs().assign(method="erm+ema"), runs().assign(status="diverged")], ignore_index=True)
    (group,) = curve_groups(frame)
    assert len(group.runs) == 4


def test_a_run_under_two_names_counts_once() -> None:
    same = {**CURVES, ("ndcl_same", 0): CURVES["ndcl", 0], ("ndcl_other", 0): (0.1, 0.2, 0.3)}
    frame = runs(same)
    shared = frame.loc[(frame["method"] == "ndcl") & (frame["trial"] == 0), "fingerprint"].iloc[0]
    frame.loc[frame["method"] == "ndcl_same", "fingerprint"] = shared
    (group,) = curve_groups(frame)
    assert len(group.runs) == 5
    short, methods, curves = length_tables(frame)
    values = np.array([*CURVES.values(), (0.1, 0.2, 0.3)])
    assert cell(short, "Duality", "runs")[0] == 5
    assert cell(short, "Duality", "end")[0] == pytest.approx(100 * values[:, 2].mean())
    assert cell(curves, "200", "Duality")[0] == pytest.approx(100 * values[:, 1].mean())
    assert [r.name for r in methods.rows] == ["erm", "ndcl", "ndcl_other", "ndcl_same"]  # each name keeps its row
    assert cell(methods, "ndcl", "Duality")[0] == pytest.approx(0)
    assert cell(methods, "ndcl_same", "Duality")[0] == pytest.approx(-1)
    assert "5 runs" in length_section(length_tables(frame), frame).body
    (unnamed,) = curve_groups(frame.assign(fingerprint=""))  # nothing tells that two of these are one
    assert len(unnamed.runs) == 6


def test_runs_that_still_rise_are_found_with_their_settings() -> None:
    rising = {key: (0.3, 0.5, 0.5 + 0.03 * (1 + trial)) for key in CURVES for trial in [key[1]]}
    flat = dict.fromkeys(CURVES, (0.3, 0.5, 0.505))
    assert still_rising(runs(flat)) is still_rising(as_frame([row("erm", 0)])) is None
    found, some = still_rising(runs(rising)), still_rising(pd.concat([runs(flat), runs(rising, "Cross")]))
    assert found is not None
    assert some is not None
    assert (found.everywhere, some.everywhere, some.titles) == (True, False, ("Cross",))
    assert (found.gain, some.gain) == pytest.approx((0.045, 0.045))


def test_no_curves_give_no_table() -> None:
    frame = runs()
    for without in (frame.drop(columns="validation_curve"), frame.assign(validation_curve="")):
        assert length_tables(without) == []
    assert list(omitted_tables([], ["length"])) == ["length"]


def test_the_figure_has_a_line_a_setting() -> None:
    frame = pd.concat([runs(), runs(setting="TotalHeavyTail")], ignore_index=True)
    section = length_section(length_tables(frame), frame)
    assert section.body.count("fill-opacity:0.13") == 2  # a band for each line
    assert "<title>Duality" in section.body
    assert section.body.count("<details") == 2  # the long tables
    assert "8 runs" in section.body
