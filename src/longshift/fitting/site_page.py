"""The page about one new site: what to expect there, class mix, and images to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.fitting.data_summary import named_lines
from longshift.fitting.page import number_table
from longshift.inference import LoadedModel, Outputs, Predictions, novelty
from longshift.report import (
    Captioned,
    Cell,
    Page,
    Section,
    Table,
    confidence_histogram,
    figure,
    gallery,
    paragraphs,
    table_html,
    write_page,
)
from longshift.text import counted

SHOWN, PER_CLASS = 24, 6


def write_site_page(
    path: Path, model: LoadedModel, found: Predictions, site: str, suggested: IntArray | None = None
) -> None:
    """Write the page of the predictions at a site; `suggested` are samples to label, shown first."""
    write_page(site_page(model, found, site, suggested), path)


def site_page(model: LoadedModel, found: Predictions, site: str, suggested: IntArray | None = None) -> Page:
    """The page; `found` must hold its outputs (`keep_outputs`)."""
    outputs = found.outputs
    assert outputs is not None
    shares = outputs.probabilities(model.temperature).numpy()
    order = np.argsort(shares.max(axis=1), kind="stable")
    noun = "vector" if model.info.vectors else "image"
    scores, features = np.zeros(0), outputs.features
    if model.knowledge is not None and features is not None:
        scores = novelty(model.knowledge.reference, features.numpy())
    beyond = np.flatnonzero(scores > 1)
    intros = dict(
        named_lines(
            "site_page.txt.j2", noun=noun, suggested=0 if suggested is None else len(suggested), beyond=len(beyond),
            sure=model.knowledge.sure if model.knowledge else None,
        )
    )  # fmt: skip
    words = named_lines("site_facts.txt.j2", found=found, model=model, site=site, noun=noun)
    sections = []
    if suggested is not None:
        body = gallery(_captioned(model, outputs, shares, suggested))
        sections.append(Section("Label these", body, intros["suggested"], "suggested", wide=True))
    if found.estimate:
        sections.append(Section("Expected accuracy", table_html(evidence_table(model, found, site)), "", "expected"))
    histogram = figure(confidence_histogram(shares.max(axis=1).tolist(), found.unsure_below))
    sections.append(Section("Confidence", histogram, intros.get("confidence", ""), "confidence"))
    sections.append(Section("Class mix", table_html(mix_table(model, shares, site)), "", "classes"))
    least = gallery(_captioned(model, outputs, shares, order[:SHOWN]))
    sections.append(Section(f"Least sure {noun}s", least, "Check these first.", "unsure", wide=True))
    if len(scores):
        farthest = beyond[np.argsort(-scores[beyond], kind="stable")][:SHOWN]
        body = gallery(_captioned(model, outputs, shares, farthest))
        sections.append(
            Section(f"{noun.capitalize()}s unlike anything seen", body, intros["unlike"], "unlike", wide=True)
        )
    sections.append(_class_section(model, outputs, shares, noun))
    facts = [(name, value) for name, value in words if name != "Finding"]
    findings = [value for name, value in words if name == "Finding"]
    return Page(f"{site}: predictions at a new site", findings, sections, facts)


def evidence_table(model: LoadedModel, found: Predictions, site: str) -> Table:
    """This site next to the held-out ones, where the truth is known."""
    estimate, knowledge = found.estimate, model.knowledge
    assert estimate is not None
    assert knowledge is not None
    here = f"{site} (expected{', unreliable' if estimate.unreliable else ''})"
    rows = []
    for label, signals, accuracy in (
        (here, estimate.signals, estimate.accuracy.mean),
        *((held.site, held.signals, held.accuracy) for held in knowledge.held_out),
    ):
        shares = (accuracy, signals.agreement, signals.dispersity, signals.confidence)
        cells = [Cell(float(signals.n), digits=0), *(Cell(100 * share) for share in shares)]
        rows.append((label, [*cells, Cell(signals.nearest, digits=2)]))
    names = ("samples", "accuracy, %", "agreement", "dispersity", "confidence", "distance")
    return number_table(
        "evidence", "This site and the held-out ones", "Site", [(name, "") for name in names], rows,
        "accuracy: measured with labels at the held-out sites; at this site estimated from agreement and dispersity, "
        "and corrected by the errors of this estimate at the held-out sites. agreement: predictions (%) that the "
        "nearest class mean confirms once the site's shift is removed from the features. dispersity: how certain "
        "predictions are, and how well they tell classes apart (100: certain). confidence: mean calibrated "
        "probability of the predicted class. distance: between the mean features of the site and of the nearest "
        "training site, in units of the spread inside sites.",
    )  # fmt: skip


def mix_table(model: LoadedModel, shares: FloatArray, site: str) -> Table:
    """Predicted share of each class here, and its share at the training sites."""
    predicted = np.bincount(shares.argmax(axis=1), minlength=len(model.classes)) / len(shares)
    counts = np.asarray(model.info.counts, dtype=np.float64)
    known = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = model.info.sources if len(model.info.sources) == len(known) else ("all sites",)
    table = np.vstack([predicted, known])
    return number_table(
        "mix", "Percent of the samples of each class", "Class",
        [(name, "") for name in (f"{site} (predicted)", *names)],
        [(name, [Cell(100 * float(share)) for share in table[:, k]]) for k, name in enumerate(model.classes)],
        "At training sites: of their training samples. A class that is predicted far more often than anywhere before "
        "may attract mistakes.",
    )  # fmt: skip


def _class_section(model: LoadedModel, outputs: Outputs, shares: FloatArray, noun: str) -> Section:
    """Examples of each predicted class, from sure to unsure."""
    parts = []
    predicted = shares.argmax(axis=1)
    for k, name in enumerate(model.classes):
        own = np.flatnonzero(predicted == k)
        own = own[np.argsort(-shares[own, k], kind="stable")]
        chosen = own[np.unique(np.linspace(0, len(own) - 1, min(PER_CLASS, len(own))).astype(int))] if len(own) else own
        title = f"Predicted {name}: {counted(len(own), noun)}"
        body = gallery(_captioned(model, outputs, shares, chosen)) if len(own) else paragraphs("None.")
        parts.append(Section(title, body, name=f"class-{k}"))
    return Section("Examples of each predicted class", parts=parts, intro="From sure to unsure.", name="examples")


def _captioned(
    model: LoadedModel, outputs: Outputs, shares: FloatArray, chosen: Sequence[int] | IntArray
) -> list[Captioned]:
    made = []
    for i in np.asarray(chosen).tolist():
        first, second = np.argsort(-shares[i], kind="stable")[:2].tolist()
        title = f"{model.classes[first]} {100 * shares[i, first]:.0f} %"
        name = outputs.names[i]
        note = f"{model.classes[second]} {100 * shares[i, second]:.0f} %, {Path(name).name}"
        made.append(Captioned("" if model.info.vectors else name, title, note))
    return made


def site_name(items: Sequence[str]) -> str:
    """A name for a site from the inputs of a command: the folder or file that was given."""
    name = Path(items[0]).name or Path(items[0]).resolve().name
    return name if len(items) == 1 else f"{name} and {len(items) - 1} more"
