"""The page about one new site: what to expect there, class mix, and images to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from longshift.array_types import FloatArray, IntArray
from longshift.fitting.data_summary import named_lines
from longshift.inference import LEVEL, LoadedModel, Outputs, Predictions, novelty
from longshift.report import (
    Captioned,
    NewSite,
    Page,
    Section,
    SiteDots,
    Tile,
    bar_table,
    fact_list,
    figure,
    fold,
    gallery,
    join_html,
    paragraphs,
    site_dots,
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
    words = named_lines(
        "site_page.txt.j2", found=found, model=model, site=site, noun=noun, level=LEVEL, beyond=len(beyond),
        suggested=0 if suggested is None else len(suggested),
    )  # fmt: skip
    one = dict(words)
    steps = [value for name, value in words if name == "next"]
    facts = [(name, value) for name, value in words if name[0].isupper()]
    sections = []
    if suggested is not None:
        body = gallery(_captioned(model, outputs, shares, suggested))
        sections.append(Section("Label these", body, one["suggested"], "suggested"))
    sections.append(Section("Class mix", mix_table(model, shares), one["mix"], "classes"))
    least = gallery(_captioned(model, outputs, shares, order[:SHOWN]))
    sections.append(Section(f"Least sure {noun}s", least, name="unsure"))
    if len(scores):
        farthest = beyond[np.argsort(-scores[beyond], kind="stable")][:SHOWN]
        body = gallery(_captioned(model, outputs, shares, farthest))
        sections.append(Section(f"{noun.capitalize()}s unlike anything seen", body, one["unlike"], "unlike"))
    examples = fold("Examples of each predicted class, from sure to unsure", _examples(model, outputs, shares, noun))
    sections.append(Section("Details", join_html(examples, fold("Model and data", fact_list(facts))), name="details"))
    tiles = [
        Tile("Expected accuracy here", one["accuracy"], one["accuracy_text"]),
        Tile("Unsure predictions", one["unsure"], one["unsure_text"]),
        Tile("Adapted to this site", one["adapted"], one["adapted_text"]),
    ]
    return Page(
        f"{site}: predictions at a new site", steps, sections, lead=expected_chart(found, site), verdict=one["verdict"],
        tiles=tiles, warnings=found.warnings(), heading="What to do next",
    )  # fmt: skip


def expected_chart(found: Predictions, site: str) -> Markup:
    """The accuracy that is expected here, and that of the held-out sites; nothing without an estimate."""
    if found.estimate is None:
        return Markup()
    expected = found.estimate.accuracy
    dots = [SiteDots(held.site, held.accuracy) for held in found.held_out]
    return figure(site_dots(dots, NewSite(site, expected.low, expected.high, expected.mean)))


def mix_table(model: LoadedModel, shares: FloatArray) -> Markup:
    """Predicted share of each class here and its shares at the training sites; the largest difference first."""
    predicted = np.bincount(shares.argmax(axis=1), minlength=len(model.classes)) / len(shares)
    counts = np.asarray(model.info.counts, dtype=np.float64)
    known = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    # A share between those of two training sites is no difference.
    apart = np.maximum(known.min(axis=0) - predicted, predicted - known.max(axis=0))
    rows = [
        [
            model.classes[k],
            float(predicted[k]),
            float(known[:, k].mean()),
            f"{100 * known[:, k].min():.0f}-{100 * known[:, k].max():.0f} %",
        ]
        for k in np.lexsort((-abs(predicted - known.mean(axis=0)), -np.maximum(apart, 0)))
    ]
    return bar_table(["Class", "predicted here", "training sites", "from-to"], rows)


def _examples(model: LoadedModel, outputs: Outputs, shares: FloatArray, noun: str) -> Markup:
    """Some of each predicted class."""
    parts = []
    predicted = shares.argmax(axis=1)
    for k, name in enumerate(model.classes):
        own = np.flatnonzero(predicted == k)
        own = own[np.argsort(-shares[own, k], kind="stable")]
        chosen = own[np.unique(np.linspace(0, len(own) - 1, min(PER_CLASS, len(own))).astype(int))] if len(own) else own
        parts += [paragraphs(f"{name}: {counted(len(own), noun)}"), gallery(_captioned(model, outputs, shares, chosen))]
    return join_html(*parts)


def _captioned(
    model: LoadedModel, outputs: Outputs, shares: FloatArray, chosen: Sequence[int] | IntArray
) -> list[Captioned]:
    made = []
    for i in np.asarray(chosen).tolist():
        first, second = np.argsort(-shares[i], kind="stable")[:2].tolist()
        title = f"{model.classes[first]} {100 * shares[i, first]:.0f} %"
        name = outputs.names[i]
        rest = f"{100 * shares[i, second]:.0f}"
        note = f"{model.classes[second]} {rest} %" if rest != "0" else ""
        made.append(Captioned("" if model.info.vectors else name, title, note, Path(name).name))
    return made


def site_name(items: Sequence[str]) -> str:
    """A name for a site from the inputs of a command: the folder or file that was given."""
    name = Path(items[0]).name or Path(items[0]).resolve().name
    return name if len(items) == 1 else f"{name} and {len(items) - 1} more"
