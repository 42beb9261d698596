"""The numbers in docs/results.md are those of the published runs, by another route than the report's."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from longshift.experiments.paper import overall_results
from longshift.report.names import method_title
from longshift.toml import read_toml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
TABLES = sorted((ROOT / "results").rglob("runs.csv"))
METHODS = 24
SETTINGS = ("TotalHeavyTail", "Duality", "GINIDG")


def rows_of(heading: str, first: str) -> dict[str, list[str]]:
    """The table under a heading whose first column is called `first`: cells by the name of the row, without bold."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n{heading}\n")[1]
    lines = text[text.index(f"| {first}") :].splitlines()
    rows: dict[str, list[str]] = {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        name, *cells = [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
        rows[name] = cells
    return rows


def read(folder: str) -> pd.DataFrame:
    frame = pd.read_csv(ROOT / "results" / folder / "runs.csv")
    return frame.assign(method=frame.method.map(method_title))


def mean_over_trials(frame: pd.DataFrame, measure: str) -> tuple[float, float]:
    """In percent: targets averaged inside each trial, then mean and standard error (divisor n) over trials."""
    trials = 100 * frame.groupby("trial")[measure].mean()
    return float(trials.mean()), float(trials.std(ddof=0) / len(trials) ** 0.5)


@pytest.mark.parametrize("table", TABLES, ids=[str(t.parent.relative_to(ROOT / "results")) for t in TABLES])
def test_published_runs_are_of_their_sweep(table: Path) -> None:
    frame, sweep = pd.read_csv(table), read_toml(table.parent / "sweep.toml")
    named = set(frame.method.str.removesuffix("+ema"))
    wanted = {name for name in named if "," not in name} if sweep["methods"] == "all" else set(sweep["methods"])
    assert sweep["methods"] != "all" or len(wanted) == METHODS
    wanted |= {variant["name"] for variant in sweep.get("variants", ())}
    assert not frame.duplicated(["fingerprint", "method"]).any()
    assert named <= wanted
    assert set(frame.setting) <= set(sweep["settings"])
    assert set(frame.trial) <= set(range(sweep["trials"]))
    assert set(frame.steps) == {sweep["run"]["steps"]}
    assert (frame.status == "done").all(), "docs/results.md says that none failed"
    assert (frame.selected_step > 0).all()
    assert frame.commit.notna().all()


def test_methods_fine_tuned() -> None:
    frame = read("pacs-mobilenetv2")
    frame = frame[~frame.method.str.contains(",")]
    means = frame.pivot_table(index="method", columns=["setting", "target"], values="target_accuracy")
    ranks = means.rank(ascending=False).mean(axis=1)
    rows = rows_of("## Fine-tuned: 24 methods", "method")
    assert set(rows) == set(frame.method)
    assert list(rows) == sorted(rows, key=lambda name: ranks[name])
    published = overall_results()
    averages = published[(published.dataset == "PACS") & (published.group == "average")]
    paper = averages.set_index(["method", "setting"])["mean"]
    for name, cells in rows.items():
        assert [float(cell) for cell in cells[2::3]] == [paper[name.lower(), setting] for setting in SETTINGS]
        assert float(cells[-1]) == pytest.approx(ranks[name], abs=0.051)
        for setting, (accuracy, few) in zip(SETTINGS, [cells[0:2], cells[3:5], cells[6:8]], strict=True):
            part = frame[(frame.method == name) & (frame.setting == setting)]
            for cell, measure in ((accuracy, "target_accuracy"), (few, "target_few")):
                assert_cell(cell, *mean_over_trials(part, measure))


def test_paired_differences_fine_tuned() -> None:
    frame = read("pacs-mobilenetv2")
    rows = rows_of("## Fine-tuned: 24 methods", "points")
    compared = {
        "NDCL - ERM: TotalHeavyTail": ("NDCL", "ERM", SETTINGS[:1]),
        "Duality": ("NDCL", "ERM", SETTINGS[1:2]),
        "GINIDG": ("NDCL", "ERM", SETTINGS[2:]),
        "all 12": ("NDCL", "ERM", SETTINGS),
        "BSoftmax - ERM, all 12": ("BSoftmax", "ERM", SETTINGS),
        "ReWeight - ERM, all 12": ("ReWeight", "ERM", SETTINGS),
        "NDCL - BSoftmax, all 12": ("NDCL", "BSoftmax", SETTINGS),
    }
    assert set(rows) == set(compared)
    key = ["setting", "target", "trial"]
    for name, (method, other, settings) in compared.items():
        part = frame[frame.setting.isin(settings)]
        one, two = (part[part.method == which].set_index(key) for which in (method, other))
        for cell, measure in zip(rows[name], ("validation_accuracy", "target_accuracy", "target_few"), strict=True):
            pairs = 100 * (one[measure] - two[measure])
            assert len(pairs) == 4 * len(settings)
            assert_cell(cell, float(pairs.mean()), float(pairs.std(ddof=0) / len(pairs) ** 0.5))


def test_five_methods_fine_tuned() -> None:
    frame = read("pacs-mobilenetv2/five-at-224px")
    rows = rows_of("## Fine-tuned: five methods, three trials", "|")
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
    assert len(rows) == METHODS
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
    assert {named.get(name, f"NDCL, {name}") for name in rows} == set(frame.method)
    for name, cells in rows.items():
        for setting, cell in zip(SETTINGS, cells, strict=False):
            part = frame[(frame.method == named.get(name, f"NDCL, {name}")) & (frame.setting == setting)]
            measures = ("validation_accuracy", "target_accuracy", "target_few")
            for number, measure in zip(cell.split(" / "), measures, strict=True):
                assert float(number) == pytest.approx(100 * part[measure].mean(), abs=0.051)


def assert_cell(cell: str, mean: float, error: float) -> None:
    """`53.3` or `53.3 ± 0.3`, rounded to the printed digit."""
    number, *rest = re.split(r" ± ", cell)
    assert float(number) == pytest.approx(mean, abs=0.051)
    if rest:
        assert float(rest[0]) == pytest.approx(error, abs=0.051)
