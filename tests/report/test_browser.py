"""The page in a real browser: sorting, hovering, a quiet console, nothing from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from longshift.report.html_page import render_page
from longshift.report.kinds import ReportRuns, build_tables
from longshift.report.runs import run_folders
from longshift.report.sections import report_page
from longshift.sweep import collect
from tests.report.chromium import needs_browser, open_page
from tests.report.folders import write_runs

pytestmark = [needs_browser, pytest.mark.slow]

# Clicks like a user, and leaves what it saw in the document for the test to read.
PROBE = """
<script>
addEventListener("load", () => {
  const table = document.querySelector("table.sortable"), body = table.tBodies[0];
  const names = () => [...body.rows].map((row) => row.cells[0].textContent);
  const heads = [...table.querySelectorAll("thead tr:last-child th")];
  const seen = { start: names(), values: [...body.rows].map((row) => row.cells[1].dataset.value) };
  const click = (column) => { heads[column].querySelector("button").click(); return names(); };
  seen.down = click(1); seen.sort = heads[1].getAttribute("aria-sort"); seen.up = click(1); seen.back = click(1);
  seen.name = click(0);
  const mark = document.querySelector("svg [data-tip]"), box = mark.getBoundingClientRect();
  mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.x, clientY: box.y }));
  const tip = document.getElementById("tip");
  seen.tip = tip.hidden ? null : tip.textContent; seen.expected = mark.dataset.tip;
  seen.titles = document.querySelectorAll("svg title").length;
  seen.wide = document.documentElement.scrollWidth > innerWidth;
  seen.loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  document.body.dataset.seen = JSON.stringify(seen);
});
</script></body>
"""


def build(root: Path, out: Path, methods: Sequence[str] = ("erm", "bsoftmax", "boda", "ndcl"), **options: Any) -> str:
    write_runs(root, methods, **options)
    runs = collect(root)
    return render_page(report_page(ReportRuns(runs, folders=run_folders(root)), build_tables(runs), out))


def test_sorting_hovering_and_silence(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    html = build(tmp_path / "runs", page, predictions=True)
    page.write_text(html.replace("</body>", PROBE), encoding="utf-8")
    document, console = open_page(page, tmp_path / "profile")
    assert console == []
    found = re.search(r'data-seen="([^"]*)"', document)
    assert found is not None
    seen = json.loads(unescape(found[1]))
    by_value = sorted(zip(map(float, seen["values"]), seen["start"], strict=True))
    assert seen["start"] == ["ERM", "BSoftmax", "BoDA", "NDCL"]
    assert seen["down"] == [name for _, name in reversed(by_value)]
    assert seen["sort"] == "descending"
    assert seen["up"] == [name for _, name in by_value]
    assert seen["back"] == seen["start"]
    assert seen["name"] == ["BoDA", "BSoftmax", "ERM", "NDCL"]
    assert seen["tip"] == seen["expected"]
    assert seen["tip"]
    assert seen["titles"] == 0
    assert not seen["wide"]
    assert [name for name in seen["loaded"] if not name.startswith("data:")] == []
