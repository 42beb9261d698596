"""The classes and domains with the lowest accuracy: the rule, the facts, and the part of a page with their mistakes."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from PIL import Image
from scipy import stats

from longshift.data import MOST_BYTES, BadImage, Manifest, decode, load_dataset, open_source, open_store
from longshift.errors import LongshiftError
from longshift.inference import LEVEL
from longshift.io import read_limited
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


def share_interval(share: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval for the share that stands behind `share` of n samples, by their number alone.

    >>> [round(end, 2) for end in share_interval(0.0, 1)], [round(end, 2) for end in share_interval(0.4, 100)]
    ([0.0, 0.62], [0.34, 0.46])
    """
    z = float(stats.norm.ppf((1 + level) / 2))
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

    @property
    def wrong(self) -> int:
        """How many are wrong."""
        return self.samples - self.right


@dataclass(frozen=True)
class WeakClass:
    """A class with a low accuracy.

    Attributes:
        count: Its samples on the targets.
        learned: Whether a run that was measured on it had a sample of it to learn from.
        weak: Whether it counts as weak; otherwise it is only the lowest.
        interval: Of its accuracy, by the number of samples; None where several trials repeat them.
        trials: How many runs have the same target, on average.
        trained: Training samples of it in a run, on average.
        usual: The same of the median class.
        places: Its samples at each target, the lowest share first.
        taken_for: The classes it is most often taken for, with the share of its samples.
        unsure: Whether its samples are too few to show that it is weak.
    """

    count: CorrectCount
    learned: bool = False
    weak: bool = False
    interval: tuple[float, float] | None = None
    trials: float = 1.0
    trained: float = 0.0
    usual: float = 0.0
    places: tuple[CorrectCount, ...] = ()
    taken_for: tuple[tuple[str, float], ...] = ()
    unsure: bool = False


@dataclass(frozen=True)
class WeakDomain:
    """A target with a low accuracy.

    Attributes:
        name: Its name.
        accuracy: Mean accuracy of its runs.
        kind: "hard", or "lowest" if none is hard, or "only" if there is no other.
        runs: How many runs it is the target of.
        count: Its samples in all of them.
        interval: Of its accuracy, by the number of samples; None with several runs.
        mistakes: The classes with the most mistakes there.
        unsure: Whether its samples are too few to show that it is hard.
    """

    name: str
    accuracy: float
    kind: str
    runs: int
    count: CorrectCount
    interval: tuple[float, float] | None
    mistakes: tuple[CorrectCount, ...]
    unsure: bool


def weak_classes(records: Sequence[Record], most: int = MOST_CLASSES) -> list[WeakClass]:
    """Classes that score low on the target (or, if none does, the lowest one): how low, how sure that is, and where.

    Classes that no run could learn, because none of its training samples was of them, come first.
    """
    classes, confusion = records[0].classes, sum_confusion(records)
    accuracy, trained = learned_accuracy(records), _trained(records)
    never = [k for k, value in enumerate(accuracy) if value is None and confusion[k].sum()]
    known = [value for value in accuracy if value is not None]
    weak = weak_indices(accuracy)
    lowest = [k for k, value in enumerate(accuracy) if known and value == min(known) < max(known)][:1]
    usual = float(np.median(trained.mean(axis=0)))
    # The same samples in several runs say no more than once.
    trials = len(records) / len({record.target for record in records})
    found = [WeakClass(CorrectCount(classes[k], 0, int(confusion[k].sum()))) for k in never[:most]]
    for k in (weak or lowest)[:most]:
        count = CorrectCount(classes[k], int(confusion[k, k]), int(confusion[k].sum()))
        wrong = confusion[k].copy()
        wrong[k] = 0
        taken = [int(j) for j in np.argsort(-wrong, kind="stable")[:3] if wrong[j]]
        found.append(
            WeakClass(
                count, learned=True, weak=bool(weak), trials=trials, usual=usual, trained=float(trained[:, k].mean()),
                places=tuple(_by_target(records, k)),
                interval=share_interval(count.share, count.samples) if trials == 1 else None,
                taken_for=tuple((classes[j], float(wrong[j]) / count.samples) for j in taken),
                unsure=bool(weak) and _within_noise(count.share, count.samples / trials, known),
            )
        )  # fmt: skip
    return found


def weak_domains(records: Sequence[Record]) -> list[WeakDomain]:
    """The targets that score low (if none does, the lowest one): how much is right there, what is lowest there."""
    targets: dict[str, list[Record]] = {}
    for record in records:
        targets.setdefault(record.target, []).append(record)
    names = list(targets)
    shares = [float(np.mean([r.chosen["target"]["accuracy"] for r in targets[name]])) for name in names]
    hard = weak_indices(shares)[:MOST_DOMAINS]
    lowest = [k for k, value in enumerate(shares) if value == min(shares) < max(shares)][:1]
    only = [0] if len(names) == 1 else []
    found = []
    for k in only or hard or lowest:
        runs, confusion = targets[names[k]], sum_confusion(targets[names[k]])
        count = CorrectCount(names[k], int(np.trace(confusion)), int(confusion.sum()))
        rows = [CorrectCount(runs[0].classes[j], int(r[j]), int(r.sum())) for j, r in enumerate(confusion) if r.sum()]
        mistakes = sorted((row for row in rows if row.wrong), key=lambda row: (-row.wrong, row.name))
        found.append(
            WeakDomain(
                names[k], shares[k], "only" if only else "hard" if hard else "lowest", len(runs), count,
                share_interval(count.share, count.samples) if len(runs) == 1 else None, tuple(mistakes[:3]),
                bool(hard) and _within_noise(shares[k], round(count.samples / len(runs)), shares),
            )
        )  # fmt: skip
    return found


def learned_accuracy(records: Sequence[Record]) -> list[float | None]:
    """Accuracy of each class, None where no run that was measured on it had a sample of it to learn from."""
    tables = np.array([r.chosen["target"]["confusion"] for r in records])
    measured = (tables.sum(axis=2) * (_trained(records) > 0)).sum(axis=0)
    return [value if n else None for value, n in zip(class_accuracy(records), measured, strict=True)]


def _within_noise(share: float, n: float, known: Sequence[float]) -> bool:
    """Whether n samples cannot show that a share is low among the known ones."""
    return share_interval(share, n)[1] >= weak_below(known)


def _trained(records: Sequence[Record]) -> npt.NDArray[np.int64]:
    """Training samples of each class in each run."""
    return np.array([np.asarray(r.result["split"]["counts"]).sum(axis=0) for r in records])


def _by_target(records: Sequence[Record], k: int) -> list[CorrectCount]:
    """A class at each target, the lowest share first; runs of one target together."""
    targets = {record.target for record in records}
    rows = {name: sum_confusion([r for r in records if r.target == name])[k] for name in targets}
    found = [CorrectCount(name, int(row[k]), int(row.sum())) for name, row in rows.items() if row.sum()]
    return sorted(found, key=lambda count: (count.share, count.name))


def weak_section(
    records: Sequence[Record],
    data: str | Manifest | None = None,
    name: str = "",
    noun: str = "domain",
    most: int = MOST_CLASSES,
) -> Section:
    """The classes and domains with the lowest accuracy of one method.

    `data` says where the images are now, or is their manifest; `noun` says what a domain is.
    """
    manifest: Manifest | None = None
    samples: list[Misclassified] = []
    why = ""
    try:
        manifest, samples = misclassified_samples(records, data)
    except LongshiftError as error:
        why = str(error)

    def examples(weak: str, of_class: bool) -> list[tuple[str, str, Misclassified]] | None:
        own = [s for s in samples if (s.true if of_class else s.domain) == weak]
        return pictures(_varied(own), manifest) if manifest is not None else None

    body = fragment(
        "weak.html.j2", classes=[(weak, examples(weak.count.name, True)) for weak in weak_classes(records, most)],
        domains=[(weak, examples(weak.name, False)) for weak in weak_domains(records)], noun=noun, why=why, level=LEVEL,
    )  # fmt: skip
    intro = words(
        "weak_intro", method=records[0].title, noun=noun, low=LOW, behind=BEHIND, most=most,
        weak=len(weak_indices(learned_accuracy(records))), examples=bool(samples),
    )  # fmt: skip
    return Section(f"Lowest-scoring classes and {noun}s", body, intro, name, wide=True)


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
    seen: dict[tuple[str, str], int] = {}
    first: list[Misclassified] = []
    rest: list[Misclassified] = []
    for sample in samples:
        pair = (sample.true, sample.predicted)
        seen[pair] = seen.get(pair, 0) + 1
        (first if seen[pair] <= 2 else rest).append(sample)
    return [*first, *rest][:MOST_PICTURES]


@dataclass(frozen=True)
class Captioned:
    """An image file (or "" for samples without one) with a title and a fainter second line."""

    file: str
    title: str
    note: str


def gallery(samples: Sequence[Captioned]) -> Markup:
    """Pictures side by side; a file that cannot be read has its texts only."""

    def uri(file: str) -> str:
        try:
            return thumbnail(decode(read_limited(file, MOST_BYTES))) if file else ""
        except (BadImage, OSError):
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
