"""How accurate a model is at a new site, from its predictions there alone.

`longshift fit` measures at each held-out site what the predictions alone say (`Signals`) and what is true. Both are
kept with the model (new_site.json, new_site.safetensors) and correct what the predictions at a new site say.

1. Two signals carry the estimate: `prototype_agreement` and `dispersity` (`Signals.score`).
2. The errors of this estimate at the held-out sites correct it and give its interval (`corrected_estimate`). It is
   Bayesian, because a handful of sites cannot show by themselves how much sites differ.
3. Where the new site differs from all held-out ones, the interval grows (`Doubt`).

`python -m benchmarks.label_free_constants` measured the constants on other data; docs/results/new-site.md has the
coverage of the intervals.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter
from scipy import special, stats

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.inference.site_adaptation import FEWEST, SiteAdaptation, class_means, largest_shares
from longshift.io import file_hash, read_json, replacing, write_json
from longshift.metrics import Array, finite_rows, probabilities

LEVEL = 0.8  # of the intervals: with a handful of sites, 95% would say nothing
ENOUGH_SITES = 5  # held-out sites; below it, the prior decides more than they do

# The interval from the held-out sites, in logits. Each prior counts as so many sites.
SPREAD, SPREAD_WEIGHT = 0.8, 3.0  # standard deviation between sites
RESIDUAL, RESIDUAL_WEIGHT = 0.35, 4.0  # error of a label-free estimate
COEFFICIENTS = (2.0, 5.0)  # sites: a constant error, and an error that grows with the estimate
ONE_SITE = 0.3  # weight of a held-out site whose model was trained on a single one, unlike the final model

# The label-free estimate, in logits: a constant, and the weights of agreement and dispersity.
CONSTANT, AGREEMENT, DISPERSITY = -1.30, 0.71, 0.61

# Factors of the width that held-out sites ask for: of every site, and what each part of `Doubt.parts` adds to it.
USUAL_WIDTH, DISTANCE_WIDTH, DOMINANCE_WIDTH, FEW_WIDTH = 0.99, 3.51, 2.96, 0.50
ODD = 0.3  # a class is predicted this much more often than at any training site: a warning
FEW = 100  # samples; fewer make the interval wider

NEIGHBORS = 5
USUAL = 0.99  # of the known samples are nearer to the others than this quantile: beyond it, a sample is unlike them
SAME = 1e-2  # of their length: features that are nearer are of one sample
KEPT = 1024  # features of known samples, for the nearest of them and for `longshift adapt`
HALF = 5.0  # samples of a class with which it counts half as much, for the shift of a site, as one with very many

WANTED = 0.9  # share of right predictions above the threshold of a `SureRule`
SHARE = 0.05  # of all predictions that must be above it
LEAST = 0.5  # share of right predictions: with less, those above the threshold are wrong more often than right

NUMBERS, FEATURES = "new_site.json", "new_site.safetensors"
SCHEMA = 5  # of NUMBERS


# Intervals


@dataclass(frozen=True)
class Range:
    """An expected accuracy and the interval that holds the true one with probability `LEVEL`."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class LogitRange:
    """The same in logits: the middle of the interval and half its width."""

    center: float
    half: float

    def shares(self) -> Range:
        """From 0 to 1."""
        ends = (self.center, self.center - self.half, self.center + self.half)
        return Range(*(float(special.expit(value)) for value in ends))


def logit_share(share: float, n: float) -> float:
    """The logit of a share of n samples, half a sample away from 0 and 1.

    >>> round(logit_share(0.5, 10), 3), round(logit_share(1.0, 9), 3)
    (0.0, 2.944)
    """
    return float(special.logit((min(max(share, 0.0), 1.0) * n + 0.5) / (n + 1)))


def one_more_site(accuracies: Sequence[float], sizes: Sequence[int]) -> Range:
    """The accuracy to expect at one more site, from the accuracies at sites that were held out, and its interval.

    The spread between sites is estimated from them and from a prior, which is wider the fewer sites there are: the
    models of two sites were each trained on one, so they say little about a model of both.

    >>> found = one_more_site([0.92, 0.9], [500, 500])
    >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
    (0.91, 0.43, 0.99)
    """
    values = np.array([logit_share(a, n) for a, n in zip(accuracies, sizes, strict=True)])
    k, center = len(values), float(values.mean())
    prior = SPREAD * (1 + 1 / (k - 1)) if k > 1 else 4 * SPREAD
    freedom = SPREAD_WEIGHT + k - 1
    variance = (SPREAD_WEIGHT * prior**2 + float(np.square(values - center).sum())) / freedom
    found = LogitRange(center, _half(float(np.sqrt(variance * (1 + 1 / k))), freedom)).shares()
    return replace(found, mean=float(np.mean(accuracies)))


@dataclass(frozen=True)
class Evidence:
    """A held-out site: what predictions alone said about the accuracy there and what it was, in logits."""

    estimate: float
    truth: float
    weight: float = 1.0  # how much like the final model its model is


def corrected_estimate(estimate: float, held: Sequence[Evidence]) -> LogitRange:
    """The accuracy at a new site: its label-free estimate in logits, corrected by the errors at held-out sites.

    The error is a linear function of the estimate, with a prior that expects no error.
    """
    weights = np.array([site.weight for site in held])
    estimates = np.array([site.estimate for site in held])
    middle = float(np.average(estimates, weights=weights)) if len(held) else estimate
    rows = np.stack([np.ones(len(held)), estimates - middle], axis=1)
    errors = np.array([site.truth for site in held]) - estimates
    precision = (rows * weights[:, None]).T @ rows + np.diag(COEFFICIENTS)
    learned = np.linalg.solve(precision, rows.T @ (weights * errors))
    freedom = RESIDUAL_WEIGHT + float(weights.sum())
    left = float(weights @ errors**2 - learned @ precision @ learned)
    row = np.array([1.0, estimate - middle])
    scale = (RESIDUAL_WEIGHT * RESIDUAL**2 + left) / freedom * (1 + float(row @ np.linalg.solve(precision, row)))
    return LogitRange(estimate + float(row @ learned), _half(float(np.sqrt(scale)), freedom))


def _half(scale: float, freedom: float) -> float:
    """Half the interval of a t distribution."""
    return float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * scale


# Signals


def dispersity(shares: FloatArray) -> float:
    """Measure how certain predictions (N, classes) are and how well they tell classes apart, from 0 to 1.

    It is the nuclear norm of the matrix of predictions, divided by that of certain predictions with the same class
    frequencies. It is 1 if every prediction is certain, and small if predictions are uncertain between the same
    classes. The nuclear norm follows the accuracy under shift better than confidence does (Deng et al., ICML 2023), but
    it also falls where some classes are frequent; the division takes that out.

    >>> dispersity(np.array([[1.0, 0.0], [1.0, 0.0]])), round(dispersity(np.array([[0.5, 0.5], [0.5, 0.5]])), 3)
    (1.0, 0.5)
    """
    return float(min(np.linalg.norm(shares, "nuc") / np.sqrt(shares.sum(axis=0)).sum(), 1.0))


def site_prototypes(features: FloatArray, labels: IntArray, sites: Array, classes: int) -> FloatArray:
    """Compute the mean features of each class (classes, D) without what each site adds to all of its samples.

    They are zero on average; NaN for a class without samples.

    >>> site_prototypes(np.array([[1.0], [3.0], [11.0], [13.0]]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), 2)
    array([[-1.],
           [ 1.]])
    """
    found = class_means(features, labels, sites, classes)
    return np.asarray(found - np.nanmean(found, axis=0), dtype=np.float64)


def prototype_agreement(prototypes: FloatArray, features: FloatArray, shares: FloatArray) -> float:
    """Compute the share of predictions (N, classes) at a site that the nearest prototype of its features agrees with.

    What the site adds to all of its features is removed first: the mean over predicted classes of how far the samples
    of a class lie from its prototype. Every class counts about equally, so the share does not depend on which classes
    are frequent at the site. Nearest is by angle. Where a new site moves all features, and predictions with them, this
    opinion stays: the fewer predictions agree with it, the fewer are right.

    >>> moved = np.array([[99.0], [101.0], [101.0], [101.0]])
    >>> shares = np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8], [0.7, 0.3]])
    >>> prototype_agreement(np.array([[-1.0], [1.0]]), moved, shares)
    0.75
    """
    rows = features - _site_shift(prototypes, features, shares)
    lengths = np.maximum(np.linalg.norm(prototypes, axis=1, keepdims=True), 1e-12)
    angles = rows @ (prototypes / lengths).T
    nearest = np.where(np.isnan(angles), -np.inf, angles).argmax(axis=1)
    return float((nearest == shares.argmax(axis=1)).mean())


def _site_shift(prototypes: FloatArray, features: FloatArray, shares: FloatArray) -> FloatArray:
    """What a site adds to the features of all classes, from predictions instead of labels."""
    known = ~np.isnan(prototypes).any(axis=1)
    shares = np.square(shares)  # or the many unlikely samples of a frequent class would outweigh the few of a rare one
    counts = shares.sum(axis=0)
    weights = np.where(known & (counts >= 1), counts / (counts + HALF), 0.0)
    if weights.sum() == 0:
        return np.asarray(features.mean(axis=0), dtype=np.float64)
    means = (shares.T @ features) / np.maximum(counts, 1e-12)[:, None]
    return np.asarray(weights @ (means - np.nan_to_num(prototypes)) / weights.sum(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class FeatureSummary:
    """What `distance` needs of a set of features: mean (D,), total variance and the number of samples."""

    mean: FloatArray
    variance: float  # summed over the columns
    n: int

    @classmethod
    def of(cls, features: Array) -> FeatureSummary:
        """Summarize the rows."""
        rows = finite_rows(features, "features")
        spread = float(rows.var(axis=0, ddof=1).sum()) if len(rows) > 1 else 0.0
        return cls(rows.mean(axis=0), spread, len(rows))

    def distance(self, other: FeatureSummary) -> float:
        """Distance of the means over the root of the mean total variance; 0 where samples of one set give as much.

        The expected square of the distance between the means of two samples of one distribution is subtracted, so that
        small sets do not look far apart.

        >>> rng = np.random.default_rng(0)
        >>> near, far = (FeatureSummary.of(rng.normal(mean, 1, (500, 4))) for mean in (0, 3))
        >>> round(near.distance(far), 1)
        3.0
        """
        gap = float(np.square(self.mean - other.mean).sum()) - self.variance / self.n - other.variance / other.n
        spread = (self.variance + other.variance) / 2
        return float(np.sqrt(max(gap, 0.0) / spread)) if spread > 0 else float(np.sqrt(max(gap, 0.0)))


@dataclass(frozen=True)
class Signals:
    """What the predictions at a site say about the accuracy there, without labels."""

    n: int
    confidence: float  # mean calibrated probability of the predicted class; not part of the estimate
    agreement: float  # share of predictions that the nearest class mean confirms once the site's shift is removed
    dispersity: float  # how certain predictions are, and how well they tell classes apart
    distances: Mapping[str, float]  # of the features to each training site, in units of the spread inside sites

    @property
    def nearest_site(self) -> str:
        """The training site with the smallest distance."""
        return min(self.distances, key=lambda site: self.distances[site])

    @property
    def nearest(self) -> float:
        """Distance to the nearest training site."""
        return min(self.distances.values())

    def score(self) -> float:
        """The accuracy that these signals mean on other data, in logits."""
        agreement, spread = (logit_share(value, self.n) for value in (self.agreement, self.dispersity))
        return CONSTANT + AGREEMENT * agreement + DISPERSITY * spread


@dataclass(frozen=True, eq=False)
class Reference:
    """Labeled samples of the training sites that were not trained on, as a model sees them."""

    sites: Mapping[str, FeatureSummary]
    prototypes: FloatArray  # mean features of each class (classes, D), without the shifts of sites; NaN: no sample
    seen: FloatArray  # features (M, D)
    seen_labels: IntArray
    usual: float  # distance to the seen ones that only a hundredth of them exceeds


def make_reference(classes: int, labels: IntArray, features: Array, sites: Sequence[str]) -> Reference:
    """Summarize labeled samples of the training sites; `sites` names the site of each."""
    rows, place, known = np.asarray(features, dtype=np.float64), np.asarray(sites), np.asarray(labels)
    summaries = {str(site): FeatureSummary.of(rows[place == site]) for site in np.unique(place)}
    # The same number of each class and site, as far as there are so many: samples of rare classes must not look new.
    cells = np.unique(place, return_inverse=True)[1] * classes + known
    ranks = np.zeros(len(rows), dtype=np.int64)
    for cell in np.unique(cells):
        ranks[cells == cell] = np.arange((cells == cell).sum())
    chosen = np.sort(np.argsort(ranks, kind="stable")[:KEPT])
    near = _unit(rows[chosen])
    own = np.sort(_distances(near, near), axis=1)
    usual = float(np.quantile(own[:, min(NEIGHBORS, len(chosen) - 1)], USUAL))  # column 0 is the sample itself
    prototypes = site_prototypes(rows, known, place, classes)
    return Reference(summaries, prototypes, rows[chosen], known[chosen].astype(np.int64), usual)


def read_signals(reference: Reference, logits: Array, features: Array, temperature: float) -> Signals:
    """What the predictions at a site say, for the model of the reference."""
    shares, rows = probabilities(logits, temperature=temperature), np.asarray(features, dtype=np.float64)
    own = FeatureSummary.of(rows)
    return Signals(
        len(shares),
        float(shares.max(axis=1).mean()),
        prototype_agreement(reference.prototypes, rows, shares),
        dispersity(shares),
        {site: own.distance(summary) for site, summary in reference.sites.items()},
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


def _unit(rows: FloatArray) -> FloatArray:
    """Rows of length one: what an image shows is in the direction of its features (Sun et al., ICML 2022)."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float64)


def _distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Between the rows of two matrices, (N, M)."""
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)), dtype=np.float64)


# Why an estimate is less certain than the errors at held-out sites show


@dataclass(frozen=True)
class ClassExcess:
    """The class whose predicted share at a site exceeds its share at any training site the most."""

    label: int
    share: float  # of the predictions here
    known: float  # highest share at any training site

    @property
    def excess(self) -> float:
        """By how much, from 0 to 1."""
        return max(self.share - self.known, 0.0)


def class_excess(counts: Sequence[Sequence[int]], predicted: IntArray) -> ClassExcess:
    """Compare predicted shares with samples of each class at each training site, (sites, classes)."""
    known = largest_shares(counts)
    shares = np.bincount(predicted, minlength=len(known)) / max(len(predicted), 1)
    most = int((shares - known).argmax())
    return ClassExcess(most, float(shares[most]), float(known[most]))


def relative_excess(distance: float, most: float) -> float:
    """How much larger a distance is than the largest one so far, from 0 (not at all) to 1.

    >>> relative_excess(0.2, 0.3), relative_excess(0.9, 0.3), relative_excess(0.1, 0.0)
    (0.0, 0.5, 1.0)
    """
    return (distance - most) / (distance + most) if distance > most else 0.0


Reason = Literal["distance", "dominance", "few"]


@dataclass(frozen=True)
class Doubt:
    """What makes an estimate less certain than the held-out sites show."""

    farther: float  # relative excess of the distance to the nearest training site over that of any held-out site
    dominance: float  # by how much the predicted share of a class exceeds that at any training site
    n: int  # samples

    def parts(self) -> tuple[float, float, float, float]:
        """What each constant is multiplied with; those of distance, dominance and few samples are 0 at usual sites."""
        return 1.0, self.farther, max(self.dominance - ODD, 0.0), max(math.sqrt(FEW / self.n) - 1, 0.0)

    def widen(self, found: LogitRange) -> LogitRange:
        """The range of the held-out sites with the width that this doubt calls for."""
        constants = (USUAL_WIDTH, DISTANCE_WIDTH, DOMINANCE_WIDTH, FEW_WIDTH)
        factor = sum(constant * part for constant, part in zip(constants, self.parts(), strict=True))
        return LogitRange(found.center, factor * found.half)

    def reasons(self) -> list[Reason]:
        """Why the interval is wider than that of a usual site."""
        names: tuple[Reason, ...] = ("distance", "dominance", "few")
        return [name for name, part in zip(names, self.parts()[1:], strict=True) if part > 0]

    def usual(self) -> Doubt:
        """The same without the reasons."""
        return Doubt(0.0, 0.0, max(self.n, FEW))


# The threshold of sure predictions


@dataclass(frozen=True)
class SureRule:
    """A probability, and how often predictions above it were right at the held-out sites."""

    threshold: float
    accuracy: float
    coverage: float  # share of the predictions above it

    @property
    def useful(self) -> bool:
        """Whether at least `LEAST` of the predictions above the probability were right, in whole percent."""
        return round(100 * self.accuracy) >= 100 * LEAST


def choose_sure(confidence: FloatArray, correct: Array, weights: FloatArray | None = None) -> SureRule:
    """Choose the lowest probability above which at least `WANTED` of the predictions at held-out sites are right.

    If none is that good, choose the one with the highest accuracy above it, which may not be `useful`. Predictions
    count by their `weights` (by default all the same), and those above must have at least a share of `SHARE`.
    """
    grid = np.round(np.arange(0.3, 0.995, 0.01), 2)
    weight = np.ones(len(confidence)) if weights is None else np.asarray(weights, dtype=np.float64)
    weight = weight / weight.sum()
    right = weight * np.asarray(correct, dtype=np.float64)
    rules = [
        SureRule(float(t), float(right[above].sum() / share), float(share))
        for t in grid
        if (share := weight[above := confidence >= t].sum()) >= SHARE
    ]
    if not rules:  # no confident prediction at all
        return SureRule(0.5, float(right.sum()), 1.0)
    return next((rule for rule in rules if rule.accuracy >= WANTED), max(rules, key=lambda rule: rule.accuracy))


# The estimate


@dataclass(frozen=True)
class HeldOutSite:
    """A site that a fit held out: the truth there, and what the predictions alone said."""

    site: str
    accuracy: float
    signals: Signals

    def evidence(self) -> Evidence:
        """For the correction of estimates at other sites."""
        weight = 1.0 if len(self.signals.distances) > 1 else ONE_SITE
        return Evidence(self.signals.score(), logit_share(self.accuracy, self.signals.n), weight)


@dataclass(frozen=True, eq=False)
class SiteKnowledge:
    """All that is kept with a model about new sites."""

    held_out: tuple[HeldOutSite, ...]
    reference: Reference
    sure: SureRule | None = None
    adaptation: SiteAdaptation | None = None


@dataclass(frozen=True)
class SiteEstimate:
    """The expected accuracy at a new site, and what it is compared with."""

    accuracy: Range
    usual: Range  # the same for a site that gives no reason for a wider interval
    doubt: Doubt
    signals: Signals
    hardest: HeldOutSite
    farthest: HeldOutSite

    @property
    def far(self) -> bool:
        """Whether the site is farther from the training sites than any held-out one was."""
        return self.doubt.farther > 0

    @property
    def unreliable(self) -> bool:
        """Whether a warning applies: the site is farther away than any before, or one class dominates."""
        return self.far or self.doubt.dominance > ODD

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "expected_accuracy": asdict(self.accuracy), "level": LEVEL, **asdict(self.signals),
            "hardest_held_out": {"site": self.hardest.site, "accuracy": self.hardest.accuracy},
            "farther_than_any_held_out": self.far, "relative_excess": self.doubt.farther,
            "dominance": self.doubt.dominance, "unreliable": self.unreliable,
            "wider_because": self.doubt.reasons(), "otherwise": asdict(self.usual),
        }  # fmt: skip


def estimate_site(knowledge: SiteKnowledge, signals: Signals, dominance: float) -> SiteEstimate | None:
    """The expected accuracy at a site with these signals and dominance of a class; None for too few samples."""
    if signals.n < FEWEST:
        return None
    held = knowledge.held_out
    farthest = max(held, key=lambda site: site.signals.nearest)
    doubt = Doubt(relative_excess(signals.nearest, farthest.signals.nearest), dominance, signals.n)
    found = corrected_estimate(signals.score(), [site.evidence() for site in held])
    hardest = min(held, key=lambda site: site.accuracy)
    return SiteEstimate(
        doubt.widen(found).shares(), doubt.usual().widen(found).shares(), doubt, signals, hardest, farthest
    )


# What is kept with a model


def write_knowledge(folder: Path, knowledge: SiteKnowledge | None, weights: str) -> None:
    """Write the two files for the model with this hash of its weights; without knowledge, remove old ones.

    The features come first, so that numbers never stand without them.
    """
    if knowledge is None:
        for name in (NUMBERS, FEATURES):
            (folder / name).unlink(missing_ok=True)
        return
    reference = knowledge.reference
    summaries = reference.sites
    arrays: dict[str, npt.NDArray[Any]] = {
        "means": np.stack([summary.mean for summary in summaries.values()]).astype(np.float32),
        "prototypes": reference.prototypes.astype(np.float32),
    }
    adaptation = knowledge.adaptation
    if adaptation:
        arrays |= {name: getattr(adaptation, name) for name in ("class_logits", "precision", "shares")}
    write_memory(folder, reference.seen, reference.seen_labels, arrays)
    write_json(
        folder / NUMBERS,
        {
            "schema": SCHEMA, "weights": weights, "features": file_hash(folder / FEATURES),
            "held_out": [asdict(site) for site in knowledge.held_out],
            "reference": {
                "usual": reference.usual,
                "sites": [{"site": name, "variance": s.variance, "n": s.n} for name, s in summaries.items()],
            },
            "sure": asdict(knowledge.sure) if knowledge.sure else None,
            "adaptation": {"helps": adaptation.helps, "gain": adaptation.gain} if adaptation else None,
        },
    )  # fmt: skip


def read_knowledge(folder: Path, weights: str, classes: int) -> SiteKnowledge | None:
    """What is kept with the model with these weights and so many classes; None if nothing is, as after `train`."""
    path = folder / NUMBERS
    if not path.exists():
        return None
    try:
        value = read_json(path)
        if value["schema"] != SCHEMA:
            raise ValueError(f"expected schema {SCHEMA}, got {value['schema']!r}")
        if value["weights"] != weights:
            raise ValueError("it belongs to another model")
        if value["features"] != file_hash(folder / FEATURES):
            raise ValueError(f"{FEATURES} belongs to another model")
        held = TypeAdapter(tuple[HeldOutSite, ...]).validate_json(json.dumps(value["held_out"]))
        sure = TypeAdapter(SureRule | None).validate_python(value["sure"])
        seen, labels, arrays = _read_arrays(folder)
        kept = value["reference"]
        means = arrays["means"].astype(np.float64)
        summaries = {
            str(row["site"]): FeatureSummary(mean, float(row["variance"]), int(row["n"]))
            for row, mean in zip(kept["sites"], means, strict=True)
        }
        prototypes = arrays["prototypes"].astype(np.float64)
        adaptation = None
        if kept_adaptation := value["adaptation"]:
            adaptation = SiteAdaptation(
                arrays["class_logits"], arrays["precision"], arrays["shares"], **kept_adaptation
            )
        if not (held and summaries and all(site.signals.n > 0 and site.signals.distances for site in held)):
            raise ValueError("expected held-out and training sites")
        if prototypes.shape != (classes, *means.shape[1:]) or means.shape[1:] != seen.shape[1:]:
            raise ValueError(f"expected features of one length and {classes} class means")
        square = (classes, classes)
        if adaptation and [adaptation.class_logits.shape, adaptation.precision.shape, adaptation.shares.shape] != [
            square, square, (classes,)
        ]:  # fmt: skip
            raise ValueError(f"expected mean logits, precision and shares of {classes} classes")
    except (LongshiftError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise LongshiftError(
            f"{path} or {FEATURES} next to it is damaged: {error}. Run the same `longshift fit` command again to write "
            "both, or remove both to predict without an estimate."
        ) from error
    return SiteKnowledge(held, Reference(summaries, prototypes, seen, labels, float(kept["usual"])), sure, adaptation)


def read_memory(folder: Path) -> tuple[FloatArray, IntArray] | None:
    """Features and labels of known samples that are kept with the model in a folder; None if there are none."""
    return _read_arrays(folder)[:2] if (folder / FEATURES).exists() else None


def adapted_with(folder: Path, features: Array) -> npt.NDArray[np.bool_]:
    """Which rows (N, D) are samples that the model in a folder was adapted with, up to rounding errors."""
    rows = np.asarray(features, dtype=np.float64)
    labeled = _read_arrays(folder)[2].get("labeled") if (folder / FEATURES).exists() else None
    if labeled is None or not len(rows):
        return np.zeros(len(rows), dtype=bool)
    parts = [_distances(rows[i : i + 1024], labeled.astype(np.float64)).min(axis=1) for i in range(0, len(rows), 1024)]
    return np.asarray(np.concatenate(parts) < SAME * np.linalg.norm(rows, axis=1), dtype=bool)


def _read_arrays(folder: Path) -> tuple[FloatArray, IntArray, dict[str, npt.NDArray[Any]]]:
    """Features and labels of known samples, and the other arrays."""
    from safetensors.numpy import load_file

    path = folder / FEATURES
    try:
        arrays = load_file(path)
        return arrays["seen"].astype(np.float64), arrays["seen_labels"].astype(np.int64), arrays
    except Exception as error:  # safetensors has errors of its own
        raise LongshiftError(f"{path} is damaged: {error}. Remove it to continue without known samples.") from error


def write_memory(
    folder: Path, features: FloatArray, labels: IntArray, others: Mapping[str, npt.NDArray[Any]] | None = None
) -> None:
    """Keep features and labels of known samples with a model, in half precision where that is enough."""
    from safetensors.numpy import save_file

    half = np.abs(features).max(initial=0) < np.finfo(np.float16).max
    seen = {"seen": features.astype(np.float16 if half else np.float32), "seen_labels": labels.astype(np.int64)}
    with replacing(folder / FEATURES) as temporary:
        save_file({**(others or {}), **seen}, temporary)
