"""Numbers, marks and gaps of the tables."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from longshift.errors import LongshiftError
from longshift.methods import all_methods
from longshift.paper.published_tables import overall_results, paper_table
from longshift.report.missing_runs import find_missing
from longshift.report.report_tables import build_tables
from longshift.report.table import Cell, Table, places, slug
from longshift.report.table_registry import ReportRuns
from longshift.report.titles import family, method_title, order_methods
from longshift.results import as_frame
from longshift.results.selection import RULES, Rule, standard_error
from tests.report.fake import frame, row, rows


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


@pytest.mark.parametrize("rule", RULES)
def test_a_table_says_which_selection_made_it(rule: Rule) -> None:
    table = build_tables(ReportRuns(frame(), rule), ["average"])[0]
    assert table.rule == rule
    assert f"Selection: {rule} (" in table.caption


def test_oracle_numbers_are_the_oracles() -> None:
    runs = as_frame([row("erm", 0, value=0.5), row("ndcl", 0, value=0.6)])
    assert (
        cell(build_tables(ReportRuns(runs, "oracle"), ["average"])[0], "erm", measure="target_accuracy").text == "51.0"
    )
    assert build_tables(ReportRuns(runs, "oracle"), ["worst"]) == []


def test_first_second_third_are_the_papers_own_marks() -> None:
    for table, keys in (
        (overall_results(), ["dataset", "setting", "group"]),
        (paper_table("worst_domain"), ["dataset", "target"]),
    ):
        for _, column in table.groupby(keys):
            expected = [None if pd.isna(p) else int(p) for p in column["place"]]
            assert places([float(v) for v in column["mean"]]) == expected


@given(st.lists(st.one_of(st.none(), st.integers(-200, 1200).map(lambda n: n / 10)), max_size=30), st.booleans())
def test_places_are_shared_by_equals_and_skip_none(values: list[float | None], higher: bool) -> None:
    found = places(values, higher_is_better=higher)
    present = [v for v in values if v is not None]
    for value, place in zip(values, found, strict=True):
        if value is None or len(present) < 2:
            assert place is None
            continue
        better = {v for v in present if (v > value if higher else v < value)}
        assert place == (len(better) + 1 if len(better) < 3 else None)


def test_equal_when_printed_is_equal() -> None:
    assert places([50.01, 50.04, 49.94]) == [1, 1, 2]


def test_a_missing_trial_is_marked_counted_and_named() -> None:
    made = [r for r in rows() if not (r["method"] == "boda" and r["trial"] == 2 and r["target"] == "ink")]
    made += [row("boda", 2, d, "ink", status=s) for d, s in ((0, "failed"), (1, "waiting"))]
    runs = as_frame(made)
    table = build_tables(runs, ["average"])[0]
    found = cell(table, "boda", measure="target_accuracy")
    assert found.note == "2 of 3 trials"
    assert cell(table, "erm", measure="target_accuracy").note == ""
    assert table.footnotes == {"a": "2 of 3 trials"}
    (sentence,) = table.notes
    assert sentence.startswith("2 of 48 runs have no result (1 failed, 1 waiting): ")
    assert "BoDA on digits/Duality/ink, trial 2, draw 0 (failed)" in sentence
    per_target = build_tables(runs, ["target"])[0]
    assert cell(per_target, "boda", target="chalk").note == ""
    assert cell(per_target, "boda", target="ink").note == "2 of 3 trials"


def test_holes_in_a_folder_of_runs_are_found_without_a_plan() -> None:
    runs = as_frame(r for r in rows(draws=1) if not (r["method"] == "ndcl" and r["target"] == "ink"))
    missing = find_missing(runs)
    assert (missing.count, missing.expected) == (3, 24)
    assert missing.names()[0] == "NDCL on digits/Duality/ink, trial 0, draw 0 (no such run)"
    table = build_tables(runs, ["average"])[0]
    found = cell(table, "ndcl", measure="target_accuracy")
    assert (found.text, found.note) == ("–", "no complete trial")  # noqa: RUF001
    per_target = build_tables(runs, ["target"])[0]
    assert cell(per_target, "ndcl", target="ink").note == "not run here"


def test_fewer_draws_than_planned_are_said() -> None:
    made = [r for r in rows() if not (r["method"] == "erm" and r["draw"] == 1)]
    made += [row("erm", t, 1, x, status="diverged") for t in range(3) for x in ("chalk", "ink")]
    table = build_tables(as_frame(made), ["average"])[0]
    assert cell(table, "erm", measure="target_many").note == "chosen among fewer draws (6 diverged)"


def test_many_missing_runs_do_not_flood_the_table() -> None:
    made = [
        r if r["method"] != "boda" else row("boda", r["trial"], r["draw"], r["target"], status="waiting")
        for r in rows(trials=9)
    ]
    table = build_tables(as_frame(made), ["average"])[0]
    assert "36 of 144 runs" in table.notes[0]
    assert table.notes[0].endswith("BoDA on digits/Duality/ink, 18 runs (waiting).")
    many = as_frame(row("boda", 0, 0, f"t{i:02}", status="waiting" if i else "done") for i in range(40))
    assert build_tables(many, ["average"])[0].notes[-1].endswith("; and 27 more.")
    assert cell(table, "boda", measure="target_few").note == "no complete trial"


def test_a_group_without_classes_is_not_a_missing_run() -> None:
    runs = frame()
    runs["target_few"] = math.nan
    assert cell(build_tables(runs, ["average"])[0], "erm", measure="target_few").note == "no class in this group"


def test_one_trial_has_no_standard_error_and_one_method_no_places() -> None:
    table = build_tables(frame(methods=("ndcl",), trials=1), ["average"])[0]
    assert "±" not in table.rows[0].cells[0].text
    assert table.notes == ("One trial: there is no standard error.",)
    assert (
        "mean ± standard error over trials. Standard errors of means have divisor n, as in the paper; those of "
        "differences have n - 1."
    ) in table.caption
    assert not table.has_places


def test_nothing_finished_is_an_error_with_what_was_found() -> None:
    with pytest.raises(LongshiftError, match="found 2 waiting"):
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


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Cell(85.66, 0.44), "85.7 ± 0.4"),
        (Cell(-0.01, signed=True), "0.0"),
        (Cell(1.25, signed=True), "+1.2"),
        (Cell(100.0), "100.0"),
    ],
)
def test_numbers_are_printed_with_one_decimal(made: Cell, text: str) -> None:
    assert made.text == text


def test_tables_of_names_that_look_alike_do_not_share_a_file() -> None:
    tables = build_tables(frame(datasets=("a b", "a-b", "..", "/")), ["target"])
    assert len({t.name for t in tables}) == 4
    assert slug("../x") == "x"


def test_every_number_says_how_many_runs_it_rests_on() -> None:
    """Uneven work: some methods have one trial or one draw, others all; nothing is missing for that."""
    few = {("erm", 1, 0), ("erm", 2, 0), ("bsoftmax", 0, 1), ("bsoftmax", 1, 1), ("bsoftmax", 2, 1)}
    few |= {("boda", t, d) for t in range(3) for d in range(2) if (t, d) != (0, 0)} | {("erm", 1, 1), ("erm", 2, 1)}
    runs = as_frame(r for r in rows() if (r["method"], r["trial"], r["draw"]) not in few)
    table = build_tables(runs, ["average"])[0]
    assert "3 trials, the best of 2 draws in each, unless marked." in table.caption
    expected = {
        "erm": (1, 4, "1 of 3 trials"), "bsoftmax": (3, 6, "1 of 2 draws"),
        "boda": (1, 2, "1 of 3 trials, 1 of 2 draws"), "ndcl": (3, 12, ""),
    }  # fmt: skip
    for method, (trials, count, note) in expected.items():
        found = cell(table, method, measure="target_accuracy")
        assert (found.trials, found.runs, found.note) == (trials, count, note)
    assert table.notes == ()
    assert find_missing(runs).count == 0


def test_what_is_missing_is_counted_among_its_own_setting() -> None:
    made = [r for r in rows(settings=("Duality", "GINIDG"), draws=1) if r["target"] != "ink" or r["method"] != "erm"]
    made += [row("erm", t, target="ink", setting="GINIDG") for t in range(3)]
    table = next(t for t in build_tables(as_frame(made), ["average"]) if t.name == "average-duality")
    assert table.notes[0].startswith("3 of 24 runs have no result")


def test_runs_without_a_number_are_counted_once() -> None:
    runs = frame(methods=("erm", "ndcl"), trials=2, draws=1)
    lost = (runs["method"] == "ndcl") & (runs["trial"] == 0) & (runs["target"] == "ink")
    averaged = runs[(runs["method"] == "ndcl") & ~lost].assign(method="ndcl+ema")
    runs.loc[lost, "status"] = "failed"
    same = runs[runs["method"] == "ndcl"].assign(method="ndcl_same")  # the same runs under another name
    found = find_missing(pd.concat([runs, same, averaged]))
    assert (found.count, found.expected) == (1, 8)
    assert found.sentences() == (
        "1 of 8 runs has no result (1 failed): NDCL on digits/Duality/ink, trial 0, draw 0 (failed).",
    )
    alone = find_missing(averaged)  # a table of averaged weights alone has its own holes
    assert (alone.count, alone.expected) == (1, 4)
