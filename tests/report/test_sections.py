"""The page: its words in a golden file, escaping, links, pictures of mistakes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from longshift.report.html_page import Page, Section, paragraphs, render_page
from longshift.report.kinds import ReportRuns, build_tables
from longshift.report.runs import read_records, run_folders
from longshift.report.sections import report_page
from longshift.sweep import as_frame, choose, collect
from longshift.training import Runtime, Trainer, make_task, parse_run_config
from tests.golden import check_golden
from tests.report.fake import row
from tests.report.folders import write_runs
from tests.report.page_words import words_of

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


def test_the_words_of_the_page(tmp_path: Path) -> None:
    """A small table of runs made by hand, with a missing run, averaged weights, quantities of the theory and curves."""
    level = {"erm": 0.5, "bsoftmax": 0.55, "ndcl": 0.6, "ndcl+ema": 0.61}
    made = [
        row(
            method, trial, target=target, value=value - 0.1 * j + 0.01 * trial * (-1) ** j, steps=300,
            target_margin=value - 0.4 + 0.1 * j, posterior_target=0.5 - value**2,
        )
        for method, value in level.items() for j, target in enumerate(("ink", "neon")) for trial in range(2)
    ]  # fmt: skip
    made[4] = row("bsoftmax", 0, target="ink", status="failed")
    runs = as_frame(made).assign(validation_curve="[[100, 0.5], [200, 0.75], [300, 0.8]]")
    given = ReportRuns(runs, against="erm")
    kinds = ["average", "paired", "target", "worst", "cost", "theory"]
    page = report_page(given, build_tables(given, kinds), tmp_path / "page.html", command="longshift report runs.csv")
    text = re.sub(r"Made by longshift \S+", "Made by longshift", words_of(render_page(page)))
    check_golden("report-page.txt", text + "\n")
    assert len(page.summary) <= 6


@pytest.mark.slow
def test_a_real_run_shows_what_it_got_wrong(tmp_path: Path) -> None:
    values = {"data": "digits", "setting": "Duality", "target": "ink", "method": "erm", "steps": 3, "eval_every": 3}
    config = parse_run_config(values)
    Trainer(config, make_task(config), tmp_path / "run", Runtime(device="cpu", save_predictions=True)).run()
    html = page_of(tmp_path)
    found = Tags(html)
    assert found.tags.count("img") >= 8
    assert all(load.startswith("data:") for load in found.loads)
    (record,) = read_records(choose(collect(tmp_path)), run_folders(tmp_path), ["erm"])
    arrays = record.predictions()
    assert arrays is not None
    wrong = arrays["target_logits"].argmax(axis=1) != arrays["target_labels"]
    shown = re.findall(r'alt="(\d), misclassified as (\d)"', html)
    true = set(zip(arrays["target_labels"][wrong], arrays["target_logits"].argmax(axis=1)[wrong], strict=True))
    assert {(int(a), int(b)) for a, b in shown} <= {(int(a), int(b)) for a, b in true}
