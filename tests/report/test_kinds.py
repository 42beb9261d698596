"""Numbers, marks and gaps of the tables; kinds of tables, one of them from outside."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError, UsageError
from longshift.methods import all_methods
from longshift.paper.published_tables import overall_results, paper_table
from longshift.report.kinds import ReportRuns, build_tables, table_kinds
from longshift.report.runs import find_missing
from longshift.report.table import Cell, Table, places
from longshift.report.titles import family, method_title, order_methods
from longshift.sweep import as_frame, standard_error
from tests.report.fake import frame, row, rows

DOC = Path(__file__).parents[2] / "docs" / "guides" / "report.md"


def cell(table: Table, method: str, **key: str) -> Cell:
    (column,) = (j for j, c in enumerate(table.columns) if all(c.key.get(k) == v for k, v in key.items()))
    (found,) = (r.cells[column] for r in table.rows if r.name == method)
    return found


def test_the_best_draw_of_each_trial_is_averaged_over_targets_and_then_over_trials() -> None:
    runs = frame()
    table = build_tables(runs, ["average"])[0]
    done = runs[(runs["method"] == "boda") & (runs["draw"] == 1)]  # draw 1 has the better validation accuracy
    for measure in ("target_accuracy", "target_few"):
        trials = []
        for trial in range(3):
            values = [float(v) for v in done.loc[done["trial"] == trial, measure]]
            assert len(values) == 2
            trials.append(sum(values) / 2)
        found = cell(table, "boda", measure=measure)
        assert found.value == pytest.approx(100 * sum(trials) / 3)
        assert found.stderr == pytest.approx(100 * standard_error(pd.Series(trials)))
        assert found.note == ""


def test_each_kind_has_the_papers_shape() -> None:
    runs = frame(datasets=("PACS", "VLCS"), settings=("Duality", "GINIDG"))
    tables = build_tables(runs)
    assert [t.name for t in tables] == [
        "average-ginidg", "average-duality",
        "target-vlcs-ginidg", "target-pacs-ginidg", "target-vlcs-duality", "target-pacs-duality",
        "worst-ginidg", "worst-duality", "cost",
    ]  # fmt: skip
    average, target, worst, cost = tables[0], tables[2], tables[6], tables[8]
    assert average.groups() == [("VLCS", 4), ("PACS", 4)]
    assert [c.title for c in average.columns[:4]] == ["Average", "Many", "Medium", "Few"]
    assert [c.title for c in target.columns] == ["chalk", "ink", "Average"]
    assert worst.groups() == [("VLCS", 2), ("PACS", 2)]
    assert [r.title for r in average.rows] == ["ERM", "BSoftmax", "BoDA", "NDCL"]
    assert [f for f, _ in average.families()] == ["dg", "imbalance", "idg", "ndcl"]
    assert cell(cost, "erm", dataset="PACS").value == pytest.approx(12.5)
    assert "cpu: test" in cost.notes[0]
    accuracy = cell(target, "ndcl", target="ink").value
    other = cell(target, "ndcl", target="chalk").value
    assert accuracy is not None
    assert other is not None
    assert cell(target, "ndcl", target="").value == pytest.approx((accuracy + other) / 2)


def test_oracle_numbers_are_the_oracles() -> None:
    runs = as_frame([row("erm", 0, value=0.5), row("ndcl", 0, value=0.6)])
    assert (
        cell(build_tables(ReportRuns(runs, "oracle"), ["average"])[0], "erm", measure="target_accuracy").text == "51.0"
    )
    with pytest.raises(LongshiftError, match="worst"):
        build_tables(ReportRuns(runs, "oracle"), ["worst"])


def test_first_second_third_are_the_papers_own_marks() -> None:
    for table, keys in (
        (overall_results(), ["dataset", "setting", "group"]),
        (paper_table("worst_domain"), ["dataset", "target"]),
    ):
        for _, column in table.groupby(keys):
            expected = [None if pd.isna(p) else int(p) for p in column["place"]]
            assert places([float(v) for v in column["mean"]]) == expected


def test_equal_when_printed_is_equal() -> None:
    assert places([50.01, 50.04, 49.94]) == [1, 1, 2]


def test_a_missing_trial_is_marked_counted_and_named() -> None:
    made = [r for r in rows() if not (r["method"] == "boda" and r["trial"] == 2 and r["target"] == "ink")]
    made += [row("boda", 2, d, "ink", status=s) for d, s in ((0, "failed"), (1, "waiting"))]
    runs = as_frame(made)
    table = build_tables(runs, ["average"])[0]
    found = cell(table, "boda", measure="target_accuracy")
    assert found.trials == 2
    assert found.note
    assert cell(table, "erm", measure="target_accuracy").note == ""
    assert table.footnotes == {"a": found.note}
    (note,) = table.notes
    assert "48" in note
    per_target = build_tables(runs, ["target"])[0]
    assert cell(per_target, "boda", target="chalk").note == ""
    assert cell(per_target, "boda", target="ink").trials == 2


def test_holes_in_a_folder_of_runs_are_found_without_a_plan() -> None:
    runs = as_frame(r for r in rows(draws=1) if not (r["method"] == "ndcl" and r["target"] == "ink"))
    missing = find_missing(runs)
    assert (missing.count, missing.expected) == (3, 24)
    assert set(missing.frame["method"]) == {"ndcl"}
    assert set(missing.frame["target"]) == {"ink"}
    table = build_tables(runs, ["average"])[0]
    found = cell(table, "ndcl", measure="target_accuracy")
    assert found.value is None
    per_target = build_tables(runs, ["target"])[0]
    assert cell(per_target, "ndcl", target="ink").value is None


def test_a_group_without_classes_is_not_a_missing_run() -> None:
    runs = frame()
    runs["target_few"] = math.nan
    assert cell(build_tables(runs, ["average"])[0], "erm", measure="target_few").note
    assert find_missing(runs).count == 0


def test_nothing_finished_is_an_error_with_what_was_found() -> None:
    with pytest.raises(LongshiftError, match="2 waiting"):
        build_tables(as_frame([row("erm", t, status="waiting") for t in range(2)]))


def test_names_and_families_are_the_registrys() -> None:
    known = {name: cls for name, cls in all_methods().items() if cls.__module__.startswith("longshift.methods.")}
    for name, cls in known.items():
        assert method_title(name) == cls.info.title
        assert family(name) == ("ndcl" if name.startswith("ndcl") else cls.info.family)
    paper = list(dict.fromkeys(overall_results()["method"]))  # NDCL is the last
    assert order_methods(name for name, cls in known.items() if cls.info.row) == paper
    assert order_methods(["mine", "ndcl_plus", *paper]) == [*paper, "ndcl_plus", "mine"]
    assert (method_title("mine"), family("mine")) == ("mine", "other")


def test_every_number_says_how_many_runs_it_rests_on() -> None:
    """Uneven work: some methods have one trial or one draw, others all; nothing is missing for that."""
    few = {("erm", 1, 0), ("erm", 2, 0), ("bsoftmax", 0, 1), ("bsoftmax", 1, 1), ("bsoftmax", 2, 1)}
    few |= {("boda", t, d) for t in range(3) for d in range(2) if (t, d) != (0, 0)} | {("erm", 1, 1), ("erm", 2, 1)}
    runs = as_frame(r for r in rows() if (r["method"], r["trial"], r["draw"]) not in few)
    table = build_tables(runs, ["average"])[0]
    expected = {
        "erm": (1, 4, "1 of 3 trials"), "bsoftmax": (3, 6, "1 of 2 draws"),
        "boda": (1, 2, "1 of 3 trials, 1 of 2 draws"), "ndcl": (3, 12, ""),
    }  # fmt: skip
    for method, (trials, count, note) in expected.items():
        found = cell(table, method, measure="target_accuracy")
        assert (found.trials, found.runs, found.note) == (trials, count, note)
    assert table.notes == ()
    assert find_missing(runs).count == 0


def test_runs_without_a_number_are_counted_once() -> None:
    runs = frame(methods=("erm", "ndcl"), trials=2, draws=1)
    lost = (runs["method"] == "ndcl") & (runs["trial"] == 0) & (runs["target"] == "ink")
    averaged = runs[(runs["method"] == "ndcl") & ~lost].assign(method="ndcl+ema")
    runs.loc[lost, "status"] = "failed"
    same = runs[runs["method"] == "ndcl"].assign(method="ndcl_same")  # the same runs under another name
    found = find_missing(pd.concat([runs, same, averaged]))
    assert (found.count, found.expected) == (1, 8)
    alone = find_missing(averaged)  # a table of averaged weights alone has its own holes
    assert (alone.count, alone.expected) == (1, 4)


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


def test_a_pair_needs_both_and_one_setting_has_no_column_for_all() -> None:
    made = [row(m, t, value=v + 0.1 * t) for m, v in (("erm", 0.4), ("ndcl", 0.5)) for t in range(3)]
    made[4] = row("ndcl", 1, status="failed")
    made.append(row("boda", 7))
    (table,) = build_tables(ReportRuns(as_frame(made), against="erm"), ["paired"])
    assert {c.group for c in table.columns} == {"Duality"}
    found = {r.name: r.cells[1] for r in table.rows}
    assert found["ndcl"].value == pytest.approx(10)
    assert found["ndcl"].runs == 2
    assert found["boda"].value is None


@pytest.mark.slow
def test_the_row_to_compare_with_may_be_named_as_it_is_printed() -> None:
    for spelled in ("BSoftmax", "bsoftmax", "BSOFTMAX"):
        assert [r.name for r in paired(spelled).rows] == ["erm", "boda", "ndcl"]
    with pytest.raises(UsageError, match="bsoftmax"):
        paired("bsofmax")


def test_help_and_documentation_list_every_kind() -> None:
    shown = CliRunner().invoke(app, ["report", "--help"]).stdout
    written = DOC.read_text(encoding="utf-8")
    for kind in table_kinds():
        assert kind.name in shown
        assert f"`{kind.name}`" in written
