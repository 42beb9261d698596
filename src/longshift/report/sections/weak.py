"""Weak classes and hard domains, each with pictures that were got wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from longshift.errors import LongshiftError
from longshift.report.page import Section, fold, fragment, paragraphs, stack
from longshift.report.records import Record, class_accuracy, sum_confusion
from longshift.report.weakness import weak_indices
from longshift.report.wrong import Wrong, load_manifest, pictures, wrong_samples
from longshift.words import counted

CLASSES, DOMAINS, PICTURES = 3, 2, 8


@dataclass(frozen=True)
class Weak:
    """A weak class or domain: what it is called on the page, its accuracy and what to say about it."""

    name: str
    accuracy: float
    text: str
    title: str = ""


def weak_section(
    records: Sequence[Record], data: str | None = None, name: str = "", noun: str = "domain", most: int = CLASSES
) -> Section:
    """Weak classes and hard domains of one method; `data` says where the images lie now, `noun` what a domain is."""
    samples, why = _samples(records, data)
    manifest_of = data or str(records[0].result["run"]["data"])
    parts: list[Markup] = []
    for of_class, found in ((True, weak_classes(records, most)), (False, weak_domains(records, noun))):
        for weak in found:
            own = [s for s in samples if (s.true if of_class else s.domain) == weak.name]
            parts.append(_part(weak, own, bool(why), manifest_of))
    if why:
        parts.append(paragraphs(why))
    intro = f"Where {records[0].title} does worst at an unseen {noun}."
    if samples:
        intro += " Its surest mistakes come first; how sure is calibrated, as in the output of longshift predict."
    return Section("Weak points", stack(*parts), intro, name, wide=True)


def weak_classes(records: Sequence[Record], most: int = CLASSES) -> list[Weak]:
    """Weak classes on the target (or, if none is, the lowest one), and what they are taken for."""
    classes = records[0].classes
    accuracy, confusion = class_accuracy(records), sum_confusion(records)
    counts = np.mean([np.asarray(r.result["split"]["counts"]).sum(axis=0) for r in records], axis=0)
    weak = weak_indices(accuracy)
    known = [value for value in accuracy if value is not None]
    lowest = [k for k, value in enumerate(accuracy) if value == min(known) < max(known)][:1]
    found = []
    for k in (weak or lowest)[:most]:
        row, n = confusion[k].copy(), int(confusion[k].sum())
        text = f"{confusion[k, k]} of {counted(n, 'sample')} right; a run trains on {counts[k]:.0f} on average."
        row[k] = 0
        if row.sum():
            taken = [j for j in np.argsort(-row, kind="stable")[:3] if row[j]]
            share = ", ".join(f"{classes[int(j)]} ({100 * row[j] / n:.0f} %)" for j in taken)
            text += f" Most often taken for {share}."
        found.append(
            Weak(classes[k], float(confusion[k, k] / n), text, "Weak class" if weak else "Lowest class, not weak")
        )
    return found


def weak_domains(records: Sequence[Record], noun: str = "domain") -> list[Weak]:
    """The hardest targets (the best is left out), and the source domain that suffers most when they are the target."""
    targets: dict[str, list[Record]] = {}
    for record in records:
        targets.setdefault(record.target, []).append(record)
    found = []
    for target, runs in targets.items():
        own = float(np.mean([r.chosen["target"]["accuracy"] for r in runs]))
        mean = f", mean of {counted(len(runs), 'run')}" if len(runs) > 1 else ""
        text = f"Percent of its samples right when the model has not seen it{mean}."
        tests = [r.chosen["test"] for r in runs if r.chosen.get("test")]
        if tests:
            names = [t["worst_domain_name"] for t in tests]
            worst = max(set(names), key=lambda n: (names.count(n), str(n)))
            held = float(np.mean([t["worst_domain"] for t in tests]))
            text += f" Of the {noun}s trained on, {worst} does worst ({100 * held:.1f} % on held-out samples)."
        found.append(Weak(target, own, text, f"Hard {noun}"))
    if len(found) == 1:
        return [replace(found[0], title=f"The only unseen {noun}")]
    best = max(weak.accuracy for weak in found)
    return sorted((w for w in found if w.accuracy < best), key=lambda weak: (weak.accuracy, weak.name))[:DOMAINS]


def _samples(records: Sequence[Record], data: str | None) -> tuple[list[Wrong], str]:
    """Wrong samples of the first trial of each target (trials would repeat them), or why there are none."""
    first = {record.target: record for record in sorted(records, key=lambda r: -r.trial)}
    with_predictions = [r for r in first.values() if r.predictions() is not None]
    if not with_predictions:
        return [], "No example images: the runs kept no predictions (train with --predictions)."
    try:
        manifest = load_manifest(data or str(records[0].result["run"]["data"]))
        samples = [s for r in with_predictions for s in wrong_samples(r, manifest)]
    except LongshiftError as error:
        return [], f"No example images: {error}."
    return sorted(samples, key=lambda s: -s.confidence), ""


def _part(weak: Weak, samples: Sequence[Wrong], unknown: bool, data: str) -> Markup:
    title = f"{weak.title}: {weak.name} ({100 * weak.accuracy:.1f} %)"
    body = paragraphs(weak.text)
    if samples:
        shown = pictures(_varied(samples), load_manifest(data))
        body = stack(body, fragment("wrong.html.j2", pictures=shown))
    elif not unknown:
        body = stack(body, paragraphs("No example images: no sample of it was got wrong in the runs with predictions."))
    return fold(title, body, opened=True)


def _varied(samples: Sequence[Wrong]) -> list[Wrong]:
    """The surest mistakes, but not eight times the same: each pair of classes twice at most while others remain."""
    seen: dict[tuple[str, str], int] = {}
    first: list[Wrong] = []
    rest: list[Wrong] = []
    for sample in samples:
        pair = (sample.true, sample.predicted)
        seen[pair] = seen.get(pair, 0) + 1
        (first if seen[pair] <= 2 else rest).append(sample)
    return [*first, *rest][:PICTURES]
