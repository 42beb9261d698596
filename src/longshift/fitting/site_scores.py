"""What held-out sites tell about a new site: estimates, weak classes, whether the method is better than others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from longshift.inference import ENOUGH_SITES, LEVEL, one_more_site
from longshift.metrics import mean_class_accuracy
from longshift.report import share_interval, weak_below, weak_indices
from longshift.text import agree, counted, some

WORTH = 0.005  # half a point
EQUAL = 1e-9  # differences of accuracies that differ by less are rounding errors
MOST = 5  # weak classes that are named
CLASS_ACCURACY = "Share of the samples of a class, over all held-out sites, that is classified correctly"


@dataclass(frozen=True)
class SiteScore:
    """Scores at a site of a model that was trained without it."""

    site: str
    n: int
    accuracy: float
    balanced: float  # mean over the classes that the site has
    seen: float | None  # accuracy on held-out samples of the sites it was trained on
    per_class: Mapping[str, float | None]
    confusion: tuple[tuple[int, ...], ...]
    seen_at: Mapping[str, float | None] = field(default_factory=dict)  # as `seen`, at each of these sites


def site_score(site: str, evaluations: Mapping[str, Any]) -> SiteScore:
    """From the evaluations in a run's result ("selected" or "averaged")."""
    target = evaluations["target"]
    test = evaluations.get("test")
    return SiteScore(
        site,
        int(target["n"]),
        float(target["accuracy"]),
        mean_class_accuracy(target["per_class"].values()),
        float(test["accuracy"]) if test else None,
        dict(target["per_class"]),
        tuple(tuple(row) for row in target["confusion"]),
        dict(test["per_domain"]) if test else {},
    )


@dataclass(frozen=True)
class Estimate:
    """What held-out sites say about a new one: an interval that contains its value with probability `LEVEL`."""

    mean: float  # over the held-out sites
    low: float
    high: float
    values: tuple[float, ...]  # at the held-out sites

    @property
    def sites(self) -> int:
        """How many sites were held out."""
        return len(self.values)

    @property
    def enough(self) -> bool:
        """Whether there are enough sites to expect a number."""
        return self.sites >= ENOUGH_SITES

    def words(self) -> str:
        """In percent, such as "about 81% (80% interval 70 to 92%, from 6 held-out sites)".

        With few sites there is a wide range and no expected number: two sites say little about a third.
        """
        reach = f"{100 * self.low:.0f} to {100 * self.high:.0f}%"
        if self.enough:
            interval = f"{100 * LEVEL:.0f}% interval {reach}, from {self.sites} held-out sites"
            return f"about {100 * self.mean:.0f}% ({interval})"
        if self.sites == 1:
            return f"unknown ({100 * self.mean:.0f}% at the only held-out site, which says little about another)"
        each = some([f"{100 * value:.0f}%" for value in sorted(self.values)], ENOUGH_SITES)
        return (
            f"anywhere from {reach} ({100 * LEVEL:.0f}% interval; {each} at the {self.sites} held-out sites, too few "
            "to expect a number)"
        )

    def meaning(self) -> str:
        """What the interval is, in a sentence; "" where none is given."""
        if self.sites == 1:
            return ""
        few = "" if self.enough else "; with so few sites it rests mostly on how sites of other data differ"
        return (
            f"The interval contains the accuracy at one more site with probability {100 * LEVEL:.0f}%, if that site "
            f"differs from these as they differ from each other{few}."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "values": list(self.values), "sites": self.sites, "enough_sites": self.enough}


def expect(values: Sequence[float], sizes: Sequence[int]) -> Estimate:
    """A prediction interval for one more site; `sizes` are the numbers of samples at the held-out sites.

    >>> expect([0.92, 0.9], [500, 500]).words()
    'anywhere from 43 to 99% (80% interval; 90%, 92% at the 2 held-out sites, too few to expect a number)'
    """
    found = one_more_site(values, sizes)
    return Estimate(found.mean, found.low, found.high, tuple(values))


@dataclass(frozen=True)
class ClassScore:
    """How well a class is recognized, over all held-out sites together."""

    name: str
    n: int
    recall: float
    taken_for: str  # the class it is most often mistaken for; "" if never
    alone: str = ""  # the only site that has it: the class cannot be learned while that site is held out
    unsure: bool = False  # so few samples cannot show that it is weak

    @property
    def right(self) -> int:
        """How many of the n are correct."""
        return round(self.recall * self.n)

    def words(self) -> str:
        """Such as "4 of 12 correct (33%), most often misclassified as naevus"."""
        taken = f", most often misclassified as {self.taken_for}" if self.taken_for else ""
        words = f"{self.right} of {self.n} correct ({100 * self.recall:.0f}%){taken}"
        if not self.unsure:
            return words
        low, high = (100 * end for end in share_interval(self.recall, self.n))
        interval = f"{100 * LEVEL:.0f}% interval {low:.0f} to {high:.0f}%, from the sample size alone"
        return f"{words} (not clearly weak: {interval})"


def class_scores(
    classes: Sequence[str], scores: Sequence[SiteScore], alone: Mapping[str, str] | None = None
) -> list[ClassScore]:
    """Weakest first; a class that no held-out site has is left out. `alone`: classes of one site, with that site."""
    confusion = np.sum([np.asarray(score.confusion, dtype=np.int64) for score in scores], axis=0)
    found = []
    for k, name in enumerate(classes):
        n = int(confusion[k].sum())
        if n:
            wrong = confusion[k].copy()
            wrong[k] = 0
            taken = classes[int(wrong.argmax())] if wrong.any() else ""
            found.append(ClassScore(name, n, float(confusion[k, k]) / n, taken, (alone or {}).get(name, "")))
    return sorted(found, key=lambda score: (score.recall, score.name))


def weak_classes(scores: Sequence[ClassScore]) -> list[ClassScore]:
    """The weak ones, by the rule of all reports: under one half or 15 points below the mean, and not the best.

    A class that could not be learned while its only site was held out does not count as weak: it was not measured.
    """
    learned = [score for score in scores if not score.alone]
    shares = [score.recall for score in learned]
    weak = [learned[k] for k in weak_indices(shares)]
    return [replace(score, unsure=share_interval(score.recall, score.n)[1] >= weak_below(shares)) for score in weak]


def hardest_site(scores: Sequence[SiteScore]) -> tuple[SiteScore, str]:
    """The site with the lowest accuracy, and a few words where its samples are too few to show that it is hard.

    A site is hard by the rule of weak classes.
    """
    shares = [score.accuracy for score in scores]
    worst = min(scores, key=lambda score: score.accuracy)
    hard = any(scores[k] is worst for k in weak_indices(shares))
    if not hard or share_interval(worst.accuracy, worst.n)[1] < weak_below(shares):
        return worst, ""
    return worst, f"not clearly hard: {counted(worst.n, 'sample')} {agree(worst.n, 'is', 'are')} too few to tell"


def same_site_gaps(scores: Sequence[SiteScore]) -> dict[str, tuple[float, float]]:
    """The accuracy at each site while models knew it (mean over the models of the other sites) and while unseen."""
    found = {}
    for score in scores:
        known = [other.seen_at.get(score.site) for other in scores if other is not score]
        values = [value for value in known if value is not None]
        if values:
            found[score.site] = (float(np.mean(values)), score.accuracy)
    return found


def accuracy_without(classes: Sequence[str], scores: Sequence[SiteScore], left_out: Collection[str]) -> float | None:
    """Mean accuracy over sites without the samples of some classes, None where no site has others."""
    rows = [k for k, name in enumerate(classes) if name not in left_out]
    tables = [np.asarray(score.confusion, dtype=np.int64)[rows] for score in scores]
    right = [sum(int(table[i, k]) for i, k in enumerate(rows)) / int(table.sum()) for table in tables if table.sum()]
    return float(np.mean(right)) if right else None


def verdict(method: str, scores: Mapping[str, Sequence[SiteScore]]) -> str:
    """Whether the method is better than the others, by accuracy averaged over classes at unseen sites."""
    own = [score.balanced for score in scores[method]]
    others = {name: [s.balanced for s in rows] for name, rows in scores.items() if name != method}
    if not others:
        return ""
    best = max(others, key=lambda name: float(np.mean(others[name])))
    gains = np.array(own) - np.array(others[best])
    mean, wins, k = float(gains.mean()), int((gains > 0).sum()), len(gains)
    numbers = (
        f"{100 * float(np.mean(own)):.1f}% against {100 * float(np.mean(others[best])):.1f}% for {best}, the best "
        f"other method (accuracy averaged over classes, at unseen sites); better at {wins} of {k} sites"
    )
    # A method may gain on rare classes and lose more samples of common ones: show both numbers.
    samples = f" Accuracy over samples: {method} {_accuracy(scores[method])}, {best} {_accuracy(scores[best])}."
    if mean > WORTH and wins * 2 > k:
        return f"{method} is better here: {numbers}. {certainty(gains)}{samples}"
    if mean < -WORTH:
        again = f"To use {best}, fit again with --method {best.lower()} and another --out."
        return f"{method} is worse here: {numbers}. {certainty(gains)}{samples} {again}"
    return f"{method} makes no reliable difference: {numbers}.{samples} The simpler method is enough."


def _accuracy(scores: Sequence[SiteScore]) -> str:
    return f"{100 * float(np.mean([score.accuracy for score in scores])):.1f}%"


def certainty(gains: np.ndarray[Any, Any]) -> str:
    """Whether a mean difference over sites may be chance, as a sentence."""
    if len(gains) < 3 or float(np.ptp(gains)) < EQUAL:
        return "With so few sites, chance cannot be ruled out."
    p = float(stats.ttest_1samp(gains, 0.0).pvalue)
    return f"A paired t-test over sites gives p = {p:.2g}" + (
        "." if p < 0.05 else ": with so few sites, this may be chance."
    )
