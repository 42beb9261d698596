"""The page: words of the summary, sections, escaping, pictures of mistakes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from longshift.report.figure_sections import class_section, margin_section, rank_section
from longshift.report.figures import line_chart
from longshift.report.findings import summarize
from longshift.report.html_page import Page, Section, figure, paragraphs, render_page, write_page
from longshift.report.missing_runs import find_missing
from longshift.report.ranking import rank_methods, without_gaps
from longshift.report.report_tables import build_tables
from longshift.report.run_records import Record, read_records, run_folders
from longshift.report.sweep_page import report_page
from longshift.report.table_registry import ReportRuns
from longshift.report.weak_page_section import weak_section
from longshift.results import as_frame
from longshift.results.selection import choose
from longshift.sweep.collecting import collect
from longshift.training.run_config import Runtime, parse_run_config
from longshift.training.task import make_task
from longshift.training.trainer import Trainer
from tests.report.fake import frame, row
from tests.report.folders import write_run, write_runs

WILD = "<script>alert(1)</script>"


class Tags(HTMLParser):
    """Collects tags, ids and what a page would load or link to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "srcset", "data", "poster", "action") or (name == "href" and tag == "link"):
                self.loads.append(value or "")
            if name == "href" and tag == "a":
                self.links.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)


def page_of(root: Path, **options: Any) -> str:
    runs = collect(root)
    return render_page(
        report_page(ReportRuns(runs, folders=run_folders(root)), build_tables(runs), root / "page.html", **options)
    )


def words(runs: pd.DataFrame) -> str:
    chosen = choose(runs)
    return " ".join(summarize(chosen, rank_methods(chosen), find_missing(runs)))


@pytest.mark.slow
def test_names_from_data_never_become_html(tmp_path: Path) -> None:
    wild: dict[str, Any] = {
        "classes": (WILD, '"><img src=x onerror=alert(1)>', "dog"),
        "targets": (f"t{WILD}", "photo"),
    }
    write_runs(tmp_path, ("erm", "ndcl", "mine<b>"), predictions=True, **wild)
    found = Tags(page_of(tmp_path))
    assert found.tags.count("script") == 1
    assert found.handlers == []
    assert "b" not in found.tags
    assert "img" not in found.tags
    title = render_page(Page(WILD, [WILD], [Section(WILD, paragraphs(WILD), WILD)], [(WILD, WILD)], WILD))
    assert Tags(title).tags.count("script") == 1
    assert title.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 9


@pytest.mark.slow
def test_nothing_is_loaded_from_outside(tmp_path: Path) -> None:
    write_runs(tmp_path, ("erm", "ndcl"))
    html = page_of(tmp_path)
    found = Tags(html)
    assert all(load.startswith("data:") for load in found.loads)
    assert not re.search(r"url\((?!#)|@import|https?://", html)
    assert all(not re.match(r"[a-z]+:", link) for link in found.links)
    assert len(found.ids) == len(set(found.ids))


def test_links_lead_to_the_records(tmp_path: Path) -> None:
    write_runs(tmp_path / "some runs", ("erm", "ndcl"), trials=1)
    runs = collect(tmp_path / "some runs")
    given = ReportRuns(runs, folders=run_folders(tmp_path / "some runs"))
    page = report_page(given, build_tables(runs), tmp_path / "p" / "x.html")
    links = [link for link in Tags(render_page(page)).links if link.endswith("result.json")]
    assert "../some%20runs/ndcl-0-Duality-0/result.json" in links
    assert len(links) == 4


@pytest.mark.slow
def test_a_run_under_two_names_is_one_run(tmp_path: Path) -> None:
    write_runs(tmp_path, ("erm", "ndcl"), trials=1)
    runs = collect(tmp_path)
    same = runs[runs["method"] == "ndcl"].assign(method="ndcl_same")
    both = pd.concat([runs, same, same.assign(method="ndcl+ema")], ignore_index=True)
    given = ReportRuns(both, folders=run_folders(tmp_path))
    page = report_page(given, build_tables(both), tmp_path / "page.html")
    assert dict(page.facts) | {"Runs": "4 finished", "Methods": "3"} == dict(page.facts)
    html = render_page(page)
    assert "4 runs behind the figures, out of 4 finished." in html
    assert "over all runs of a method (2 runs per method)" in html


def test_a_page_of_your_own(tmp_path: Path) -> None:
    body = figure(line_chart([], "x", "y"), "a < b")
    write_page(Page("Mine", ["Look at this."], [Section("One", body)]), tmp_path / "new" / "page.html")
    text = (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert "<li>Look at this.</li>" in text
    assert "<figcaption>a &lt; b</figcaption>" in text
    assert "<nav" not in text


def test_the_winner_and_its_lead() -> None:
    runs = frame(trials=3, draws=1)
    chosen = choose(runs)
    result = rank_methods(chosen)
    assert result.winner == "ndcl"
    assert (result.cases, result.comparisons, result.firsts["ndcl"]) == (2, 1, 1)
    leads = []
    for trial in range(3):
        one = runs[runs["trial"] == trial]
        value = {m: float(one.loc[one["method"] == m, "target_accuracy"].mean()) for m in result.order[:2]}
        leads.append(value["ndcl"] - value["boda"])
    assert result.lead is not None
    assert result.lead.mean == pytest.approx(sum(leads) / 3)
    assert result.lead.stderr == pytest.approx(np.std(leads, ddof=1) / len(leads) ** 0.5)
    assert result.lead.p == pytest.approx(stats.ttest_1samp(leads, 0).pvalue)
    text = words(runs)
    assert f"NDCL is the best of 4 methods on unseen domains: {100 * result.mean['ndcl']:.1f}%" in text
    assert f"{100 * result.lead.mean:.1f} points ahead of BoDA" in text


def test_a_friedman_test_over_enough_cases() -> None:
    runs = frame(targets=tuple("abcdefgh"), draws=1)
    result = rank_methods(choose(runs))
    assert result.significance is not None
    values = [[float(runs[(runs["method"] == m) & (runs["target"] == t)]["target_accuracy"].mean()) for t in "abcdefgh"]
              for m in ("erm", "bsoftmax", "boda", "ndcl")]  # fmt: skip
    assert result.significance.test.chi2 == pytest.approx(stats.friedmanchisquare(*values).statistic)
    text = words(runs)
    assert "Over 8 cases the methods differ (Iman and Davenport's test, p < 0.001)" in text
    assert "NDCL is significantly better than" in text
    assert "ERM" in text


def test_cases_that_all_agree_are_told_instead_of_an_infinite_statistic() -> None:
    runs = frame(targets=("a", "b"), methods=("erm", "boda", "ndcl"), draws=1)
    result = rank_methods(choose(runs))
    assert result.significance is not None
    assert result.significance.test.unanimous
    caption = rank_section(result).body
    assert "Iman and Davenport: all cases rank the methods alike; p = 0.17." in caption
    assert "inf" not in caption.split("Iman and Davenport")[1]
    assert "All 2 cases rank the methods alike, but they are too few for a significant difference" in words(runs)


def test_datasets_may_have_targets_of_their_own() -> None:
    made = [row(m, 0, target=x, dataset=d, value=v) for d, targets in (("A", "abc"), ("B", "xy")) for x in targets
            for m, v in (("erm", 0.4), ("ndcl", 0.6), ("mmd", 0.5))]  # fmt: skip
    result = rank_methods(choose(as_frame(made)))
    assert (result.order, result.cases) == (("ndcl", "mmd", "erm"), 5)
    assert result.significance is not None
    assert result.significance.test.cases == 5


def test_methods_without_a_common_target_are_not_tested() -> None:
    made = [row("erm", 0, target="a", value=0.4), row("ndcl", 0, target="b", value=0.6), row("mmd", 0, status="failed")]
    result = rank_methods(choose(as_frame(made)))
    assert result.order == ("ndcl", "erm")
    assert result.significance is None
    text = words(as_frame(made))
    assert "The methods cannot be compared" in text
    assert "is the best of" not in text
    assert "fewer than two methods have all their runs" in text


def test_no_difference_is_said() -> None:
    made = [row(m, t, target=x, value=0.5) for m in ("erm", "ndcl") for t in range(2) for x in "abc"]
    assert "finds no significant difference between the methods" in words(as_frame(made))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"methods": ("ndcl",)}, "There is only one method"),
        (
            {"targets": ("ink",)},
            "No significance test: a test over cases (dataset, setting and target) needs at least 2, found 1",
        ),
        ({"trials": 1}, "How sure: one trial only"),
    ],
)
def test_what_cannot_be_said_is_said(options: dict[str, Any], sentence: str) -> None:
    assert sentence in words(frame(**options))


def test_weakness_and_gaps_are_named() -> None:
    made = [row("ndcl", t, target=x, value=v) for t in range(2) for x, v in (("easy", 0.9), ("hard", 0.4))]
    made += [row("erm", t, target=x, value=v) for t in range(2) for x, v in (("easy", 0.5), ("hard", 0.41))]
    made += [row("mmd", 0, target="easy", value=0.99)]
    text = words(as_frame(made))
    assert "NDCL is the best of 2 methods" in text  # MMD lacks a target: it cannot win
    assert "classes with few training samples reach 35.0%, 20.0 points less" in text
    assert "The hardest target for NDCL is hard (digits, Duality) with 40.0%" in text
    assert "Incomplete: 1 of 10 runs has no result" in text
    assert "Not ranked because they lack some of the cases or trials: MMD." in text


def record_with(record: Record, **run: Any) -> Record:
    values = {**vars(record), "result": {**record.result, "run": {**record.result["run"], **run}}}
    return Record(**values)


def test_images_that_are_gone_or_changed_are_a_sentence(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "ndcl", "sketch", predictions=True, data=str(tmp_path / "gone"))
    (record,) = read_records(choose(collect(tmp_path)), run_folders(tmp_path), ["ndcl"])
    assert "No examples: the images of" in weak_section([record]).body
    assert "has changed since the run" in weak_section([record_with(record, data="digits")]).body


def test_margin_curves_are_the_distribution_of_margins() -> None:
    section = margin_section({"A": np.array([-0.5, 0.0, 0.5, 1.0]), "B": None})
    tips = dict(re.findall(r"<title>A: margin δ (\S+), ([^%]+)%</title>", section.body))
    assert tips["-0.52"] == "0"
    assert tips["-0.5"] == "25"
    assert tips["0.98"] == "75"
    assert tips["1"] == "100"
    assert "Average margin: A 0.250" in section.body
    assert "no run kept them" in margin_section({"A": None}).body


@pytest.mark.slow
def test_a_real_run_shows_what_it_got_wrong(tmp_path: Path) -> None:
    values = {"data": "digits", "setting": "Duality", "target": "ink", "method": "erm", "steps": 3, "eval_every": 3}
    config = parse_run_config(values)
    Trainer(config, make_task(config), tmp_path / "run", Runtime(device="cpu", save_predictions=True)).run()
    html = page_of(tmp_path)
    found = Tags(html)
    assert found.tags.count("img") >= 8
    assert all(load.startswith("data:") for load in found.loads)
    assert "Average margin: ERM" in html
    (record,) = read_records(choose(collect(tmp_path)), run_folders(tmp_path), ["erm"])
    arrays = record.predictions()
    assert arrays is not None
    wrong = arrays["target_logits"].argmax(axis=1) != arrays["target_labels"]
    shown = re.findall(r'alt="(\d), misclassified as (\d)"', html)
    true = set(zip(arrays["target_labels"][wrong], arrays["target_logits"].argmax(axis=1)[wrong], strict=True))
    assert {(int(a), int(b)) for a, b in shown} <= {(int(a), int(b)) for a, b in true}
    assert "There is only one method" in html


def test_methods_within_a_standard_error_are_level() -> None:
    made = [row("ndcl", t, target=x, value=0.60 + 0.03 * (t - 1)) for t in range(3) for x in "abc"]
    made += [row("boda", t, target=x, value=0.59 + 0.01 * (1 - t)) for t in range(3) for x in "abc"]
    made += [row("erm", t, target=x, value=0.40) for t in range(3) for x in "abc"]
    result = rank_methods(choose(as_frame(made)))
    assert (result.winner, result.level) == ("ndcl", ("boda",))
    text = words(as_frame(made))
    assert "NDCL and BoDA are tied for the lead among 3 methods" in text
    assert "NDCL 60.0% and BoDA 59.0%" in text
    assert "the best" not in text


def best_rank_with_the_lower_mean(behind: float = 0.0003) -> list[dict[str, Any]]:
    """BSoftmax is first on five of eight targets, NDCL-plus has the higher mean by `behind`, ERM is far below both."""
    by = dict.fromkeys("abcde", 0.01) | dict.fromkeys("fgh", -(0.05 + 8 * behind) / 3)
    shift = {0: 0.006, 1: -0.006, 2: 0.0}  # of BSoftmax, by trial: a standard error of 0.35 points
    made = [row("bsoftmax", t, target=x, value=0.5523 + by[x] + s) for t, s in shift.items() for x in by]
    made += [row("ndcl_plus", t, target=x, value=0.5523) for t in shift for x in by]
    return made + [row("erm", t, target=x, value=0.3) for t in shift for x in by]


def test_the_best_rank_with_the_lower_mean_is_no_lead() -> None:
    """Reported by a user: "its lead is at most one standard error", next to a difference of -0.03 points."""
    frame_ = as_frame(best_rank_with_the_lower_mean())
    result = rank_methods(choose(frame_))
    assert (result.winner, result.level, result.above) == ("bsoftmax", ("ndcl_plus",), ())
    assert result.mean["bsoftmax"] < result.mean["ndcl_plus"]
    text = words(frame_)
    assert (
        "BSoftmax and NDCL-plus are tied for the lead among 3 methods on unseen domains: BSoftmax 55.2% and NDCL-plus "
        "55.2% on average over 8 cases; the difference is at most one standard error. BSoftmax has the better average "
        "rank, 1.38; NDCL-plus has 1.62." in text
    )
    assert "BSoftmax minus NDCL-plus is -0.03 points with a standard error of 0.35 over trials" in text
    assert f"p = {stats.ttest_1samp([0.0057, -0.0063, -0.0003], 0).pvalue:.2g}); no difference can be seen." in text
    for wrong in ("its lead", "ranks first", "rule out chance", "is the best"):
        assert wrong not in text


def test_the_difference_is_that_of_the_tied_methods() -> None:
    """The second by rank may be far behind the first, and the third tied with it."""
    values = {"ndcl": (0.5, 0.5, 0.5, 0.5), "boda": (0.49, 0.49, 0.49, 0.2), "erm": (0.48, 0.48, 0.48, 0.56)}
    noise = {"ndcl": (0.02, -0.02, 0.0)}
    made = [
        row(m, t, target=x, value=v + noise.get(m, (0.0, 0.0, 0.0))[t])
        for m, own in values.items()
        for x, v in zip("abcd", own, strict=True)
        for t in range(3)
    ]
    result = rank_methods(choose(as_frame(made)))
    assert (result.order, result.level, result.rival) == (("ndcl", "boda", "erm"), ("erm",), "erm")
    text = words(as_frame(made))
    assert "NDCL and ERM are tied for the lead among 3 methods" in text
    assert "How sure: NDCL and ERM differ by less than 0.01 points" in text
    assert "NDCL minus BoDA" not in text


def test_a_higher_mean_is_compared_with_the_best_rank() -> None:
    text = words(as_frame(best_rank_with_the_lower_mean(behind=0.02)))
    assert "Ranks and means disagree: BSoftmax ranks first of 3 methods" in text
    assert "How sure: BSoftmax minus NDCL-plus is -2.00 points" in text


def test_a_real_lead_keeps_its_sentences() -> None:
    made = [row("ndcl", t, target=x, value=0.60 + 0.02 * (t == 0)) for t in range(3) for x in "abc"]
    made += [row("erm", t, target=x, value=0.59) for t in range(3) for x in "abc"]
    text = words(as_frame(made))
    assert "NDCL comes first of 2 methods on unseen domains: 60.7% on average over 3 cases, 1.7 points ahead" in text
    assert "the trials alone do not rule out chance." in text


def test_methods_that_are_not_significantly_worse_are_named() -> None:
    value = {"erm": 0.3, "ndcl": 0.4, "bsoftmax": 0.55, "ndcl_plus": 0.56}
    made = [row(m, t, target=x, value=v) for m, v in value.items() for t in range(2) for x in "abcdefgh"]
    text = words(as_frame(made))
    assert "NDCL-plus is significantly better than NDCL and ERM, but not than BSoftmax (critical" in text
    equal = ("coral", "mmd", "irm", "vrex", "fish", "rdm")  # each is first at two of twelve targets
    made = [
        row(m, t, target=x, value=0.5 + 0.01 * ((i + k) % len(equal)))
        for i, m in enumerate(equal) for k, x in enumerate("abcdefghijkl") for t in range(2)
    ]  # fmt: skip
    made += [row("erm", t, target=x, value=0.2) for x in "abcdefghijkl" for t in range(2)]
    assert "is significantly better than ERM, but not than the other 5 (critical" in words(as_frame(made))


def test_methods_of_the_same_average_rank_share_it() -> None:
    ahead = {("ndcl", "a"): 0.61, ("erm", "b"): 0.62}
    made = [
        row(m, t, target=x, value=ahead.get((m, x), 0.6) + 0.05 * (t - 1))
        for m in ("ndcl", "erm")
        for t in range(3)
        for x in "ab"
    ]
    text = words(as_frame(made))
    level = "; the difference is at most one standard error (of the difference or of the other method's mean, whichever"
    assert "ERM 61.0% and NDCL 60.5% on average over 2 cases" + level in text
    assert "ERM and NDCL share the best average rank, 1.50." in text
    assert "more than chance explains, but no more than the standard error of NDCL's mean." in text
    assert "ranks first" not in text
    text = words(as_frame([r for r in made if r["target"] == "b"]))
    assert "ERM 62.0% and NDCL 60.0% on average over 1 case" + level in text
    assert "average rank" not in text  # one case has no average


def test_one_trial_has_no_standard_error_to_be_within() -> None:
    text = words(as_frame([row(m, 0, target=x, value=0.5) for m in ("ndcl", "erm") for x in "ab"]))
    assert "ERM 50.0% and NDCL 50.0% on average over 2 cases. ERM and NDCL share the best average rank, 1.50." in text
    assert "standard error" not in text


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (-0.0004, "NDCL minus ERM is -0.04 points with a standard error of 1.25 over trials"),
        (0.00004, "NDCL and ERM differ by less than 0.01 points, with a standard error of 1.25 over trials"),
    ],
)
def test_a_small_difference_does_not_contradict_the_means(ahead: float, said: str) -> None:
    """Means of 55.24 and 55.28% are shown as 55.2 and 55.3%: their difference must not be shown as 0.0."""
    shift = {0: 0.0125, 1: -0.0125}
    better = {"a": 0.01, "b": 0.01, "c": -0.02}  # NDCL ranks first, whatever the means
    made = [row("erm", t, target=x, value=0.5528) for t in shift for x in better]
    made += [
        row("ndcl", t, target=x, value=0.5528 + ahead + by + s) for t, s in shift.items() for x, by in better.items()
    ]
    assert said in words(as_frame(made))


def test_the_test_that_is_named_is_the_one_whose_p_is_shown() -> None:
    values = {"ndcl": (0.6, 0.6, 0.6, 0.4), "boda": (0.5, 0.5, 0.4, 0.5), "erm": (0.4, 0.4, 0.5, 0.3)}
    made = [row(m, t, target=x, value=v) for m, own in values.items() for x, v in zip("abcd", own, strict=True)
            for t in range(2)]  # fmt: skip
    result = rank_methods(choose(as_frame(made)))
    assert result.significance is not None
    test = result.significance.test
    assert f"{test.f_p:.3f}" != f"{test.chi2_p:.3f}"
    assert (
        f"Iman and Davenport's test finds no significant difference between the methods (p = {test.f_p:.3f})"
        in words(as_frame(made))
    )


def test_runs_of_a_method_are_counted_per_method(tmp_path: Path) -> None:
    for name, target in (("a", "ink"), ("b", "sketch")):
        write_run(tmp_path / name, "ndcl", target)
    write_run(tmp_path / "c", "erm", "ink")
    by_method = {m: read_records(choose(collect(tmp_path)), run_folders(tmp_path), [m]) for m in ("ndcl", "erm")}
    assert "over all runs of a method (1 to 2 runs per method)" in class_section(by_method).body
    assert "over all runs of a method (2 runs)" in class_section({"ndcl": by_method["ndcl"]}).body


def test_means_and_lead_are_of_the_trials_that_all_methods_have() -> None:
    made = [row("ndcl", t, target=x, value=0.7 - 0.1 * t) for t in range(3) for x in "ab"]
    made += [row("erm", 0, target=x, value=0.5) for x in "ab"]
    text = words(as_frame(made))
    assert "NDCL comes first, in one trial, of 2 methods" in text
    assert "70.0% on average over 2 cases, 20.0 points ahead of ERM." in text
    assert "How sure: one trial only that all ranked methods have, so" in text
    assert "Ranks use only trials that all ranked methods have. Left out: trial 1 and trial 2." in text
    assert "Left out: trial" not in words(as_frame(r for r in made if r["trial"] == 0))
    apart = [row("ndcl", 0, target=x, value=0.7) for x in "ab"] + [row("erm", 1, target=x, value=0.5) for x in "ab"]
    text = words(as_frame(apart))
    assert "The methods cannot be compared: no trial of a target has numbers of all of them." in text
    assert "No significance test: no trial of a target has numbers of all methods." in text


def test_only_cases_without_gaps_are_ranked() -> None:
    """One method lacks half of the cases and one case is lacked by most methods: both are left out, and named."""
    values = {"erm": 0.4, "boda": 0.5, "ndcl": 0.6, "mmd": 0.7}
    made = [row(m, t, target=x, value=v) for m, v in values.items() for t in range(2) for x in "abcdef"]
    made = [r for r in made if not (r["method"] == "mmd" and r["target"] in "abc")]
    made = [r for r in made if not (r["target"] == "f" and r["method"] in ("erm", "boda"))]
    result = rank_methods(choose(as_frame(made)))
    assert (result.order, result.left_out, result.cases_left_out) == (("ndcl", "boda", "erm"), ("mmd",), 1)
    assert result.significance is not None
    assert (result.significance.test.cases, set(result.significance.test.ranks)) == (5, {"erm", "boda", "ndcl"})
    section = rank_section(result)
    assert "Left out because they lack some of the cases or trials: MMD." in section.body
    assert "Left out because methods lack them: 1 case." in section.body
    assert "on average over 5 cases that all of them have (1 left out)" in words(as_frame(made))


@pytest.mark.slow
@given(st.lists(st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=3, max_size=3), min_size=1, max_size=6))
def test_leaving_out_ends_without_gaps_and_keeps_what_is_full(values: list[list[float | None]]) -> None:
    scores = pd.DataFrame(values, columns=list("abc"), dtype=float)
    found = without_gaps(scores)
    assert not found.isna().any().any()
    if not scores.isna().any().any():
        assert found.shape == scores.shape
    elif scores.notna().any().any():
        assert found.size > 0
