"""The demonstration's page: the general report, with three sentences on what to look at put first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from longshift.report import Page, ReportRuns, Section, build_tables, paragraphs, report_page, run_folders
from longshift.results import averages, choose
from longshift.sweep import collect

SETTINGS = ("TotalHeavyTail", "Duality")
CUT_SHORT = (
    "The runs are cut short (150 steps from random weights, no augmentation), so that the page is there in minutes: "
    "compare the methods, not the numbers with those of papers. Ten classes: guessing is right 10 % of the time."
)


def demo_page(folder: Path, page: Path) -> Page:
    """The page of a finished demonstration in `folder`, to be written to `page`."""
    runs = ReportRuns(collect(folder, missing=True), folders=run_folders(folder))
    made = report_page(runs, build_tables(runs, ("average", "target", "worst")), page, command="longshift demo")
    first, *others = what_to_look_at(runs.frame)
    look = Section("What to look at", paragraphs(first, *others, CUT_SHORT), name="look")
    title = "longshift: ERM against NDCL on handwritten digits"
    return replace(made, title=title, summary=[first, *made.summary], sections=[look, *made.sections])


def what_to_look_at(runs: pd.DataFrame) -> list[str]:
    """Three sentences, with the measured numbers, whether or not they favor NDCL."""
    table = averages(choose(runs)).set_index(["setting", "method"])

    def both(method: str, measure: str) -> list[float]:
        return [float(table[measure][(setting, method)]) for setting in SETTINGS]

    few = {m: both(m, "target_few") for m in ("erm", "ndcl")}
    average = {m: both(m, "target_accuracy") for m in ("erm", "ndcl")}
    gain = 100 * (sum(few["ndcl"]) - sum(few["erm"])) / len(SETTINGS)
    each = "; ".join(
        f"{s}: {100 * a:.1f} % with ERM, {100 * b:.1f} % with NDCL"
        for s, a, b in zip(SETTINGS, few["erm"], few["ndcl"], strict=True)
    )
    whole = 100 * (sum(average["ndcl"]) - sum(average["erm"])) / len(SETTINGS)
    return [
        f"Look at the few-shot column first: it is the accuracy, on a style never seen in training, of the classes "
        f"with the fewest training samples ({each}); on the mean of both settings NDCL is {gain:+.1f} points from ERM.",
        f"Then at the average ({whole:+.1f} points): what a method wins on rare classes it may lose on common ones, "
        f"and the bars per class show where.",
        "Last at the margins: a lower curve means fewer samples near or beyond the wrong side of the "
        "decision boundary, which is what the theory behind NDCL asks for.",
    ]
