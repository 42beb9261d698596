"""The page of a report: sections with a figure, each from plain results, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from longshift.report.comparison import Comparison
from longshift.report.figures import (
    Line,
    SplitCounts,
    class_bars,
    confusion_map,
    line_chart,
    rank_diagram,
    split_bars,
)
from longshift.report.html_page import (
    Page,
    Section,
    figure,
    fold,
    join_html,
    paragraphs,
    run_section,
    side_by_side,
    table_section,
)
from longshift.report.kinds import ReportRuns, table_kinds
from longshift.report.ranking import RankedRows, Ranking, rank_methods
from longshift.report.runs import (
    Record,
    class_accuracy,
    each_once,
    read_records,
    sum_confusion,
)
from longshift.report.summary_facts import curve_groups, findings, report_facts
from longshift.report.table import Table, float_or_none, slug
from longshift.report.titles import (
    RULES,
    is_averaged,
    method_title,
    order_datasets,
    order_places,
    order_settings,
    words,
)
from longshift.report.weak import weak_section
from longshift.sweep import standard_error

OPENED = 4  # datasets and settings; where there are more, their figures are folded away
BEST, BASELINE = 3, "erm"  # methods in the figures: the best few, and the baseline on top
NARROW = 20  # classes whose confusions fit into half the page
SHOWN = 2  # training sets side by side; the others are folded away


def report_page(
    runs: ReportRuns,
    tables: Sequence[Table],
    page: Path,
    comparison: Comparison | None = None,
    data: str | None = None,
    command: str = "",
    among: RankedRows = "variants",
) -> Page:
    """Return the page of a report.

    Args:
        runs: The runs.
        tables: The tables to show, with those of a comparison.
        page: Where the file will be written, for links to the run records.
        comparison: What a comparison with published numbers found.
        data: Where the images are now, if not where they were during training.
        command: The command that makes the page.
        among: Which rows are ranked (see `rank_methods`).
    """
    frame, chosen = runs.frame, runs.chosen
    ranking = rank_methods(chosen, among)
    methods = list(ranking.order[:BEST])
    methods += [BASELINE] if BASELINE in ranking.order[BEST:] else []
    records = read_records(chosen, runs.folders, methods)
    compared = words("comparison", facts=comparison) if comparison else ""
    titles = {kind.name: (kind.title, kind.intro) for kind in table_kinds()}
    titles |= {"agreement": ("Agreement with published numbers", compared)}
    titles |= {"paper": ("Comparison with published numbers", "")}
    sections = []
    for kind, (title, intro) in titles.items():
        own = [table for table in tables if table.kind == kind]
        if own:
            sections.append(table_section(title, own, intro, kind))
    sections.insert(1, rank_section(ranking))
    sections += length_sections(frame)
    pairs = order_places(frame)
    for dataset, setting in pairs:
        here = [r for r in records if (r.dataset, r.setting) == (dataset, setting)]
        if here:
            sections.append(setting_section(dataset, setting, here, methods, data, folded=len(pairs) > OPENED))
    finished = int((each_once(frame)["status"] == "done").sum())
    if records:
        sections.append(run_section(records, page, finished))
    else:
        sections.append(Section("Single runs", paragraphs(words("no_folders")), name="runs"))
    names = ", ".join(order_datasets(frame["dataset"]))
    facts = [
        ("Runs", words("runs_fact", finished=finished, missing=runs.missing.count)),
        ("Methods", str(sum(not is_averaged(str(name)) for name in frame["method"].unique()))),
        ("Datasets", names),
        ("Settings", ", ".join(order_settings(frame["setting"]))),
        ("Selection", f"{runs.rule}: {RULES[runs.rule]}"),
    ]
    summary = findings(report_facts(runs, among, ranking))
    return Page(f"Domain generalization under imbalance: {names}", summary, sections, facts, command)


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
    by_method = {m: [record for record in records if record.method == m] for m in methods}
    groups = {m: runs for m, runs in by_method.items() if runs}
    best = next(iter(groups.values()))
    first = {r.target: r.result["split"] for r in sorted(best, key=lambda r: (r.target, -r.trial))}
    splits = [
        SplitCounts(f"Unseen domain {target}", s["classes"], s["sources"], np.asarray(s["counts"]), s["shots"])
        for target, s in first.items()
    ]
    parts = [
        class_section(groups, f"classes-{name}"),
        validation_section(groups, f"training-{name}"),
        confusion_section(best, f"confusions-{name}"),
        weak_section(best, data, f"weak-{name}"),
        split_section(splits, f"data-{name}"),
    ]
    intro = words("setting_intro", methods=list(groups), best=best[0].method)
    return Section(f"{dataset}, {setting}", intro=intro, name=name, parts=parts, folded=folded)


def class_section(records: Mapping[str, Sequence[Record]], name: str = "") -> Section:
    """Target accuracy of each class over all runs: bars for the first method, marks for the others."""
    first = next(iter(records.values()))[0]
    values = {method_title(method): class_accuracy(runs) for method, runs in records.items()}
    listed = [record for runs in records.values() for record in runs]
    # The split of each target differs a little; the mean number of samples orders the classes.
    every = [np.asarray(record.result["split"]["counts"]).sum(axis=0) for record in listed]
    same = all(len(counts) == len(first.classes) for counts in every)
    counts = [int(n) for n in np.mean(every, axis=0)] if same else None
    agree = len({tuple(record.result["split"]["shots"]) for record in listed}) == 1
    drawing = class_bars(first.classes, values, first.result["split"]["shots"] if agree else None, counts)
    sizes = sorted({len({record.folder for record in runs}) for runs in records.values()})
    caption = words("class_caption", fewest=sizes[0], most=sizes[-1], methods=len(records))
    return Section("Accuracy of each class", figure(drawing, caption), name=name)


def confusion_section(records: Sequence[Record], name: str = "") -> Section:
    """The confusion matrix of one method, summed over targets and trials."""
    total = sum_confusion(records)
    drawing = confusion_map(records[0].classes, [[int(n) for n in row] for row in total])
    caption = words("confusion_caption", method=records[0].title, runs=len(records))
    wide = len(records[0].classes) > NARROW
    return Section("Confusion matrix", figure(drawing, caption), name=name, wide=wide)


def _mean_line(name: str, values: Mapping[int, Sequence[float]]) -> Line:
    """The mean at each step, with its standard error."""
    means = [float(np.mean(found)) for found in values.values()]
    return Line(
        name, list(values), means, [float_or_none(standard_error(pd.Series(v))) or 0.0 for v in values.values()]
    )


def validation_section(records: Mapping[str, Sequence[Record]], name: str = "") -> Section:
    """Accuracy on the balanced validation set along training, mean over targets and trials with its standard error."""
    lines = []
    for method, runs in records.items():
        steps: dict[int, list[float]] = {}
        for record in runs:
            for row in record.metrics():
                steps.setdefault(int(row["step"]), []).append(float(row["validation"]["accuracy"]))
        # A step that only some runs have would distort the mean.
        steps = {step: values for step, values in sorted(steps.items()) if len(values) == len(runs)}
        if steps:
            lines.append(_mean_line(method_title(method), steps))
    drawing = line_chart(lines, "step", "validation accuracy")
    return Section("Along training", figure(drawing, words("validation_caption")), name=name)


def length_sections(runs: pd.DataFrame) -> list[Section]:
    """The curves of validation accuracy of all settings; nothing for runs without."""
    groups = curve_groups(runs)
    caption = words("length_figure_caption", runs=sum(len(g.accuracy) for g in groups))
    lines = [_mean_line(g.title, dict(zip(g.steps, g.accuracy.T.tolist(), strict=True))) for g in groups]
    body = figure(line_chart(lines, "step", "validation accuracy"), caption)
    return [Section("Run length", body, words("length_intro"), "length")] if groups else []


def rank_section(ranking: Ranking) -> Section:
    """Average ranks with the bars of Nemenyi's test, or why there is no test."""
    found = ranking.significance
    if found is None:
        return Section("Ranks", paragraphs(words("no_test", ranking=ranking)), name="ranks")
    ranks = {method_title(name): rank for name, rank in found.test.ranks.items()}
    groups = [[method_title(name) for name in group] for group in found.groups]
    drawing = rank_diagram(ranks, found.critical_difference, groups, found.test.cases)
    return Section("Ranks", figure(drawing, words("rank_caption", ranking=ranking, test=found.test)), name="ranks")


def split_section(splits: Sequence[SplitCounts], name: str = "") -> Section:
    """One bar chart per training set."""
    drawn = [figure(split_bars(split), f"{split.title}: {split.counts.sum()} samples.") for split in splits]
    body = side_by_side(*drawn[:SHOWN])
    if len(drawn) > SHOWN:
        body = join_html(body, fold(f"{len(drawn) - SHOWN} more targets", side_by_side(*drawn[SHOWN:])))
    return Section("Training data", body, words("split_intro"), name, wide=True)
