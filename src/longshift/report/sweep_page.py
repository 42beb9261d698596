"""The page of a sweep: summary, tables, ranks, and for each dataset and setting the figures of the best methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from longshift.report.figure_sections import (
    class_section,
    confusion_section,
    length_section,
    margin_section,
    rank_section,
    split_section,
    target_margins,
    theory_section,
    validation_section,
)  # fmt: skip
from longshift.report.figures import SplitCounts
from longshift.report.findings import report_findings
from longshift.report.html_page import Page, Section, paragraphs, run_section, table_section
from longshift.report.ranking import RankedRows, Ranking, rank_methods
from longshift.report.run_filters import each_once
from longshift.report.run_records import Record, by_method, read_records
from longshift.report.table import Table, slug
from longshift.report.table_registry import ReportRuns, table_kinds
from longshift.report.titles import RULES, is_averaged, method_title, order_datasets, order_places, order_settings
from longshift.report.weak_page_section import weak_section

OPENED = 4  # datasets and settings; where there are more, their figures are folded away
DRAWN = 3  # best methods in the figures; the baseline comes on top
BASELINE = "erm"
COMPARED = {"agreement": "Agreement with published numbers", "paper": "Comparison with published numbers"}


def report_page(
    runs: ReportRuns,
    tables: Sequence[Table],
    page: Path,
    comparison: str = "",
    data: str | None = None,
    command: str = "",
    among: RankedRows = "variants",
    left_out: Mapping[str, str] | None = None,
) -> Page:
    """Return the page of a report.

    Args:
        runs: The runs.
        tables: The tables to show, with those of a comparison.
        page: Where the file will be written, for links to the run records.
        comparison: A sentence that sums up a comparison with published numbers.
        data: Where the images are now, if not where they were during training.
        command: The command that makes the page.
        among: Which rows are ranked (see `rank_methods`).
        left_out: Why there are no tables of a kind.
    """
    frame, chosen = runs.frame, runs.chosen
    result = rank_methods(chosen, among)
    methods = drawn_methods(result)
    records = read_records(chosen, runs.folders, methods)
    sections = []
    titles = {kind.name: (kind.title, kind.intro) for kind in table_kinds()}
    for kind, (title, intro) in (titles | {name: (title, "") for name, title in COMPARED.items()}).items():
        own_tables = [t for t in tables if t.kind == kind]
        if own_tables and kind == "theory":
            sections.append(theory_section(own_tables, chosen))
        elif own_tables and kind == "length":
            sections.append(length_section(own_tables, frame))
        elif own_tables:
            sections.append(table_section(title, own_tables, intro, kind))
        elif left_out and kind in left_out:
            sections.append(Section(title, paragraphs(left_out[kind]), name=kind))
    sections.insert(1, rank_section(result))
    pairs = order_places(frame)
    for dataset, setting in pairs:
        here = [r for r in records if (r.dataset, r.setting) == (dataset, setting)]
        if here:
            sections.append(setting_section(dataset, setting, here, methods, data, folded=len(pairs) > OPENED))
    finished, missing = int((each_once(frame)["status"] == "done").sum()), runs.missing
    if records:
        sections.append(run_section(records, page, finished))
    else:
        why = (
            "Left out because this report is made from a table of runs, without their folders: accuracy of each class, "
            "margins, curves during training, confusions, lowest-scoring classes, training data, links to run records."
        )
        sections.append(Section("Single runs", paragraphs(why), name="runs"))
    facts = [
        ("Runs", f"{finished} finished, {missing.count} without a result" if missing.count else f"{finished} finished"),
        ("Methods", str(sum(not is_averaged(str(name)) for name in frame["method"].unique()))),
        ("Datasets", ", ".join(order_datasets(frame["dataset"]))),
        ("Settings", ", ".join(order_settings(frame["setting"]))),
        ("Selection", f"{runs.rule}: {RULES[runs.rule]}"),
    ]
    sentences = [*report_findings(runs, among, result), *filter(None, [comparison])]
    name = ", ".join(order_datasets(frame["dataset"]))
    return Page(f"Domain generalization under imbalance: {name}", sentences, sections, facts, command)


def setting_section(
    dataset: str,
    setting: str,
    records: Sequence[Record],
    methods: Sequence[str],
    data: str | None = None,
    folded: bool = False,
) -> Section:
    """The figures of one dataset and setting; the first of `methods` with runs is shown in detail."""
    name = f"{slug(dataset)}-{slug(setting)}"
    groups = by_method(records, methods)
    best = next(iter(groups.values()))
    parts = [
        class_section(groups, f"classes-{name}"),
        margin_section({method_title(m): target_margins(runs) for m, runs in groups.items()}, f"margins-{name}"),
        validation_section(groups, f"training-{name}"),
        confusion_section(best, f"confusions-{name}"),
        weak_section(best, data, f"weak-{name}"),
        split_section(training_sets(best), f"data-{name}"),
    ]
    names = ", ".join(map(method_title, groups))
    intro = f"Figures of the best methods and the baseline ({names}); {best[0].title} is shown in detail."
    return Section(f"{dataset}, {setting}", intro=intro, name=name, parts=parts, folded=folded)


def training_sets(records: Sequence[Record]) -> list[SplitCounts]:
    """One per target, of its first trial."""
    first = {r.target: r.result["split"] for r in sorted(records, key=lambda r: (r.target, -r.trial))}
    return [
        SplitCounts(f"Unseen domain {target}", s["classes"], s["sources"], np.asarray(s["counts"]), s["shots"])
        for target, s in first.items()
    ]


def drawn_methods(result: Ranking) -> list[str]:
    """The best few, and the baseline."""
    best = list(result.order[:DRAWN])
    return best if BASELINE in best or BASELINE not in result.order else [*best, BASELINE]
