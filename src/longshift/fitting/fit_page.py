"""The HTML report of a fit, made from sections of the report package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from longshift.fitting.calibration_section import calibration_section
from longshift.fitting.data_summary import DataSummary
from longshift.fitting.fit_summary import Summary
from longshift.fitting.label_curve import LabelCurve
from longshift.fitting.plan import Job, Plan
from longshift.fitting.site_scores import CLASS_ACCURACY, MOST, ClassScore, hardest_site, same_site_gaps
from longshift.report import (
    Cell,
    Column,
    Line,
    Page,
    Record,
    Row,
    Section,
    SiteDots,
    SplitCounts,
    Table,
    class_section,
    confusion_section,
    confusions_by_target,
    figure,
    join_html,
    line_chart,
    paragraphs,
    run_section,
    site_dots,
    split_section,
    table_html,
    validation_section,
    weak_section,
    write_page,
)


def write_report(
    path: Path, look: DataSummary, plan: Plan, summary: Summary, runs: Sequence[tuple[Job, dict[str, Any]]],
    curve: LabelCurve | None = None,
) -> None:  # fmt: skip
    """Write report.html."""
    write_page(fit_page(path, look, plan, summary, runs, curve), path)


def fit_page(
    path: Path, look: DataSummary, plan: Plan, summary: Summary, runs: Sequence[tuple[Job, dict[str, Any]]],
    curve: LabelCurve | None = None,
) -> Page:  # fmt: skip
    """The page; links to the runs are relative to `path`."""
    records = [
        Record(job.folder, job.method, look.name, job.config.setting, job.site, 0, result, "validation")
        for job, result in runs
        if job.site
    ]
    own = [record for record in records if record.method == plan.method]
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.method, []).append(record)
    data = split_section([SplitCounts("All sites", look.classes, look.sites, look.counts)], "data")
    warnings = look.warnings()
    seen = paragraphs(*look.sentences(), *warnings)
    sections = [
        Section("Accuracy at a new site", table_html(site_table(summary)), _site_intro(summary), "sites"),
        Section("Classes at unseen sites", table_html(class_table(summary)), "Lowest accuracy first.", "class-table"),
        weak_section(own, name="weak", noun="site", most=MOST, advise=True),
        class_section(groups, "classes", "site"),
        confusion_section(own, "confusions"),
        confusions_by_target(own, "site-confusions", "site"),
        *calibration_section(own),
        *label_sections(curve),
        Section("The data", join_html(seen, data.body), "Samples per class and site.", "data", wide=True),
        validation_section(groups, "training"),
        run_section(records, path, len(records)),
    ]
    facts = [
        ("Data", f"{look.total} {look.noun}, {len(look.sites)} sites, {len(look.classes)} classes"),
        ("Method", summary.title),
        ("Network", " ".join(plan.network)),
        ("Training", plan.training(len(runs))),
        ("Accuracy at a new site", summary.accuracy.words()),
        ("Averaged over classes", summary.balanced.words()),
    ]
    title = f"{look.name}: what to expect at a new site"
    return Page(title, summary.sentences, sections, facts, lead=site_chart(summary))


def site_chart(summary: Summary) -> Markup:
    """The accuracy at each site while held out and while known, and the range at a new one: the first thing to see."""
    known = same_site_gaps(summary.own)
    dots = [
        SiteDots(score.site, score.accuracy, known[score.site][0] if score.site in known else None)
        for score in summary.own
    ]
    found = summary.accuracy
    expected = (found.low, found.high) if found.sites > 1 else None
    return figure(site_dots(dots, expected), "Each site was held out in turn: models were trained on the others.")


def label_sections(curve: LabelCurve | None) -> list[Section]:
    """The accuracy after adapting to a new site with more and more labels, where it was simulated."""
    means = curve.means() if curve else []
    if len(means) < 2:
        return []
    x = [row.labels for row in means]
    lines = [
        Line("suggested", x, [row.suggested for row in means]),
        Line("random", x, [row.random for row in means]),
    ]
    intro = (
        "Simulated at the held-out sites: longshift adapt with labels of the site, chosen by longshift suggest or at "
        "random; measured on other samples of the site, mean over sites."
    )
    return [Section("How much labels would help", figure(line_chart(lines, "labels", "accuracy")), intro, "labels")]


def site_table(summary: Summary) -> Table:
    """Sites by models: accuracy, and accuracy averaged over classes."""
    known = same_site_gaps(summary.own)
    columns = tuple(
        Column(title, name, higher_is_better=None) for name in summary.scores for title in ("accuracy", "over classes")
    )
    columns += (Column("accuracy", "While known", higher_is_better=None),) * bool(known)
    rows = []
    for index, score in enumerate(summary.own):
        cells = []
        for scores in summary.scores.values():
            cells += [Cell(100 * scores[index].accuracy), Cell(100 * scores[index].balanced)]
        if known:
            cells.append(Cell(100 * known[score.site][0] if score.site in known else None))
        rows.append(Row(score.site, score.site, "", tuple(cells)))
    means: list[float] = []
    for scores in summary.scores.values():
        means += [
            100 * float(np.mean([s.accuracy for s in scores])),
            100 * float(np.mean([s.balanced for s in scores])),
        ]
    if known:
        means.append(100 * float(np.mean([pair[0] for pair in known.values()])))
    rows.append(Row("mean", "mean", "mean", tuple(Cell(value) for value in means)))
    return Table(
        "sites", "sites", "Accuracy at each site while it was held out", columns, tuple(rows), head="Held-out site",
        caption="accuracy: percent of the site's samples that are classified correctly. over classes: the same per "
        "class, averaged over the classes of the site, so that rare classes count as much as common ones. While known: "
        "at the same site, on other samples, of the models that were trained on it. mean: over sites, with equal "
        "weight.",
    )  # fmt: skip


def class_table(summary: Summary) -> Table:
    """Each class over all held-out sites."""
    columns = (
        Column("samples", higher_is_better=None),
        Column("correct", higher_is_better=None),
        Column("accuracy, %", higher_is_better=None),
    )
    rows = tuple(
        Row(
            score.name,
            score.name + _remark(score),
            "",
            (Cell(float(score.n), digits=0), Cell(float(score.right), digits=0), Cell(100 * score.recall)),
        )
        for score in summary.classes
    )
    return Table(
        "recall", "recall", "Each class at sites not seen in training", columns, rows, head="Class",
        caption=f"{CLASS_ACCURACY}.",
    )  # fmt: skip


def _remark(score: ClassScore) -> str:
    if score.alone:
        return f" (only at {score.alone}: not learned while it was held out)"
    return f" (most often misclassified as {score.taken_for})" if score.taken_for else ""


def _site_intro(summary: Summary) -> str:
    worst, doubt = hardest_site(summary.own)
    share = f"{100 * worst.accuracy:.0f}% accuracy when held out"
    return f"Lowest: {worst.site}, with {share}{f' ({doubt})' if doubt else ''}."
