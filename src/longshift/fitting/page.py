"""The HTML page of a fit, made from sections of the report package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from longshift.array_types import FloatArray
from longshift.data import Manifest
from longshift.fitting.data_summary import lines, named_lines
from longshift.fitting.facts import ClassScore, FitSummary, same_site_gaps
from longshift.fitting.plan import FitJob
from longshift.fitting.suggest import LabelCurve
from longshift.inference import LEVEL
from longshift.metrics import probabilities
from longshift.report import (
    Cell,
    Column,
    Line,
    Page,
    Record,
    Section,
    SiteDots,
    SplitCounts,
    Table,
    TableRow,
    class_section,
    confusion_section,
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

BINS, POINTS = 10, 20
FEWEST = 10  # predictions in a bin
MOST = 5  # weak classes that are shown with images


def write_report(
    path: Path, summary: FitSummary, runs: Sequence[tuple[FitJob, dict[str, Any]]], manifest: Manifest
) -> None:
    """Write report.html; `runs` are those of the results, the final model last."""
    write_page(fit_page(path, summary, runs, manifest), path)


def fit_page(
    path: Path, summary: FitSummary, runs: Sequence[tuple[FitJob, dict[str, Any]]], manifest: Manifest | None = None
) -> Page:
    """The page; links to the runs are relative to `path`. Without runs, it has no figures of their mistakes."""
    look = summary.data
    records = [
        Record(job.folder, job.method, look.name, job.config.setting, job.site, 0, result, "validation")
        for job, result in runs
        if job.site
    ]
    own = [record for record in records if record.method == summary.training.config.method]
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.method, []).append(record)
    data = split_section([SplitCounts("All sites", look.classes, look.sites, look.counts)], "data")
    seen = paragraphs(*look.statements(), *look.warnings())
    intro = " ".join(lines("interval.txt.j2", summary=summary, level=LEVEL))
    mistakes: list[Section] = []
    training: list[Section] = []
    if records:
        mistakes = [
            weak_section(own, manifest, name="weak", noun="site", most=MOST),
            class_section(groups, "classes", "site"),
            confusion_section(own, "confusions"),
            *calibration_sections(own),
        ]
        training = [validation_section(groups, "training"), run_section(records, path, len(records))]
    sections = [
        Section("Accuracy at a new site", table_html(site_table(summary)), intro, "sites"),
        Section("Classes at unseen sites", table_html(class_table(summary)), "Lowest accuracy first.", "class-table"),
        *mistakes,
        *label_sections(summary.labels),
        Section("The data", join_html(seen, data.body), "Samples per class and site.", "data", wide=True),
        *training,
    ]
    facts = [
        ("Data", f"{look.total} {look.noun}, {len(look.sites)} sites, {len(look.classes)} classes"),
        ("Method", summary.title),
        *named_lines("training.txt.j2", training=summary.training),
        *summary.notes,
    ]
    title = f"{look.name}: what to expect at a new site"
    return Page(title, summary.findings, sections, facts, lead=site_chart(summary))


def site_chart(summary: FitSummary) -> Markup:
    """The accuracy at each site while held out and while known, and the range at a new one: the first thing to see."""
    known = same_site_gaps(summary.own)
    dots = [
        SiteDots(score.site, score.accuracy, known[score.site][0] if score.site in known else None)
        for score in summary.own
    ]
    found = summary.accuracy
    expected = (found.low, found.high) if found.sites > 1 else None
    return figure(site_dots(dots, expected))


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


def number_table(
    name: str, title: str, head: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[str, Sequence[Cell]]],
    caption: str,
) -> Table:  # fmt: skip
    """A table in which no value is better than another; `columns` are (heading, heading of its group)."""
    made = tuple(TableRow(label, label, "mean" if label == "mean" else "", tuple(cells)) for label, cells in rows)
    plain = tuple(Column(text, group, higher_is_better=None) for text, group in columns)
    return Table(name, name, title, plain, made, head=head, caption=caption)


def site_table(summary: FitSummary) -> Table:
    """Sites by models: accuracy, and accuracy averaged over classes."""
    known = {site: pair[0] for site, pair in same_site_gaps(summary.own).items()}
    columns = [(title, name) for name in summary.scores for title in ("accuracy", "over classes")]
    values = [
        [share for scores in summary.scores.values() for share in (scores[k].accuracy, scores[k].balanced)]
        + ([known.get(score.site, np.nan)] if known else [])
        for k, score in enumerate(summary.own)
    ]
    shown = [*values, np.nanmean(values, axis=0).tolist()]
    sites = [*(score.site for score in summary.own), "mean"]
    rows = [
        (site, [Cell(None if np.isnan(share) else 100 * share) for share in row])
        for site, row in zip(sites, shown, strict=True)
    ]
    return number_table(
        "sites", "Accuracy at each site while it was held out", "Held-out site",
        [*columns, *([("accuracy", "While known")] if known else [])], rows,
        "accuracy: percent of the site's samples that are classified correctly. over classes: the same per class, "
        "averaged over the classes of the site. While known: at the same site, on other samples, of the models that "
        "were trained on it. mean: over sites, with equal weight.",
    )  # fmt: skip


def class_table(summary: FitSummary) -> Table:
    """Each class over all held-out sites."""

    def label(score: ClassScore) -> str:
        if score.alone:
            return f"{score.name} (only at {score.alone}: not learned while it was held out)"
        return f"{score.name} (most often misclassified as {score.taken_for})" if score.taken_for else score.name

    rows = [
        (label(score), (Cell(float(score.n), digits=0), Cell(float(score.right), digits=0), Cell(100 * score.recall)))
        for score in summary.classes
    ]
    return number_table(
        "recall", "Each class at sites not seen in training", "Class",
        [(text, "") for text in ("samples", "correct", "accuracy, %")], rows,
        "Share of the samples of a class, over all held-out sites, that is classified correctly.",
    )  # fmt: skip


def calibration_sections(records: Sequence[Record]) -> list[Section]:
    """Whether probabilities can be trusted at unseen sites, from the kept predictions; none if no run kept them."""
    parts = [found for record in records if (found := _scores(record)) is not None]
    if not parts:
        return []
    confidence, correct = (np.concatenate([part[which] for part in parts]) for which in (0, 1))
    x, y = reliability(confidence, correct)
    share, accuracy = accuracy_by_coverage(confidence, correct)
    ends = (float(x[0]), float(x[-1])) if len(x) else (0.0, 1.0)
    plots = join_html(
        figure(
            line_chart(
                [Line("held-out sites", [100 * v for v in x], y), Line("calibrated", [100 * v for v in ends], ends)],
                "probability of the predicted class (%)", "correct",
            ),
            "Reliability: below the straight line, probabilities are too high.",
        ),
        figure(
            line_chart(
                [Line("held-out sites", [100 * v for v in share], accuracy)], "most confident part (%)", "correct"
            ),
            "Accuracy against coverage: of the most confident predictions, this share is correct.",
        ),
    )  # fmt: skip
    gap = CalibrationGap(float(confidence.mean()), float(correct.mean()))
    intro = " ".join(lines("calibration.txt.j2", gap=gap))
    return [Section("Calibration at unseen sites", plots, intro, "calibration")]


@dataclass(frozen=True)
class CalibrationGap:
    """The mean probability of predictions at the held-out sites, and the share that is correct.

    >>> CalibrationGap(0.62, 0.69).points
    -7
    """

    probability: float
    accuracy: float

    @property
    def points(self) -> int:
        """Their difference in percent, of the printed numbers, so that a reader can check it."""
        return round(100 * self.probability) - round(100 * self.accuracy)


def reliability(confidence: FloatArray, correct: npt.NDArray[np.bool_]) -> tuple[list[float], list[float]]:
    """Mean confidence and accuracy in bins of equal width; bins with few predictions are left out."""
    index = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    bins = [index == k for k in range(BINS) if (index == k).sum() >= FEWEST]
    return [float(confidence[own].mean()) for own in bins], [float(correct[own].mean()) for own in bins]


def accuracy_by_coverage(confidence: FloatArray, correct: npt.NDArray[np.bool_]) -> tuple[list[float], list[float]]:
    """Shares of the most confident predictions, and the accuracy among them."""
    ordered = correct[np.argsort(-confidence, kind="stable")].astype(np.float64)
    sizes = np.unique(np.ceil(np.linspace(1 / POINTS, 1, POINTS) * len(ordered)).astype(int))
    sums = np.cumsum(ordered)
    return [float(n / len(ordered)) for n in sizes], [float(sums[n - 1] / n) for n in sizes]


def _scores(record: Record) -> tuple[FloatArray, npt.NDArray[np.bool_]] | None:
    arrays = record.predictions()
    if arrays is None or "target_logits" not in arrays:
        return None
    shares = probabilities(arrays["target_logits"].astype(np.float64) / record.temperature(arrays))
    return shares.max(axis=1), shares.argmax(axis=1) == arrays["target_labels"]
