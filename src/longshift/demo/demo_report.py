"""The demonstration's page: one sentence and one picture, then the general report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from string import Template

import pandas as pd
from markupsafe import Markup

from longshift.data import DIGITS, PACS_FEATURES
from longshift.demo.rescued_classes import BASELINE, Rescue, changed_classes, find_rescue, method_scores
from longshift.report import (
    Page,
    Record,
    ReportRuns,
    Section,
    build_tables,
    class_changes,
    figure,
    join_html,
    method_title,
    order_methods,
    order_settings,
    paragraphs,
    read_records,
    report_page,
    run_folders,
)
from longshift.sweep import collect

STEPS = 150
ABOUT = {
    PACS_FEATURES: "PACS: 9,991 photos, paintings, cartoons and sketches of seven classes. A network trained on "
    "ImageNet (MobileNetV2) computed the features once; each run trains a hidden layer of 256 units on them, on three "
    "domains, and is tested on the fourth. For numbers with all layers trained, see docs/results.",
    DIGITS: "1,797 handwritten digits in four drawing styles. Each run trains a small network from random weights on "
    "three styles and is tested on the fourth. The runs are short: compare the methods, not the numbers with those "
    "of papers. Ten classes: guessing is right 10% of the time.",
}
NOT_BETTER = (
    "Do not expect NDCL-plus to beat BSoftmax here: the data are fixed features, so NDCL-plus runs without style "
    "mixing, the part that helps it on images."
)
SETTINGS = {
    "TotalHeavyTail": "the same classes are rare everywhere",
    "Duality": "rare classes differ by domain",
}


def demo_sweep(data: str, trials: int, steps: int = STEPS) -> str:
    """The sweep file of the demonstration on an embedded dataset."""
    text = (resources.files("longshift.demo") / f"{data}.toml").read_text(encoding="utf-8")
    return Template(text).substitute(trials=trials, steps=steps, eval_every=max(steps // 6, 1))


@dataclass(frozen=True, eq=False)
class DemoRuns:
    """The runs of a demonstration and what they show."""

    runs: ReportRuns
    records: Sequence[Record]
    rescue: Rescue


def read_demo(folder: Path) -> DemoRuns:
    """The finished demonstration in a folder."""
    runs = ReportRuns(collect(folder, missing=True), folders=run_folders(folder))
    records = read_records(runs.chosen, runs.folders, list(runs.chosen["method"].unique()))
    return DemoRuns(runs, records, find_rescue(runs.chosen, records))


def demo_page(found: DemoRuns, page: Path, data: str) -> Page:
    """The page of a demonstration, to be written to `page`."""
    runs = found.runs
    command = "longshift demo" if data == PACS_FEATURES else f"longshift demo --data {data}"
    made = report_page(runs, build_tables(runs, ("average", "target", "worst", "cost")), page, command=command)
    words = [*what_to_look_at(runs.chosen), ABOUT[data]]
    if data == PACS_FEATURES:
        words.insert(1, NOT_BETTER)
    look = Section("What to look at", paragraphs(*words), name="look")
    names = [method_title(name) for name in order_methods(runs.chosen["method"].unique())]
    title = f"Rare classes in unseen domains: {', '.join(names[:-1])} and {names[-1]}"
    lead = opening(found.rescue, found.records, method_scores(runs.chosen))
    sections = [_without_margins(section) if data == PACS_FEATURES else section for section in made.sections]
    return replace(made, title=title, lead=lead, facts=(), sections=[look, *sections])


def _without_margins(section: Section) -> Section:
    """Margins need predictions of single samples; keeping them would take a quarter of the time."""
    return replace(section, parts=[part for part in section.parts if not part.anchor.startswith("margins-")])


def opening(rescue: Rescue, records: Sequence[Record], scores: Mapping[str, tuple[float, float]]) -> Markup:
    """The sentence and the picture that a newcomer sees first."""
    by_setting = {
        f"{setting}: {SETTINGS[setting]}": changed_classes([r for r in records if r.setting == setting], rescue.method)
        for setting in order_settings([record.setting for record in records])
    }
    caption = (
        "Percent of each class at unseen domains that is recognized, over all unseen domains and trials. In "
        f"parentheses: mean number of training images. Right: change in points. {_why_drawn(rescue, scores)}"
    )
    drawing = class_changes(by_setting, method_title(BASELINE), method_title(rescue.method))
    return join_html(paragraphs(rescue.sentence()), figure(drawing, caption))


def _why_drawn(rescue: Rescue, scores: Mapping[str, tuple[float, float]]) -> str:
    """Why the picture shows this method, with the numbers of all that it could show."""
    others = [name for name in rescue.ranks if name != BASELINE]
    if len(others) == 1:
        return ""
    numbers = [f"{method_title(name)} {rescue.ranks[name]:.2f} and {scores[name][1]:.1f}%" for name in others]
    first, other = method_title(BASELINE), method_title(rescue.method)
    return (
        f"The picture compares {first} with {other} because {other} has the best average rank of the methods other "
        f"than {first} (average rank and accuracy over all images: {'; '.join(numbers)})."
    )


def what_to_look_at(chosen: pd.DataFrame) -> list[str]:
    """What to read next, with the measured numbers of all methods."""
    listed = "; ".join(
        f"{method_title(name)} {few:.1f}% and {every:.1f}%" for name, (few, every) in method_scores(chosen).items()
    )
    return [
        f"Accuracy at unseen domains on rare classes and on all images, mean over both settings: {listed}. The tables "
        "below have each setting and each unseen domain, with standard errors over the trials.",
        "Further down, bars show the accuracy of each class with each method, and the confusion matrix which classes "
        "are taken for which others.",
    ]
