"""The pages by the rules of axe-core (WCAG 2.1 AA and best practices), and their width: light, dark, on a phone."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from longshift.fitting.page import fit_page
from longshift.report.html_page import Page, render_page
from longshift.report.kinds import ReportRuns, build_tables
from longshift.report.runs import run_folders
from longshift.report.sections import report_page
from longshift.sweep import collect
from tests.fitting.hand_made import full_site_page, full_summary
from tests.report.chromium import AXE, needs_axe, needs_browser, open_page
from tests.report.folders import write_runs

pytestmark = [needs_browser, needs_axe, pytest.mark.slow]

WIDE, PHONE = 1280, 390
DARK = "--blink-settings=preferredColorScheme=0"
LOOKS: dict[str, Any] = {"light": (WIDE,), "dark": (WIDE, DARK), "phone": (PHONE,)}

# The shade at the edges of what scrolls hides the background from axe. Folded parts are opened.
PROBE = """
<style>.scroll { background: none !important; }</style>
<script>%s</script>
<script>
addEventListener("load", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
  axe.run(document, { runOnly: rules }).then((found) => {
    const broken = found.violations.map((rule) => [rule.id, rule.nodes.map((node) => node.html.slice(0, 200))]);
    const needed = document.documentElement.scrollWidth;
    const seen = { broken, passes: found.passes.length, width: innerWidth, needed };
    parent.postMessage(JSON.stringify(seen), "*");
  });
});
</script></body>
"""
# A window of Chromium is never as narrow as a phone; a frame is.
FRAME = """
<!doctype html><meta name="color-scheme" content="light dark">
<body><iframe src="page.html" style="border: 0; width: %dpx; height: 900px"></iframe>
<script>addEventListener("message", (event) => { document.body.dataset.seen = event.data; });</script></body>
"""


def check(html: str, folder: Path, width: int = WIDE, *flags: str) -> dict[str, Any]:
    script = AXE.read_text(encoding="utf-8").replace("</script", "<\\/script")
    (folder / "page.html").write_text(html.replace("</body>", PROBE % script), encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME % width, encoding="utf-8")
    place = (f"--window-size={WIDE + 100},1000", "--virtual-time-budget=60000")
    document, _ = open_page(frame, folder / "profile", *place, *flags)
    found = re.search(r'data-seen="([^"]*)"', document)
    assert found is not None
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    assert seen["width"] == width
    return seen


def sweep_page(folder: Path) -> Page:
    write_runs(folder / "runs", ("erm", "boda", "ndcl"), predictions=True)
    runs = collect(folder / "runs")
    folders = run_folders(folder / "runs")
    return report_page(ReportRuns(runs, folders=folders), build_tables(runs), folder / "page.html")


def site_page(folder: Path) -> Page:
    files = [folder / f"{k}.png" for k in range(25)]
    for k, file in enumerate(files):
        Image.new("RGB", (40, 40), (9 * k, 90, 90)).save(file)
    return full_site_page([str(file) for file in files], vectors=False)


PAGES = {
    "fit": lambda folder: fit_page(folder / "report.html", full_summary(), []),
    "site": site_page,
    "sweep": sweep_page,
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_breaks_no_rule_and_does_not_scroll_sideways(tmp_path: Path, name: str, look: str) -> None:
    seen = check(render_page(PAGES[name](tmp_path)), tmp_path, *LOOKS[look])
    assert seen["broken"] == []
    assert seen["passes"] > 20
    assert seen["needed"] <= seen["width"]


def test_a_broken_page_would_be_seen(tmp_path: Path) -> None:
    html = (
        '<!doctype html><html lang="en"><title>x</title><body><main><h1>x</h1><img src="data:,"></main></body></html>'
    )
    assert [rule for rule, _ in check(html, tmp_path)["broken"]] == ["image-alt"]
