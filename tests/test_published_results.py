"""The numbers in docs/results.md are those of the published runs, by another route than the report's."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from longshift.paper.published_tables import overall_results
from longshift.report.titles import method_title
from longshift.toml import read_toml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
PLUS = ROOT / "docs" / "ndcl-plus.md"
TABLES = sorted(path.parent / "runs.parquet" for path in (ROOT / "results").rglob("sweep.toml"))
METHODS = 24
SETTINGS = ("TotalHeavyTail", "Duality", "GINIDG")
CANDIDATE = "NDCL, domain prior, no con"
NOT_IN_THE_PAPER = ("NDCL-plus", CANDIDATE)
MEASURES = ("validation_accuracy", "target_accuracy", "target_few")
PAIR = ["setting", "target", "trial"]


def rows_of(heading: str, first: str, page: Path = PAGE) -> dict[str, list[str]]:
    """The table under a heading whose first column is called `first`: cells by the name of the row, without bold."""
    text = f"\n{page.read_text(encoding='utf-8')}".split(f"\n{heading}\n")[1]
    lines = text[text.index(f"| {first}") :].splitlines()
    rows: dict[str, list[str]] = {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        name, *cells = [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
        rows[name] = cells
    return rows


def read(folder: str) -> pd.DataFrame:
    frame = pd.read_parquet(ROOT / "results" / folder / "runs.parquet")
    return frame.assign(method=frame.method.map(method_title))


def differences(frame: pd.DataFrame, method: str, other: str, measure: str) -> pd.Series:
    """Points, in every setting, target and trial that both have."""
    one, two = (frame[frame.method == name].set_index(PAIR)[measure] for name in (method, other))
    return 100 * (one - two).dropna()


def assert_difference(cell: str, pairs: pd.Series) -> None:
    """`+1.6 ± 1.5`, standard errors with the divisor n."""
    assert "±" in cell
    assert_cell(cell, float(pairs.mean()), float(pairs.std(ddof=0) / len(pairs) ** 0.5))


def mean_over_trials(frame: pd.DataFrame, measure: str) -> tuple[float, float]:
    """In percent: targets averaged inside each trial, then mean and standard error (divisor n) over trials."""
    trials = 100 * frame.groupby("trial")[measure].mean()
    return float(trials.mean()), float(trials.std(ddof=0) / len(trials) ** 0.5)


@pytest.mark.parametrize("table", TABLES, ids=[str(t.parent.relative_to(ROOT / "results")) for t in TABLES])
def test_published_runs_are_of_their_sweep(table: Path) -> None:
    frame, sweep = pd.read_parquet(table), read_toml(table.parent / "sweep.toml")
    named = set(frame.method.str.removesuffix("+ema"))
    wanted = set(sweep["methods"])
    if "all" in wanted:
        published = set(overall_results().method)
        assert published <= named
        assert len(published) == METHODS
        wanted |= published
    wanted |= {variant["name"] for variant in sweep.get("variants", ())}
    assert not frame.duplicated(["fingerprint", "method"]).any()
    assert named <= wanted
    assert set(frame.setting) <= set(sweep["settings"])
    assert set(frame.trial) <= set(range(sweep["trials"]))
    assert set(frame.steps) == {sweep["run"]["steps"]}
    assert (frame.status == "done").all(), "docs/results.md says that none failed"
    assert (frame.selected_step > 0).all()
    assert frame.commit.notna().all()


def test_counts_of_runs() -> None:
    """Those of the overview; averaged weights are further rows of the same runs."""

    def runs(folder: str) -> pd.DataFrame:
        frame = pd.read_parquet(ROOT / "results" / folder / "runs.parquet")
        return frame[~frame.method.str.endswith("+ema")]

    said = {name: cells[1] for name, cells in rows_of("# Results on PACS", "| network").items()}
    tuned, study = runs("pacs-mobilenetv2"), runs("pacs-mobilenetv2/study")
    assert f": {len(tuned)} runs" in said["fine-tuned"]
    shared = study.fingerprint.isin(tuned.fingerprint).sum()
    assert f": {len(study)} runs, {shared} of them those of the comparison" in said["NDCL's choices"]
    assert f": {len(runs('pacs-mobilenetv2/long'))} runs" in said["long"]
    assert f": {len(runs('pacs-mobilenetv2/five-at-224px'))} runs" in said["short, large images"]
    frozen = runs("pacs-frozen")
    defaults = int((frozen.draw == 0).sum())
    assert f"{defaults} runs of 24 methods" in said["frozen"]
    assert f"{len(frozen) - defaults:,} with hyper-parameters drawn" in said["frozen"]
    variants = {*runs("pacs-frozen/study").fingerprint, *runs("pacs-frozen/candidates").fingerprint}
    among = len(variants & set(frozen.fingerprint))
    assert f"{len(variants)} on NDCL's variants ({among} of them among the others)" in said["frozen"]
    preset, changes = (len(runs(f"pacs-frozen/{name}")) for name in ("twenty-trials", "defaults"))
    assert f"{preset} of BSoftmax and NDCL-plus and {changes} of NDCL and three variants" in said["frozen"]


def test_methods_fine_tuned() -> None:
    frame = read("pacs-mobilenetv2")
    ours = frame[~frame.method.isin(NOT_IN_THE_PAPER)]
    means = ours.pivot_table(index="method", columns=["setting", "target"], values="target_accuracy")
    ranks = means.rank(ascending=False).mean(axis=1)
    rows = rows_of("## Fine-tuned: 24 methods", "method")
    assert set(rows) == set(frame.method)
    ranked = list(rows)[:METHODS]
    assert ranked == sorted(ranked, key=lambda name: ranks[name])
    published = overall_results()
    averages = published[(published.dataset == "PACS") & (published.group == "average")]
    paper = averages.set_index(["method", "setting"])["mean"]
    for name, cells in rows.items():
        own = name in ranked
        assert cells[2::3] == [f"{paper[name.lower(), setting]:.1f}" if own else "-" for setting in SETTINGS]
        assert float(cells[-1]) == pytest.approx(ranks[name], abs=0.051) if own else cells[-1] == "-"
        for setting, (accuracy, few) in zip(SETTINGS, [cells[0:2], cells[3:5], cells[6:8]], strict=True):
            part = frame[(frame.method == name) & (frame.setting == setting)]
            for cell, measure in ((accuracy, "target_accuracy"), (few, "target_few")):
                assert ("±" in cell) == (part.trial.nunique() == 3)
                assert_cell(cell, *mean_over_trials(part, measure))


def test_the_table_of_the_readme() -> None:
    page = rows_of("## Fine-tuned: 24 methods", "method")
    rows = rows_of("## What we measured", "|", ROOT / "README.md")
    assert len(rows) == 4
    for name, cells in rows.items():
        short = re.split(r"[],]", name.removeprefix("["))[0]
        assert cells == [page[short][column] for column in (0, 1, 3, 4)]


def test_paired_differences_fine_tuned() -> None:
    frame = read("pacs-mobilenetv2")
    rows = rows_of("## Fine-tuned: 24 methods", "points")
    spans = {"both": SETTINGS[:2], **{name: (name,) for name in SETTINGS}}
    assert len(rows) == 20
    for name, (number, *cells) in rows.items():
        compared, _, span = name.rpartition(": ")
        method, other = compared.split(" - ")
        part = frame[frame.setting.isin(spans[span])]
        for cell, measure in zip(cells, MEASURES, strict=True):
            pairs = differences(part, method, other, measure)
            assert len(pairs) == int(number)
            assert_difference(cell, pairs)


def test_choices_of_ndcl_fine_tuned() -> None:
    frame = read("pacs-mobilenetv2/study")
    rows = rows_of("## Fine-tuned: NDCL's open choices", "variant")
    named = {"NDCL-plus (domain prior, no weight, no con)": "NDCL-plus", "BSoftmax": "BSoftmax", "ERM": "ERM"}
    assert {named.get(name, f"NDCL, {name}") for name in rows} == set(frame.method) - {"NDCL"}
    gains = []
    for name, (number, *cells) in rows.items():
        for cell, measure in zip(cells, MEASURES, strict=True):
            pairs = differences(frame, named.get(name, f"NDCL, {name}"), "NDCL", measure)
            assert len(pairs) == int(number)
            assert_difference(cell, pairs)
        gains.append(float(cells[0].split(" ")[0]))
    assert gains == sorted(gains, reverse=True)


def test_long_runs() -> None:
    frame = read("pacs-mobilenetv2/long")
    rows = rows_of("## Fine-tuned: 24 methods", "| 200 | 400 | 600 | 800")
    assert set(rows) == set(frame.setting)
    for setting, cells in rows.items():
        curves = frame[frame.setting == setting].validation_curve.map(lambda text: dict(json.loads(text)))
        means = 100 * pd.DataFrame(list(curves)).mean()
        assert [f"{value:.1f}" for value in means] == cells


def three_series() -> list[pd.DataFrame]:
    """TotalHeavyTail and Duality with default hyper-parameters: 600 steps, 300 steps, frozen features."""
    frames = [read(folder) for folder in ("pacs-mobilenetv2", "pacs-mobilenetv2/five-at-224px", "pacs-frozen")]
    return [frame[(frame.draw == 0) & frame.setting.isin(SETTINGS[:2])] for frame in frames]


def test_points_over_erm_in_three_series() -> None:
    rows = rows_of("# Results on PACS", "points over ERM")
    assert len(rows) == 6
    for name, cells in rows.items():
        method, setting = name.split(": ")
        for cell, frame in zip(cells, three_series(), strict=True):
            pairs = differences(frame[frame.setting == setting], method, "ERM", "target_accuracy")
            assert len(pairs) == 12
            assert_difference(cell, pairs)


def test_long_runs_by_method() -> None:
    frame = read("pacs-mobilenetv2/long")
    rows = rows_of("## Fine-tuned: 24 methods", "TotalHeavyTail / Duality")
    assert set(rows) == set(frame.method)
    for method, cells in rows.items():
        for place, setting in enumerate(SETTINGS[:2]):
            part = frame[(frame.method == method) & (frame.setting == setting)]
            curves = pd.DataFrame([dict(json.loads(text)) for text in part.validation_curve])
            values = [curves[600], curves[1200], curves[1800], part.target_accuracy, part.last_target_accuracy]
            for cell, value in zip(cells, values, strict=True):
                assert float(cell.split(" / ")[place]) == pytest.approx(100 * value.mean(), abs=0.051)


def test_correlations_of_orders() -> None:
    tuned, frozen = (read(folder) for folder in ("pacs-mobilenetv2", "pacs-frozen"))
    tuned = tuned[~tuned.method.isin(NOT_IN_THE_PAPER)]
    orders = {s: tuned[tuned.setting == s].groupby("method").target_accuracy.mean() for s in SETTINGS}
    spans = {}
    for setting in SETTINGS:
        table = tuned[tuned.setting == setting].pivot_table(index="method", columns="target", values="target_accuracy")
        ranks = np.triu(table.corr(method="spearman").to_numpy(), 1)
        spans[setting] = f"{ranks[ranks != 0].min():.2f} to {ranks[ranks != 0].max():.2f}"
    between = [orders[a].corr(orders[b], method="spearman") for a, b in combinations(SETTINGS, 2)]
    part = frozen[(frozen.draw == 0) & frozen.method.isin(orders[SETTINGS[0]].index)]
    beside = [
        orders[s].corr(part[part.setting == s].groupby("method").target_accuracy.mean(), method="spearman")
        for s in SETTINGS
    ]
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{spans['TotalHeavyTail']} and {spans['GINIDG']} there (Duality: {spans['Duality']}" in text
    assert f"between settings {min(between):.2f} to {max(between):.2f}" in text
    assert "frozen features it is {:.2f}, {:.2f} and {:.2f}".format(*beside) in text


def test_the_preset_against_balanced_softmax() -> None:
    rows = rows_of("## Why it works", "NDCL-plus minus BSoftmax", PLUS)
    named = ["fine-tuned, 600 steps, 160 px", "fine-tuned, 300 steps, 224 px", "frozen features, 300 steps"]
    assert list(rows) == [*named, "all three (72 pairs)"]
    frames = three_series()
    for cells, part in zip(rows.values(), [[frame] for frame in frames] + [frames], strict=True):
        for cell, measure in zip(cells, MEASURES, strict=True):
            found = [differences(frame, "NDCL-plus", "BSoftmax", measure) for frame in part]
            assert [len(pairs) for pairs in found] == [24] * len(part)
            assert_difference(cell, pd.concat(found))


def test_five_methods_fine_tuned() -> None:
    frame = read("pacs-mobilenetv2/five-at-224px")
    rows = rows_of("## Fine-tuned: five methods at 224 px", "|")
    assert set(rows) == set(frame.method)
    for name, cells in rows.items():
        for setting, (accuracy, few) in zip(SETTINGS, [cells[0:2], cells[2:4]], strict=False):
            part = frame[(frame.method == name) & (frame.setting == setting)]
            assert_cell(accuracy, *mean_over_trials(part, "target_accuracy"))
            assert_cell(few, *mean_over_trials(part, "target_few"))


def test_methods_on_frozen_features() -> None:
    frame = read("pacs-frozen")
    frame = frame[frame.draw == 0]
    rows = rows_of("## The methods on frozen features", "method")
    assert set(rows) == set(frame.method[~frame.method.str.endswith(" + EMA")])
    assert len(rows) == METHODS + 1
    for name, cells in rows.items():
        for setting, (accuracy, few) in zip(SETTINGS, [cells[0:2], cells[2:4], cells[4:6]], strict=True):
            part = frame[(frame.method == name) & (frame.setting == setting)]
            assert_cell(accuracy, *mean_over_trials(part, "target_accuracy"))
            assert_cell(few, *mean_over_trials(part, "target_few"))


def test_variants_on_frozen_features() -> None:
    frame = read("pacs-frozen/study")
    frame = frame[~frame.method.str.endswith(" + EMA")]
    rows = rows_of("## NDCL's open choices on frozen features", "variant")
    named = {"NDCL as printed": "NDCL", "BSoftmax": "BSoftmax", "ERM": "ERM"}
    named["NDCL-plus (domain prior, no weight, no con)"] = "NDCL-plus"
    assert {named.get(name, f"NDCL, {name}") for name in rows} == set(frame.method)
    for name, cells in rows.items():
        for setting, cell in zip(SETTINGS, cells, strict=False):
            part = frame[(frame.method == named.get(name, f"NDCL, {name}")) & (frame.setting == setting)]
            measures = ("validation_accuracy", "target_accuracy", "target_few")
            for number, measure in zip(cell.split(" / "), measures, strict=True):
                assert float(number) == pytest.approx(100 * part[measure].mean(), abs=0.051)


def test_twenty_trials_of_the_preset() -> None:
    frame = read("pacs-frozen/twenty-trials")
    rows = rows_of("## Why it works", "NDCL-plus minus BSoftmax, frozen features", PLUS)
    assert set(rows) == set(frame.setting)
    for setting, cells in rows.items():
        measures = ("validation_accuracy", "target_accuracy", "target_many", "target_few")
        for cell, measure in zip(cells, measures, strict=True):
            pairs = differences(frame[frame.setting == setting], "NDCL-plus", "BSoftmax", measure)
            assert len(pairs) == 80
            assert_difference(cell, pairs)


def test_twenty_trials_of_two_changes() -> None:
    frame = read("pacs-frozen/defaults")
    rows = rows_of("## Fine-tuned: NDCL's open choices", "minus NDCL, frozen features")
    assert len(rows) == 6
    for name, cells in rows.items():
        variant, setting = name.split(": ")
        measures = ("validation_accuracy", "target_accuracy", "target_many", "target_few")
        for cell, measure in zip(cells, measures, strict=True):
            pairs = differences(frame[frame.setting == setting], f"NDCL, {variant}", "NDCL", measure)
            assert len(pairs) == 80
            assert_difference(cell, pairs)


def assert_cell(cell: str, mean: float, error: float) -> None:
    """`53.3` or `53.3 ± 0.3`, rounded to the printed digit."""
    number, *rest = cell.split(" ± ")
    for text, value in zip([number, *rest], (mean, error), strict=False):
        digits = len(text.partition(".")[2])
        assert float(text) == pytest.approx(value, abs=0.51 * 10**-digits)
