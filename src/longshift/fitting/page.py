"""The HTML page of a fit, made from sections of the report package."""

from __future__ import annotations

import shlex
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
from longshift.fitting.facts import FitSummary, hardest_site, same_site_gaps
from longshift.fitting.plan import FitJob
from longshift.fitting.suggest import LabelCurve
from longshift.inference import LEVEL
from longshift.metrics import probabilities
from longshift.report import (
    Line,
    NewSite,
    Page,
    Record,
    Section,
    SiteDots,
    SplitCounts,
    Tile,
    bar_table,
    confusion_section,
    fact_list,
    figure,
    fold,
    join_html,
    line_chart,
    mistake_section,
    paragraphs,
    run_section,
    site_dots,
    split_bars,
    warning_list,
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
    weakest = [score for score in summary.classes if not score.alone]
    site, site_unsure = hardest_site(summary.own)
    words = dict(
        named_lines(
            "fit_page.txt.j2", summary=summary, level=LEVEL, site=site, site_unsure=site_unsure,
            weakest=next(iter([*summary.weak, *weakest]), None), folder=shlex.quote(str(path.parent)),
        )
    )  # fmt: skip
    tiles = [
        Tile("Accuracy at a new site", words["accuracy"], words["accuracy_text"]),
        Tile("Weakest class", words["class"], words["class_text"]),
        Tile("Weakest site", site.site, words["site_text"]),
    ]
    shown = [Section("Sites", site_table(summary), words["sites"]), Section("Classes", class_table(summary))]
    mistakes = []
    if records:
        shown += [confusion_section(own), *calibration_sections(own)]
        names = [score.name for score in summary.weak or weakest[:1]]
        mistakes = [mistake_section(own, manifest, names[:MOST], "mistakes")]
    sections = [
        Section("At sites not seen in training", parts=shown, name="unseen"),
        *mistakes,
        alternatives(summary, words.get("comparison", "")),
        Section("The data", data_body(summary), name="data"),
        Section("Details", details(path, summary, records), name="details"),
    ]
    verdict, *steps = summary.findings
    return Page(
        f"{look.name}: what to expect at a new site", [*steps, words["next"]], sections, lead=site_chart(summary),
        verdict=verdict, tiles=tiles, heading="What to do next",
    )  # fmt: skip


def site_chart(summary: FitSummary) -> Markup:
    """The accuracy at each site while held out and while known, and the range at a new one: the first thing to see."""
    known = same_site_gaps(summary.own)
    dots = [
        SiteDots(score.site, score.accuracy, known[score.site][0] if score.site in known else None)
        for score in summary.own
    ]
    found = summary.accuracy
    new = NewSite("a new site", found.low, found.high, found.mean if found.enough else None)
    return figure(site_dots(dots, new if found.sites > 1 else None))


def site_table(summary: FitSummary) -> Markup:
    """Each site: accuracy while held out and while known, and averaged over its classes."""
    known = {site: pair[0] for site, pair in same_site_gaps(summary.own).items()}
    rows = [
        [score.site, score.n, score.accuracy, *([known.get(score.site)] if known else []), score.balanced]
        for score in summary.own
    ]
    return bar_table(["Site", "samples", "held out", *(["known"] if known else []), "over classes"], rows)


def class_table(summary: FitSummary) -> Markup:
    """Each class over all held-out sites, the weakest first."""
    rows = [
        [
            score.name,
            score.n,
            None if score.alone else score.recall,
            score.precision,
            f"(only {score.alone})" if score.alone else score.taken_for,
        ]
        for score in summary.classes
    ]
    return bar_table(["Class", "samples", "correct", "predictions correct", "most often misclassified as"], rows)


def alternatives(summary: FitSummary, comparison: str) -> Section:
    """Other methods and, where that was simulated, labels of a new site."""
    labels = label_sections(summary.labels)
    methods = Section("Other methods", comparison_table(summary), comparison, wide=not labels)
    return Section("What else was tried", parts=[methods, *labels], name="methods")


def comparison_table(summary: FitSummary) -> Markup:
    """Each model: the mean over the held-out sites, the highest over classes first."""
    rows = [
        (name, float(np.mean([score.accuracy for score in rows])), float(np.mean([score.balanced for score in rows])))
        for name, rows in summary.scores.items()
    ]
    rows.sort(key=lambda row: -row[2])
    return bar_table(["Model", "accuracy", "over classes"], rows)


def data_body(summary: FitSummary) -> Markup:
    """Warnings; counts, folded."""
    look = summary.data
    counts = figure(split_bars(SplitCounts("", look.classes, look.sites, look.counts)))
    return join_html(warning_list(look.warnings()), fold("Counts", join_html(paragraphs(*look.statements()), counts)))


def details(path: Path, summary: FitSummary, records: Sequence[Record]) -> Markup:
    """What was trained and tried, and the runs."""
    facts = [("Method", summary.title), *named_lines("training.txt.j2", training=summary.training), *summary.notes]
    runs = [run_section(records, path, len(records)).body] if records else []
    return join_html(fold("How the model was made", fact_list(facts)), *runs)


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
        "`longshift adapt`, simulated at the held-out sites with labels chosen by `longshift suggest` or at random; "
        "measured on other samples of the site."
    )
    return [Section("Labels of a new site", figure(line_chart(lines, "labels", "accuracy")), intro, "labels")]


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
    return [Section("Calibration", plots, intro)]


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
