"""The classes and domains with the lowest accuracy: the rule, the facts, and the part of a page with their mistakes."""

from __future__ import annotations

import base64
import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from PIL import Image
from scipy import stats

from longshift.data import BadImage, Manifest, SampleReader, decode, load_dataset, open_source, open_store
from longshift.errors import LongshiftError
from longshift.inference import LEVEL
from longshift.metrics import probabilities
from longshift.report.html_page import Section, fragment
from longshift.report.runs import Record, class_accuracy, sum_confusion
from longshift.report.titles import words

LOW = 0.5  # recognized less often than not
BEHIND = 0.15  # this far below the mean of all classes
MOST_CLASSES, MOST_DOMAINS, MOST_PICTURES = 3, 2, 8
SIDE = 96  # of a thumbnail


def weak_indices(accuracies: Sequence[float | None]) -> list[int]:
    """Positions of the weak values, weakest first: below one half, or 15 points below the mean. The best never is.

    >>> weak_indices([0.9, 0.45, None, 0.7])
    [1]
    >>> weak_indices([0.4, 0.3])  # both are low, but one of them is the best there is
    [1]
    """
    known = sorted((value, k) for k, value in enumerate(accuracies) if value is not None)
    if not known:
        return []
    best, limit = known[-1][0], weak_below([value for value, _ in known])
    return [k for value, k in known if value < best and value < limit]


def weak_below(known: Sequence[float]) -> float:
    """The accuracy under which a class is called weak."""
    return max(LOW, sum(known) / len(known) - BEHIND)


def share_interval(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval for the share that stands behind `share` of n samples, by their number alone.

    >>> [round(end, 2) for end in share_interval(0.0, 1)], [round(end, 2) for end in share_interval(0.4, 100)]
    ([0.0, 0.62], [0.34, 0.46])
    """
    z = float(stats.norm.ppf((1 + LEVEL) / 2))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


@dataclass(frozen=True)
class CorrectCount:
    """How many samples of a class or at a target are right."""

    name: str
    right: int
    samples: int

    @property
    def share(self) -> float:
        """The accuracy."""
        return self.right / self.samples


@dataclass(frozen=True)
class WeakGroup:
    """A class or a target with a low accuracy."""

    count: CorrectCount  # its samples
    weak: bool  # whether it counts as weak; otherwise it is only the lowest
    samples: int  # how many of its samples differ: trials repeat them
    interval: tuple[float, float]  # of its accuracy, by the number of these samples
    unsure: bool  # whether these are too few to show that it is weak
    parts: tuple[CorrectCount, ...]  # a class at each target, or the classes at a target; the most mistakes first
    # The classes that a class is most often taken for, with the share of its samples
    taken_for: tuple[tuple[str, float], ...] = ()
    trained: float = 0.0  # training samples of a class in a run, on average
    usual: float = 0.0  # the same of the median class


def weak_classes(records: Sequence[Record]) -> list[WeakGroup]:
    """Classes that score low on the target (or, if none does, the lowest one): how low, how sure that is, and where.

    A class that no run could learn, because no training sample was of it, is left out.
    """
    classes, total, targets = records[0].classes, sum_confusion(records), by_target(records)
    trained = np.mean([np.asarray(r.result["split"]["counts"]).sum(axis=0) for r in records], axis=0)
    learned = [k for k, value in enumerate(learned_accuracy(records)) if value is not None]
    found = []
    counts = [_count(classes[k], total, k) for k in learned]
    for at, group in _weakest(counts, len(records) / len(targets), MOST_CLASSES):
        k = learned[at]
        parts = [_count(name, confusion, k) for name, confusion in targets.items() if confusion[k].sum()]
        wrong = total[k].copy()
        wrong[k] = 0
        taken = [int(j) for j in np.argsort(-wrong, kind="stable")[:3] if wrong[j]]
        shares = tuple((classes[j], float(wrong[j] / group.count.samples)) for j in taken)
        order = tuple(sorted(parts, key=lambda count: (count.share, count.name)))
        usual = float(np.median(trained))
        found.append(replace(group, parts=order, taken_for=shares, trained=float(trained[k]), usual=usual))
    return found


def weak_domains(records: Sequence[Record]) -> list[WeakGroup]:
    """The targets that score low (if none does, the lowest one): how much is right there, what is lowest there."""
    targets = by_target(records)
    counts = [CorrectCount(name, int(np.trace(n)), int(n.sum())) for name, n in targets.items()]
    found = []
    for _, group in _weakest(counts, len(records) / len(targets), MOST_DOMAINS):
        here = targets[group.count.name]
        parts = [_count(name, here, k) for k, name in enumerate(records[0].classes) if here[k].sum()]
        wrong = [count for count in parts if count.right < count.samples]
        order = sorted(wrong, key=lambda count: (count.right - count.samples, count.name))
        found.append(replace(group, parts=tuple(order[:3])))
    return found


def _weakest(counts: Sequence[CorrectCount], trials: float, most: int) -> Iterator[tuple[int, WeakGroup]]:
    """The weak ones among some counts, or the lowest, with their positions."""
    shares = [count.share for count in counts]
    weak = weak_indices(shares)
    lowest = [shares.index(min(shares))] if len(set(shares)) > 1 else []
    for k in (weak or lowest)[:most]:
        samples = round(counts[k].samples / trials)
        interval = share_interval(shares[k], samples)
        unsure = bool(weak) and interval[1] >= weak_below(shares)
        yield k, WeakGroup(counts[k], bool(weak), samples, interval, unsure, ())


def _count(name: str, confusion: npt.NDArray[np.int64], k: int) -> CorrectCount:
    return CorrectCount(name, int(confusion[k, k]), int(confusion[k].sum()))


def by_target(records: Sequence[Record]) -> dict[str, npt.NDArray[np.int64]]:
    """The confusion matrices of the runs of each target, added up."""
    targets = dict.fromkeys(record.target for record in records)
    return {name: sum_confusion([record for record in records if record.target == name]) for name in targets}


def learned_accuracy(records: Sequence[Record]) -> list[float | None]:
    """Accuracy of each class, None where no run that was measured on it had a sample of it to learn from."""
    tables = np.array([r.chosen["target"]["confusion"] for r in records])
    trained = np.array([np.asarray(r.result["split"]["counts"]).sum(axis=0) for r in records])
    measured = (tables.sum(axis=2) * (trained > 0)).sum(axis=0)
    return [value if n else None for value, n in zip(class_accuracy(records), measured, strict=True)]


def weak_section(records: Sequence[Record], data: str | Manifest | None = None, name: str = "") -> Section:
    """The classes and domains with the lowest accuracy of one method; `data` says where the images are now."""
    found = _find_mistakes(records, data)
    body = fragment(
        "weak.html.j2",
        classes=[(weak, found.examples(true=weak.count.name)) for weak in weak_classes(records)],
        domains=[(weak, found.examples(domain=weak.count.name)) for weak in weak_domains(records)],
        why=found.why, level=LEVEL,
    )  # fmt: skip
    intro = words(
        "weak_intro", method=records[0].title, low=LOW, behind=BEHIND, most=MOST_CLASSES,
        weak=len(weak_indices(learned_accuracy(records))), examples=bool(found.samples),
    )  # fmt: skip
    return Section("Lowest-scoring classes and domains", body, intro, name, wide=True)


def mistake_section(records: Sequence[Record], data: Manifest | None, classes: Sequence[str], name: str) -> Section:
    """Misclassified samples of some classes, with their names."""
    found = _find_mistakes(records, data)
    groups = [(name, found.examples(true=name)) for name in classes]
    return Section(
        "Mistakes", fragment("mistakes.html.j2", groups=groups, why=found.why), words("mistakes_intro"), name
    )


@dataclass(frozen=True)
class _Mistakes:
    manifest: Manifest | None
    samples: Sequence[Misclassified]
    why: str = ""  # there are none to show

    def examples(self, **wanted: str) -> list[tuple[str, str, Misclassified]] | None:
        """Thumbnail, name and sample of some mistakes; None where they are not known."""
        own = [s for s in self.samples if all(getattr(s, key) == value for key, value in wanted.items())]
        return pictures(_varied(own), self.manifest) if self.manifest is not None else None


def _find_mistakes(records: Sequence[Record], data: str | Manifest | None) -> _Mistakes:
    try:
        return _Mistakes(*misclassified_samples(records, data))
    except LongshiftError as error:
        return _Mistakes(None, [], str(error))


@dataclass(frozen=True)
class Misclassified:
    """A misclassified sample."""

    index: int  # in the manifest
    true: str
    predicted: str
    confidence: float  # calibrated on the run's validation set, as in the output of `longshift predict`
    domain: str


def misclassified_samples(
    records: Sequence[Record], data: str | Manifest | None = None
) -> tuple[Manifest, list[Misclassified]]:
    """The dataset and the misclassified samples of the first trial of each target, most confident first.

    Raises:
        LongshiftError: The runs kept no predictions, or their dataset is not there or has changed.
    """
    first = {record.target: record for record in sorted(records, key=lambda r: -r.trial)}  # trials repeat samples
    kept = [(record, arrays) for record in first.values() if (arrays := record.predictions()) is not None]
    if not kept:
        raise LongshiftError("the runs kept no predictions (train with --save-predictions)")
    place = data or str(records[0].result["run"]["data"])
    manifest = place if isinstance(place, Manifest) else load_dataset(place)
    samples = []
    for record, arrays in kept:
        indices, labels = arrays["target_indices"], arrays["target_labels"]
        if len(indices) and (
            int(indices.max()) >= len(manifest)
            or not np.array_equal(manifest.labels[indices], labels)
            or list(manifest.classes) != record.classes
        ):
            raise LongshiftError(f"the dataset {manifest.name} has changed since the run")
        shares = probabilities(arrays["target_logits"], temperature=record.temperature(arrays))
        predicted, sure = shares.argmax(axis=1), shares.max(axis=1)
        samples += [
            Misclassified(
                int(indices[i]), manifest.classes[int(labels[i])], manifest.classes[int(predicted[i])], float(sure[i]),
                manifest.domain_names[int(manifest.domains[indices[i]])],
            )
            for i in np.argsort(-sure, kind="stable")
            if predicted[i] != labels[i]
        ]  # fmt: skip
    return manifest, sorted(samples, key=lambda s: -s.confidence)


def pictures(samples: Sequence[Misclassified], manifest: Manifest) -> list[tuple[str, str, Misclassified]]:
    """Thumbnail as a data URI ("" for vectors), name and sample; images that cannot be read are left out."""
    names = [manifest.paths[sample.index] for sample in samples]
    if manifest.vectors:
        return [("", name, sample) for name, sample in zip(names, samples, strict=True)]
    if manifest.root is None:
        pixels = open_store(manifest, 32).inputs
        made = [thumbnail(Image.fromarray(pixels[sample.index])) for sample in samples]
        return list(zip(made, names, samples, strict=True))
    found = []
    with open_source(manifest) as source:
        for name, sample in zip(names, samples, strict=True):
            try:
                found.append((thumbnail(decode(source.read(name))), name, sample))
            except BadImage:
                continue
    return found


def _varied(samples: Sequence[Misclassified]) -> list[Misclassified]:
    """The surest mistakes, but not eight times the same: each pair of classes twice at most while others remain."""
    seen: Counter[tuple[str, str]] = Counter()
    ranks = []
    for sample in samples:
        seen[sample.true, sample.predicted] += 1
        ranks.append(seen[sample.true, sample.predicted] > 2)
    return [sample for _, sample in sorted(zip(ranks, samples, strict=True), key=lambda pair: pair[0])][:MOST_PICTURES]


@dataclass(frozen=True)
class Captioned:
    """An image file (or "" for samples without one) with a title, a fainter second line and the sample's name."""

    file: str
    title: str
    note: str
    name: str


def gallery(samples: Sequence[Captioned]) -> Markup:
    """Pictures side by side; a file that cannot be read has its texts only."""

    with SampleReader() as reader:

        def uri(file: str) -> str:
            try:
                return thumbnail(decode(reader.read(file))) if file else ""
            except (BadImage, OSError, LongshiftError):
                return ""

        return fragment("gallery.html.j2", pictures=[(uri(sample.file), sample) for sample in samples])


def thumbnail(image: Image.Image) -> str:
    """A small copy of an image as a data URI."""
    image = image.convert("RGB")
    image.thumbnail((SIDE, SIDE))
    # Small drawings stay sharp as PNG; photographs are a tenth of the size as JPEG.
    kind, options = ("png", {"optimize": True}) if max(image.size) < SIDE else ("jpeg", {"quality": 80})
    out = io.BytesIO()
    image.save(out, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode('ascii')}"
