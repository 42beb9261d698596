"""How accurate a model is at a new site, from its predictions there alone.

`longshift fit` measures at each held-out site what the predictions alone say (`Signals`) and what is true. Both are
kept with the model, as new_site.json and new_site.safetensors, and correct what the predictions at a new site say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from longshift.analysis import LEVEL, Evidence, Range, corrected_estimate, logit_share
from longshift.array_types import IntArray
from longshift.errors import LongshiftError
from longshift.files import file_hash, read_sealed, replacing, write_sealed
from longshift.metrics import (
    Array,
    FeatureSummary,
    FloatArray,
    confidence_threshold,
    difference_of_confidences,
    feature_distance,
    negative_entropy,
    probabilities,
    summarize_features,
    thresholded_confidence,
)

NUMBERS, FEATURES = "new_site.json", "new_site.safetensors"
SCHEMA = 1
NEIGHBORS = 5
USUAL = 0.99  # of the known samples are nearer to the others than this quantile: beyond it, a sample is unlike them
KEPT = 512  # features of known samples, for the nearest of them
ODD = 0.3  # a class is predicted this much more often than at any training site
FEWEST = 20  # samples of a new site; with fewer, nothing is estimated


@dataclass(frozen=True)
class Signals:
    """What the predictions at a site say about the accuracy there, without labels."""

    n: int
    confidence: float  # mean calibrated probability of the predicted class
    thresholded: float  # average thresholded confidence (ATC)
    difference: float  # difference of confidences (DoC)
    distances: Mapping[str, float]  # of the features to each training site, in units of the spread inside sites
    unlike: float  # share of samples that are unlike all known ones

    @property
    def nearest(self) -> float:
        """Distance to the nearest training site."""
        return min(self.distances.values())

    def evidence(self) -> Evidence:
        """The mean of the three estimates, in logits, and the distance."""
        estimates = (self.confidence, self.thresholded, self.difference)
        return Evidence(float(np.mean([logit_share(value, self.n) for value in estimates])), self.nearest)


@dataclass(frozen=True)
class HeldOutSite:
    """A site that a fit held out: the truth there, and what the predictions alone said."""

    site: str
    accuracy: float
    signals: Signals


@dataclass(frozen=True, eq=False)
class Reference:
    """Labeled samples of the training sites that were not trained on, as a model sees them."""

    accuracy: float
    confidence: float
    threshold: float | None  # of ATC; None: no sample was misclassified
    sites: Mapping[str, FeatureSummary]
    seen: FloatArray  # features (M, D)
    seen_labels: IntArray
    usual: float  # distance to the seen ones that only a hundredth of them exceeds


@dataclass(frozen=True)
class SureRule:
    """A probability, and how often predictions above it were right at the held-out sites."""

    threshold: float
    accuracy: float
    coverage: float  # share of the predictions above it


@dataclass(frozen=True, eq=False)
class SiteKnowledge:
    """All that is kept with a model about new sites."""

    held_out: tuple[HeldOutSite, ...]
    reference: Reference
    sure: SureRule | None = None


@dataclass(frozen=True)
class SiteEstimate:
    """The expected accuracy at a new site, and what it is compared with."""

    accuracy: Range
    signals: Signals
    hardest: HeldOutSite
    farthest: HeldOutSite
    sites: int

    @property
    def far(self) -> bool:
        """Whether the site is farther from the training sites than any held-out one was."""
        return self.signals.nearest > self.farthest.signals.nearest

    def sentences(self) -> list[str]:
        """The estimate in plain words, and a warning if the site is farther away than any before."""
        found, hardest = self.accuracy, self.hardest
        sites = f"{self.sites} held-out site{'s' * (self.sites > 1)}"
        lines = [
            f"Expected accuracy here: {_percent(found.mean)} ({100 * LEVEL:.0f} % interval {100 * found.low:.0f} to "
            f"{_percent(found.high)}), from {self.signals.n} predictions without labels and the errors of such "
            f"estimates at the {sites}."
        ]
        side = "below" if found.mean < hardest.accuracy else "above"
        lines.append(
            f"That is {side} the hardest held-out site, {hardest.site} ({_percent(hardest.accuracy)} correct there)."
        )
        if self.far:
            lines.append(self.warning())
        return lines

    def warning(self) -> str:
        """A line for a site that is farther away than any before, or ""."""
        if not self.far:
            return ""
        near = min(self.signals.distances, key=lambda site: self.signals.distances[site])
        return (
            "This site is farther from the training sites than any held-out one was (distance "
            f"{self.signals.nearest:.2f} to {near}, the nearest; at most {self.farthest.signals.nearest:.2f}, for "
            f"{self.farthest.site}): the estimate may be too high. Label some samples to check it."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "expected_accuracy": asdict(self.accuracy), "level": LEVEL, **asdict(self.signals),
            "hardest_held_out": {"site": self.hardest.site, "accuracy": self.hardest.accuracy},
            "farther_than_any_held_out": self.far, "sentences": self.sentences(),
        }  # fmt: skip


def make_reference(
    logits: Array, labels: IntArray, features: Array, sites: Sequence[str], temperature: float
) -> Reference:
    """Summarize labeled samples of the training sites; `sites` names the site of each."""
    shares = probabilities(logits, temperature=temperature)
    correct = shares.argmax(axis=1) == labels
    threshold = confidence_threshold(negative_entropy(shares), correct)
    rows, place = np.asarray(features, dtype=np.float64), np.asarray(sites)
    summaries = {str(site): summarize_features(rows[place == site]) for site in np.unique(place)}
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(KEPT, len(rows))).astype(int))
    seen = rows[chosen]
    near = _unit(seen)
    own = np.sort(_distances(near, near), axis=1)
    usual = float(np.quantile(own[:, min(NEIGHBORS, len(seen) - 1)], USUAL))  # column 0 is the sample itself
    return Reference(
        float(correct.mean()), float(shares.max(axis=1).mean()), threshold if math.isfinite(threshold) else None,
        summaries, seen, np.asarray(labels)[chosen].astype(np.int64), usual,
    )  # fmt: skip


def read_signals(reference: Reference, logits: Array, features: Array, temperature: float) -> Signals:
    """What the predictions at a site say, for the model of the reference."""
    shares = probabilities(logits, temperature=temperature)
    confidence = float(shares.max(axis=1).mean())
    threshold = -math.inf if reference.threshold is None else reference.threshold
    own = summarize_features(features)
    return Signals(
        len(shares),
        confidence,
        thresholded_confidence(negative_entropy(shares), threshold),
        difference_of_confidences(reference.accuracy, reference.confidence, confidence),
        {site: feature_distance(own, summary) for site, summary in reference.sites.items()},
        float((novelty(reference, features) > 1).mean()),
    )


def novelty(reference: Reference, features: Array) -> FloatArray:
    """How unlike the known samples each sample is: above 1, it is farther from them than nearly all of themselves."""
    rows, seen = _unit(np.asarray(features, dtype=np.float64)), _unit(reference.seen)
    near = min(NEIGHBORS, len(seen)) - 1
    parts = [
        np.partition(_distances(rows[start : start + 1024], seen), near, axis=1)[:, near]
        for start in range(0, len(rows), 1024)
    ]
    return np.asarray(np.concatenate(parts) / max(reference.usual, 1e-9), dtype=np.float64)


def estimate_site(knowledge: SiteKnowledge, signals: Signals) -> SiteEstimate | None:
    """The expected accuracy at a site with these signals; None for too few samples."""
    if signals.n < FEWEST:
        return None
    held = knowledge.held_out
    found = corrected_estimate(
        signals.evidence(),
        [site.signals.evidence() for site in held],
        [logit_share(site.accuracy, site.signals.n) for site in held],
    )
    return SiteEstimate(
        found, signals, min(held, key=lambda site: site.accuracy), max(held, key=lambda site: site.signals.nearest),
        len(held),
    )  # fmt: skip


def odd_mix(classes: Sequence[str], counts: Sequence[Sequence[int]], predicted: IntArray) -> str:
    """A sentence on the class that is predicted far more often than it occurs at any training site, or ""."""
    table = np.asarray(counts, dtype=np.float64)
    known = (table / np.maximum(table.sum(axis=1, keepdims=True), 1)).max(axis=0)
    shares = np.bincount(predicted, minlength=len(classes)) / max(len(predicted), 1)
    most = int((shares - known).argmax())
    if len(predicted) < FEWEST or shares[most] - known[most] < ODD:
        return ""
    return (
        f"{_percent(float(shares[most]))} of the predictions are {classes[most]}, which has at most "
        f"{_percent(float(known[most]))} of the samples of any training site: unless it is really that frequent here, "
        "many of these predictions are wrong and the estimate is too high."
    )


def choose_sure(
    confidence: FloatArray, correct: Array, weights: FloatArray | None = None, wanted: float = 0.9, fewest: float = 0.05
) -> SureRule:
    """Choose the lowest probability above which at least `wanted` of the predictions at held-out sites are right.

    If none is that good, choose the one with the highest accuracy above it. Predictions count by their `weights` (by
    default all the same), and those above must have at least a share of `fewest`.
    """
    grid = np.round(np.arange(0.3, 0.995, 0.01), 2)
    weight = np.ones(len(confidence)) if weights is None else np.asarray(weights, dtype=np.float64)
    weight = weight / weight.sum()
    right = weight * np.asarray(correct, dtype=np.float64)
    rules = [
        SureRule(float(t), float(right[above].sum() / share), float(share))
        for t in grid
        if (share := weight[above := confidence >= t].sum()) >= fewest
    ]
    if not rules:  # no confident prediction at all
        return SureRule(0.5, float(right.sum()), 1.0)
    return next((rule for rule in rules if rule.accuracy >= wanted), max(rules, key=lambda rule: rule.accuracy))


def write_knowledge(folder: Path, knowledge: SiteKnowledge | None, weights: str) -> None:
    """Write the two files for the model with this hash of its weights; without knowledge, remove old ones.

    The features come first, so that numbers never stand without them.
    """
    if knowledge is None:
        for name in (NUMBERS, FEATURES):
            (folder / name).unlink(missing_ok=True)
        return
    from safetensors.numpy import save_file

    reference = knowledge.reference
    names = list(reference.sites)
    means = np.stack([reference.sites[name].mean for name in names]).astype(np.float32)
    with replacing(folder / FEATURES) as temporary:
        save_file({"means": means, **_memory(reference.seen, reference.seen_labels)}, temporary)
    write_sealed(
        folder / NUMBERS,
        {
            "schema": SCHEMA, "weights": weights, "features": file_hash(folder / FEATURES),
            "held_out": [asdict(site) for site in knowledge.held_out],
            "reference": {
                "accuracy": reference.accuracy, "confidence": reference.confidence, "threshold": reference.threshold,
                "usual": reference.usual,
                "sites": [
                    {"site": name, "variance": reference.sites[name].variance, "n": reference.sites[name].n}
                    for name in names
                ],
            },
            "sure": asdict(knowledge.sure) if knowledge.sure else None,
        },
    )  # fmt: skip


def read_knowledge(folder: Path, weights: str) -> SiteKnowledge | None:
    """What is kept with the model with these weights; None if nothing is, as for models of `longshift train`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / NUMBERS
    if not path.exists():
        return None
    try:
        value = read_sealed(path)
        if value["schema"] != SCHEMA:
            raise ValueError(f"expected schema {SCHEMA}, got {value['schema']!r}")
        if value["weights"] != weights:
            raise ValueError("expected numbers of the model next to it, got those of another one")
        if value["features"] != file_hash(folder / FEATURES):
            raise ValueError(f"expected the {FEATURES} that was written with it, got another one")
        held = TypeAdapter(tuple[HeldOutSite, ...]).validate_json(json.dumps(value["held_out"]))
        sure = TypeAdapter(SureRule | None).validate_python(value["sure"])
        arrays = load_file(folder / FEATURES)
        kept = value["reference"]
        summaries = {
            str(row["site"]): FeatureSummary(mean.astype(np.float64), float(row["variance"]), int(row["n"]))
            for row, mean in zip(kept["sites"], arrays["means"], strict=True)
        }
        reference = Reference(
            float(kept["accuracy"]), float(kept["confidence"]),
            None if kept["threshold"] is None else float(kept["threshold"]),
            summaries, arrays["seen"].astype(np.float64), arrays["seen_labels"], float(kept["usual"]),
        )  # fmt: skip
        knowledge = SiteKnowledge(held, reference, sure)
        if wrong := _mistakes(knowledge):
            raise ValueError("; ".join(wrong))
    except (
        LongshiftError,
        KeyError,
        TypeError,
        ValueError,
        OSError,
        AttributeError,
        SafetensorError,
    ) as error:
        raise LongshiftError(
            f"{path} or {FEATURES} next to it is damaged: {error}. Run the same `longshift fit` command again to write "
            "both, or remove both to predict without an estimate."
        ) from error
    return knowledge


def _mistakes(knowledge: SiteKnowledge) -> list[str]:
    """Values that no fit writes."""
    reference, signals = knowledge.reference, [site.signals for site in knowledge.held_out]
    shares = [reference.accuracy, reference.confidence, *(site.accuracy for site in knowledge.held_out)]
    shares += [share for found in signals for share in (found.confidence, found.thresholded, found.unlike)]
    if knowledge.sure:
        shares += [knowledge.sure.threshold, knowledge.sure.accuracy, knowledge.sure.coverage]
    lengths = [reference.usual, *(summary.variance for summary in reference.sites.values())]
    lengths += [distance for found in signals for distance in found.distances.values()]
    widths = {reference.seen.shape[1:], *(summary.mean.shape for summary in reference.sites.values())}
    counts = [found.n for found in signals] + [summary.n for summary in reference.sites.values()]
    checks = {
        "expected held-out sites": bool(signals),
        "expected training sites": bool(reference.sites),
        "expected a distance to each training site": all(found.distances for found in signals),
        "expected shares from 0 to 1": all(0 <= share <= 1 + 1e-9 for share in shares),
        "expected finite distances": all(0 <= length < math.inf for length in lengths),
        "expected finite estimates": all(math.isfinite(found.difference) for found in signals),
        "expected samples": min(counts, default=0) >= 1 and len(reference.seen) >= 1,
        "expected features of one length": reference.seen.ndim == 2 and len(widths) == 1,
        "expected a label of each known sample": reference.seen_labels.shape == reference.seen.shape[:1],
        "expected finite features": bool(np.isfinite(reference.seen).all()),
    }
    return [text for text, good in checks.items() if not good]


def read_memory(folder: Path) -> tuple[FloatArray, IntArray] | None:
    """Features and labels of known samples that are kept with the model in a folder; None if there are none."""
    from safetensors.numpy import load_file

    path = folder / FEATURES
    if not path.exists():
        return None
    try:
        arrays = load_file(path)
        return arrays["seen"].astype(np.float64), arrays["seen_labels"].astype(np.int64)
    except Exception as error:  # safetensors has errors of its own
        raise LongshiftError(f"{path} is damaged: {error}. Remove it to continue without known samples.") from error


def write_memory(folder: Path, features: FloatArray, labels: IntArray) -> None:
    """Keep features and labels of known samples with a model that has no estimate for new sites."""
    from safetensors.numpy import save_file

    with replacing(folder / FEATURES) as temporary:
        save_file(_memory(features, labels), temporary)


def _memory(features: FloatArray, labels: IntArray) -> dict[str, npt.NDArray[Any]]:
    half = np.abs(features).max(initial=0) < np.finfo(np.float16).max
    return {"seen": features.astype(np.float16 if half else np.float32), "seen_labels": labels.astype(np.int64)}


def _unit(rows: FloatArray) -> FloatArray:
    """Rows of length one: what an image shows is in the direction of its features (Sun et al., ICML 2022)."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float64)


def _distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Between the rows of two matrices, (N, M)."""
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)), dtype=np.float64)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
