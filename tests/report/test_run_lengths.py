"""Whether runs were long enough: means, thirds and gains from curves of validation accuracy."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from longshift.errors import LongshiftError
from longshift.report.kinds import build_tables
from longshift.report.run_lengths import curve_groups, still_rising
from longshift.report.sections import length_section
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


def numbers(frame: pd.DataFrame) -> dict[str, tuple[float | None, float | None]]:
    """Value and error of each column of the only row."""
    (table,) = build_tables(frame, ["length"])
    (found,) = table.rows
    return {c.key["measure"]: (cell.value, cell.stderr) for c, cell in zip(table.columns, found.cells, strict=True)}


def test_means_gains_and_their_errors() -> None:
    found, values = numbers(runs()), np.array(list(CURVES.values()))
    for measure, own in (
        ("one_third", values[:, 0]), ("two_thirds", values[:, 1]), ("end", values[:, 2]),
        ("middle_gain", values[:, 1] - values[:, 0]), ("last_gain", values[:, 2] - values[:, 1]),
    ):  # fmt: skip
        assert found[measure] == pytest.approx((100 * own.mean(), 100 * own.std() / 2))
    assert (found["runs"], found["steps"]) == ((4, None), (300, None))
    assert found["chosen_late"] == (75, None)  # three of four chose step 300


def test_a_step_that_some_runs_lack_is_not_averaged() -> None:
    frame = runs()
    frame.loc[0, "validation_curve"] = "[[150, 0.5], [200, 0.6], [300, 0.7]]"
    (group,) = curve_groups(frame)
    assert group.steps == [200, 300]
    found = numbers(frame)
    assert found["one_third"] == (None, None)
    assert found["last_gain"][0] is not None


@pytest.mark.parametrize(
    ("length", "thirds"), [(300, [100, 200, 300]), (299, [0, 100, 200]), (450, [100, 300, 300]), (90, [0, 0, 0])]
)
def test_thirds_end_at_the_last_evaluation_inside_them(length: int, thirds: list[int]) -> None:
    frame = runs({("erm", 0): (0.1, 0.2, 0.3)}).assign(steps=length)
    frame["validation_curve"] = "[[0, 0.0], [100, 0.1], [200, 0.2], [300, 0.3]]"
    (group,) = curve_groups(frame)
    assert [group.steps[at] for k in (1, 2, 3) if (at := group.third(k)) is not None] == thirds


def test_runs_of_other_lengths_settings_and_datasets_stand_apart() -> None:
    short_runs = runs({("erm", 0): (0.5, 0.6)}).assign(steps=200, fingerprint="short")
    parts = [runs(), short_runs, runs(setting="TotalHeavyTail"), runs(setting="GINIDG").assign(dataset="PACS")]
    groups = curve_groups(pd.concat(parts, ignore_index=True))
    assert [g.title for g in groups] == [
        "PACS, GINIDG", "digits, TotalHeavyTail", "digits, Duality, 200 steps", "digits, Duality, 300 steps",
    ]  # fmt: skip


def test_a_run_counts_once_and_only_if_it_finished() -> None:
    same = {**CURVES, ("ndcl_same", 0): CURVES["ndcl", 0], ("ndcl_other", 0): (0.1, 0.2, 0.3)}
    frame = runs(same)
    shared = frame.loc[(frame["method"] == "ndcl") & (frame["trial"] == 0), "fingerprint"].iloc[0]
    frame.loc[frame["method"] == "ndcl_same", "fingerprint"] = shared
    frame = pd.concat([frame, runs().assign(method="erm+ema"), runs().assign(status="diverged")], ignore_index=True)
    values = np.array([*CURVES.values(), (0.1, 0.2, 0.3)])
    found = numbers(frame)
    assert (found["runs"][0], found["end"][0]) == pytest.approx((5, 100 * values[:, 2].mean()))


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
        with pytest.raises(LongshiftError, match="length"):
            build_tables(without, ["length"])


def test_the_figure_has_a_line_a_setting() -> None:
    frame = pd.concat([runs(), runs(setting="TotalHeavyTail")], ignore_index=True)
    section = length_section(build_tables(frame, ["length"]), frame)
    assert section.body.count("fill-opacity:0.13") == 2  # a band for each line
