"""The sentence and the picture of the demonstration say what the runs say, whichever way they went."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from longshift.demo.demo_report import demo_page, demo_sweep, read_demo
from longshift.demo.rescued_classes import Rescue, average_ranks, method_scores
from longshift.report import ClassChange, class_changes
from longshift.report.html_page import render_page
from longshift.report.ranking import rank_methods
from longshift.results import as_frame
from longshift.results.selection import choose
from longshift.sweep.jobs import make_plan
from tests.report.fake import row
from tests.report.folders import write_run, write_runs

CLASSES = [ClassChange("dog", 900, 0.9, 0.8), ClassChange("owl", 4, 0.1, 0.5), ClassChange("cat", 40, 0.5, 0.52)]


def test_a_gain_names_the_classes_and_the_price() -> None:
    text = Rescue("ndcl_plus", (10.0, 50.0), (90.0, 80.0), (50.0, 61.0), CLASSES).sentence()
    assert "(ERM) recognizes 10%" in text
    assert "NDCL-plus recognizes 50% (+40.0 points), and rescues above all owl (10 → 50%)" in text
    assert "the price is 10.0 points on frequent classes (90 → 80%)" in text
    assert "rises from 50.0% to 61.0%" in text
    assert "cat" not in text


def test_a_loss_is_told_as_one() -> None:
    text = Rescue("ndcl", (50.0, 40.0), (80.0, 80.0), (61.0, 60.0), CLASSES).sentence()
    assert "(-10.0 points)" in text
    assert "rescues" not in text
    assert "no price to pay on frequent classes (80 → 80%)" in text
    assert "falls from 61.0% to 60.0%" in text


def test_a_tie_has_no_sign() -> None:
    text = Rescue("ndcl", (50.0, 49.98), (80.0, 80.0), (61.0, 61.0), CLASSES).sentence()
    assert "recognizes 50% (0.0 points)" in text


@pytest.mark.slow
def test_the_page_opens_with_the_sentence_and_the_picture(tmp_path: Path) -> None:
    root = write_runs(tmp_path / "runs", ("erm", "ndcl"), settings=("TotalHeavyTail", "Duality"))
    found = read_demo(root)
    assert found.rescue.method == "ndcl"
    records = [r for r in found.records if r.method == "erm"]
    right = sum(r.chosen["target"]["confusion"][2][2] for r in records)
    every = sum(sum(r.chosen["target"]["confusion"][2]) for r in records)
    assert found.rescue.classes[2].before == pytest.approx(right / every)
    html = render_page(demo_page(found, tmp_path / "index.html", "digits"))
    head, _, rest = html.partition("<main>")
    assert "<dl" not in head
    first, picture, summary = rest.index("rare classes"), rest.index("<svg "), rest.index('id="summary"')
    assert first < picture < summary
    drawn = rest[picture:summary]
    for text in ("TotalHeavyTail: the same classes are rare everywhere", "Duality:", "ERM", "NDCL", "owl"):
        assert text in drawn


@pytest.mark.slow
def test_the_picture_shows_the_leader_of_the_summary(tmp_path: Path) -> None:
    """BSoftmax is better on three of four cases, NDCL-plus has the higher mean."""
    settings, targets = ("TotalHeavyTail", "Duality"), ("photo", "sketch")
    for i, (setting, target) in enumerate(itertools.product(settings, targets)):
        for method, skill in {"erm": 0.0, "bsoftmax": 20.0 * (i < 3), "ndcl_plus": 2.0}.items():
            write_run(tmp_path / "runs" / f"{method}-{i}", method, target, setting=setting, skill=skill)
    found = read_demo(tmp_path / "runs")
    scores = method_scores(found.runs.chosen)
    assert scores["bsoftmax"][1] < scores["ndcl_plus"][1]
    assert found.rescue.method == "bsoftmax"
    page = demo_page(found, tmp_path / "index.html", "pacs-features")
    assert "BSoftmax ranks first" in page.summary[0]
    html = render_page(page)
    assert "The picture compares ERM with BSoftmax because BSoftmax has the best average rank of the methods" in html
    assert f"BSoftmax {found.rescue.ranks['bsoftmax']:.2f} and {scores['bsoftmax'][1]:.1f}%; NDCL-plus" in html
    assert html.count("so NDCL-plus runs without style mixing, the part that helps it on images.") == 1
    digits = render_page(demo_page(found, tmp_path / "index.html", "digits"))
    assert "style mixing" not in digits


def test_ranks_are_those_of_the_report() -> None:
    values = {"erm": (0.2, 0.2, 0.2, 0.2), "bsoftmax": (0.6, 0.6, 0.6, 0.3), "ndcl_plus": (0.5, 0.5, 0.5, 0.9)}
    made = [row(m, 0, target=x, value=v) for m, own in values.items() for x, v in zip("abcd", own, strict=True)]
    chosen = choose(as_frame(made))
    ranks, result = average_ranks(chosen), rank_methods(chosen)
    assert tuple(ranks) == result.order == ("bsoftmax", "ndcl_plus", "erm")
    assert result.significance is not None
    assert ranks == result.significance.test.ranks


def test_an_arrow_tells_both_numbers() -> None:
    drawn = str(class_changes({"A": CLASSES}, "ERM", "NDCL").svg())
    assert "owl, 4 training images: ERM 10.0%, NDCL 50.0% (+40.0 points)" in drawn
    assert ">+40<" in drawn
    assert ">-10<" in drawn
    assert drawn.index("dog") < drawn.index("owl  (4)")  # the most frequent class first


@pytest.mark.parametrize(("data", "jobs"), [("pacs-features", 96), ("digits", 48)])
def test_the_sweep_is_complete(data: str, jobs: int, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(demo_sweep(data, 3), encoding="utf-8")
    sweep, plan = make_plan(tmp_path)
    assert len(plan.jobs) == len({job.fingerprint for job in plan.jobs}) == jobs
    assert {case.config.benchmark for case in sweep.cases} == {"PACS" if data == "pacs-features" else None}
