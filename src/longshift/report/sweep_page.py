"""The page of a sweep: summary, tables, ranks, and for each dataset and setting the figures of the best methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

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
from longshift.report.figures import TrainingSet
from longshift.report.findings import summarise
from longshift.report.html_page import Page, Section, paragraphs, run_section, table_section
from longshift.report.missing_runs import Missing
from longshift.report.ranking import Among, Ranking, rank_methods
from longshift.report.run_filters import each_once
from longshift.report.run_records import Record, by_method, read_records, run_folders
from longshift.report.table import Table, slug
from longshift.report.titles import RULES, is_averaged, method_title, order_datasets, order_settings
from longshift.report.weak_points import weak_section
from longshift.results import Rule, choose
from longshift.sweep import runs_file

OPENED = 4  # datasets and settings; where there are more, their figures are folded away
DRAWN = 3  # best methods in the figures; the baseline comes on top
BASELINE = "erm"
TITLES = {
    "average": ("Average, many, medium, few", "Accuracy on domains never seen in training. Click a heading to sort."),
    "paired": ("Differences", ""),
    "target": ("Target by target", ""),
    "worst": ("Worst domain", "Accuracy on held-out samples of the domain that does worst among those trained on."),
    "cost": ("Training cost", ""),
    "theory": ("Theory", ""),
    "length": ("Length of the runs", ""),
    "agreement": ("Agreement with published numbers", ""),
    "paper": ("Beside the published numbers", ""),
}  # fmt: skip


def report_page(
    path: Path,
    runs: pd.DataFrame,
    tables: Sequence[Table],
    missing: Missing,
    page: Path,
    rule: Rule = "validation",
    comparison: str = "",
    data: str | None = None,
    command: str = "",
    among: Among = "variants",
    left_out: Mapping[str, str] | None = None,
) -> Page:
    """Everything about the runs under `path`; `page` is where the file will lie, for links to the records.

    `among`: which rows are ranked (see `rank_methods`); `left_out`: why there are no tables of a kind.
    """
    chosen = choose(runs, rule)
    result = rank_methods(chosen, among)
    methods = drawn_methods(result)
    folders = {} if runs_file(path) else run_folders(path)  # a table of runs has no folders
    records = read_records(chosen, folders, methods)
    sections = []
    for kind, (title, intro) in TITLES.items():
        own_tables = [t for t in tables if t.kind == kind]
        if own_tables and kind == "theory":
            sections.append(theory_section(own_tables, chosen))
        elif own_tables and kind == "length":
            sections.append(length_section(own_tables, runs))
        elif own_tables:
            sections.append(table_section(title, own_tables, intro, kind))
        elif left_out and kind in left_out:
            sections.append(Section(title, paragraphs(left_out[kind]), name=kind))
    sections.insert(1, rank_section(result))
    pairs = [(d, s) for s in order_settings(runs["setting"]) for d in order_datasets(runs["dataset"])]
    for dataset, setting in pairs:
        here = [r for r in records if (r.dataset, r.setting) == (dataset, setting)]
        if here:
            sections.append(place_section(dataset, setting, here, methods, data, folded=len(pairs) > OPENED))
    finished = int((each_once(runs)["status"] == "done").sum())
    if records:
        sections.append(run_section(records, page, finished))
    else:
        why = (
            f"Left out, since {path} has the numbers of runs and not their folders: accuracy of each class, margins, "
            "curves along training, confusions, weak points, training data, links to run records."
        )
        sections.append(Section("Single runs", paragraphs(why), name="runs"))
    facts = [
        ("Runs", f"{finished} finished, {missing.count} without a number" if missing.count else f"{finished} finished"),
        ("Methods", str(sum(not is_averaged(str(name)) for name in runs["method"].unique()))),
        ("Datasets", ", ".join(order_datasets(runs["dataset"]))),
        ("Settings", ", ".join(order_settings(runs["setting"]))),
        ("Selection", f"{rule}: {RULES[rule]}"),
    ]
    sentences = [*summarise(chosen, result, missing), *filter(None, [comparison])]
    name = ", ".join(order_datasets(runs["dataset"]))
    return Page(f"Domain generalization under imbalance: {name}", sentences, sections, facts, command)


def place_section(
    dataset: str,
    setting: str,
    records: Sequence[Record],
    methods: Sequence[str],
    data: str | None = None,
    folded: bool = False,
) -> Section:
    """The figures of one dataset and setting; the first of `methods` with runs is the one looked at closely."""
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
    intro = f"Figures of the best methods and the baseline ({_names(groups)}); {best[0].title} is looked at closely."
    return Section(f"{dataset}, {setting}", intro=intro, name=name, parts=parts, folded=folded)


def training_sets(records: Sequence[Record]) -> list[TrainingSet]:
    """One per target, of its first trial."""
    first = {record.target: record for record in sorted(records, key=lambda r: (r.target, -r.trial))}
    made = []
    for target, record in first.items():
        split = record.result["split"]
        counts = np.asarray(split["counts"], dtype=np.int64)
        title = f"Unseen domain {target}"
        made.append(TrainingSet(title, split["classes"], split["sources"], counts, split["shots"]))
    return made


def drawn_methods(result: Ranking) -> list[str]:
    """The best few, and the baseline."""
    best = list(result.order[:DRAWN])
    return best if BASELINE in best or BASELINE not in result.order else [*best, BASELINE]


def _names(methods: Iterable[str]) -> str:
    return ", ".join(method_title(method) for method in methods)
