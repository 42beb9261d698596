"""Whether runs were long enough: means, thirds and gains from curves of validation accuracy."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from longshift.report.sections import length_sections
from longshift.report.summary_facts import curve_groups, still_rising
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


def test_gains_of_the_last_third() -> None:
    (group,) = curve_groups(runs())
    values = np.array(list(CURVES.values()))
    np.testing.assert_allclose(group.accuracy, values)
    np.testing.assert_allclose(group.last_gains(), values[:, 2] - values[:, 1])


def test_a_step_that_some_runs_lack_does_not_count() -> None:
    frame = runs()
    frame.loc[0, "validation_curve"] = "[[150, 0.5], [200, 0.6], [300, 0.7]]"
    (group,) = curve_groups(frame)
    assert group.steps == [200, 300]


@pytest.mark.parametrize(("length", "gain"), [(300, 0.1), (299, 0.1), (450, None), (90, None)])
def test_thirds_end_at_the_last_evaluation_inside_them(length: int, gain: float | None) -> None:
    frame = runs({("erm", 0): (0.1, 0.2, 0.3)}).assign(steps=length)
    frame["validation_curve"] = "[[0, 0.0], [100, 0.1], [200, 0.2], [300, 0.3]]"
    (group,) = curve_groups(frame)
    assert group.last_gains().tolist() == ([] if gain is None else [pytest.approx(gain)])


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
    (group,) = curve_groups(frame)
    np.testing.assert_allclose(group.accuracy, [*CURVES.values(), (0.1, 0.2, 0.3)])


def test_runs_that_still_rise_are_found_with_their_settings() -> None:
    rising = {key: (0.3, 0.5, 0.5 + 0.03 * (1 + trial)) for key in CURVES for trial in [key[1]]}
    flat = dict.fromkeys(CURVES, (0.3, 0.5, 0.505))
    assert still_rising(runs(flat)) is still_rising(as_frame([row("erm", 0)])) is None
    found, some = still_rising(runs(rising)), still_rising(pd.concat([runs(flat), runs(rising, "Cross")]))
    assert found is not None
    assert some is not None
    assert (found.everywhere, some.everywhere, some.titles) == (True, False, ("Cross",))
    assert (found.gain, some.gain) == pytest.approx((0.045, 0.045))


def test_the_figure_has_a_line_a_setting() -> None:
    frame = pd.concat([runs(), runs(setting="TotalHeavyTail")], ignore_index=True)
    (section,) = length_sections(frame)
    assert section.body.count("fill-opacity:0.13") == 2  # a band for each line
    for without in (frame.drop(columns="validation_curve"), frame.assign(validation_curve="")):
        assert length_sections(without) == []
