"""A section a weak class and a weak domain, with pictures that were got wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from longshift.errors import LongshiftError
from longshift.report.page import Section, fold, fragment, paragraphs, stack
from longshift.report.records import Record, mean_per_class
from longshift.report.wrong import Wrong, load_manifest, pictures, wrong_samples

CLASSES, DOMAINS, PICTURES = 3, 2, 8


@dataclass(frozen=True)
class Weak:
    """A weak class or domain: its accuracy and what to say about it."""

    name: str
    accuracy: float
    text: str


def weak_section(records: Sequence[Record], data: str | None = None, name: str = "") -> Section:
    """Weakest classes and domains of one method; `data` says where the images lie now."""
    samples, why = _samples(records, data)
    manifest_of = data or str(records[0].result["run"]["data"])
    parts: list[Markup] = []
    for kind, found in (("class", weak_classes(records)), ("domain", weak_domains(records))):
        for weak in found:
            own = [s for s in samples if (s.true if kind == "class" else s.domain) == weak.name]
            parts.append(_part(kind, weak, own, bool(why), manifest_of))
    if why:
        parts.append(paragraphs(why))
    intro = f"Where {records[0].title} does worst on unseen domains, surest mistakes first."
    return Section("Weak points", stack(*parts), intro, name, wide=True)


def weak_classes(records: Sequence[Record]) -> list[Weak]:
    """The classes with the lowest accuracy on the target, and what they are taken for."""
    classes = records[0].classes
    accuracy = mean_per_class(records)
    confusion = np.sum([np.asarray(r.chosen["target"]["confusion"], dtype=np.int64) for r in records], axis=0)
    counts = np.mean([np.asarray(r.result["split"]["counts"]).sum(axis=0) for r in records], axis=0)
    known = sorted((value, k) for k, value in enumerate(accuracy) if value is not None)
    found = []
    for value, k in known[:CLASSES]:
        row = confusion[k].copy()
        row[k] = 0
        text = f"It has {counts[k]:.0f} training samples."
        if row.sum():
            taken = [j for j in np.argsort(-row, kind="stable")[:3] if row[j]]
            share = ", ".join(f"{classes[int(j)]} ({100 * row[j] / confusion[k].sum():.0f} %)" for j in taken)
            text += f" Most often taken for {share}."
        found.append(Weak(classes[k], value, text))
    return found


def weak_domains(records: Sequence[Record]) -> list[Weak]:
    """The targets with the lowest accuracy, and the source domain that suffers most when they are the target."""
    targets: dict[str, list[Record]] = {}
    for record in records:
        targets.setdefault(record.target, []).append(record)
    found = []
    for target, runs in targets.items():
        own = float(np.mean([r.chosen["target"]["accuracy"] for r in runs]))
        text = f"Accuracy when it is the unseen domain, mean of {len(runs)} runs."
        tests = [r.chosen["test"] for r in runs if r.chosen.get("test")]
        if tests:
            names = [t["worst_domain_name"] for t in tests]
            worst = max(set(names), key=lambda n: (names.count(n), str(n)))
            mean = float(np.mean([t["worst_domain"] for t in tests]))
            text += f" Of the domains trained on, {worst} does worst ({100 * mean:.1f} % on held-out samples)."
        found.append(Weak(target, own, text))
    return sorted(found, key=lambda weak: (weak.accuracy, weak.name))[:DOMAINS]


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


def _part(kind: str, weak: Weak, samples: Sequence[Wrong], unknown: bool, data: str) -> Markup:
    title = f"Weak {kind}: {weak.name} ({100 * weak.accuracy:.1f} %)"
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
