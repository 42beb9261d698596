"""What held-out sites say about a site nobody has seen: estimates, weak points, whether a method was worth it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from longshift.report.weakness import weak_indices
from longshift.words import counted

LEVEL = 0.8  # of the intervals: with a handful of sites, 95 % would say nothing
WORTH = 0.005  # half a point
MOST = 5  # weak classes that are named
CLASS_ACCURACY = "Of all samples of a class at the held-out sites together, the share that is recognised"


@dataclass(frozen=True)
class SiteScore:
    """How a model that never saw a site does there."""

    site: str
    n: int
    accuracy: float
    balanced: float  # mean over the classes that the site has
    seen: float | None  # accuracy on held-out samples of the sites it was trained on
    per_class: Mapping[str, float | None]
    confusion: tuple[tuple[int, ...], ...]


def site_score(site: str, evaluations: Mapping[str, Any]) -> SiteScore:
    """From the evaluations in a run's result ("selected" or "averaged")."""
    target = evaluations["target"]
    present = [value for value in target["per_class"].values() if value is not None]
    test = evaluations.get("test")
    return SiteScore(
        site,
        int(target["n"]),
        float(target["accuracy"]),
        float(np.mean(present)),
        float(test["accuracy"]) if test else None,
        dict(target["per_class"]),
        tuple(tuple(row) for row in target["confusion"]),
    )


@dataclass(frozen=True)
class Estimate:
    """An expected value for a new site with an interval that holds with probability `LEVEL`."""

    mean: float
    low: float
    high: float
    sites: int

    def words(self) -> str:
        """In percent: "81 % (80 % interval 70 to 92 %, from 4 sites)"."""
        sites = f"{self.sites} site{'s' * (self.sites > 1)}"
        return (
            f"{100 * self.mean:.0f} % ({100 * LEVEL:.0f} % interval {100 * self.low:.0f} to {100 * self.high:.0f} %, "
            f"from {sites})"
        )


def expect(values: Sequence[float], n: int) -> Estimate:
    """A prediction interval for one more site: Student's t over sites, but not narrower than n samples allow (Wilson).

    A few sites may agree by chance; the number of samples in all then still bounds what can be known. With one site
    nothing is known of how sites differ, so its interval is too narrow; the words must say so.

    >>> expect([0.7, 0.8, 0.85, 0.6], n=400).words()
    '74 % (80 % interval 53 to 94 %, from 4 sites)'
    >>> expect([0.5, 0.5], n=20).words()
    '50 % (80 % interval 36 to 64 %, from 2 sites)'
    """
    mean, k = float(np.mean(values)), len(values)
    z = float(stats.norm.ppf((1 + LEVEL) / 2))
    middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    low, high = middle - reach, middle + reach
    if k > 1:
        half = float(stats.t.ppf((1 + LEVEL) / 2, k - 1)) * float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / k)
        low, high = min(low, mean - half), max(high, mean + half)
    return Estimate(mean, max(low, 0.0), min(high, 1.0), k)


@dataclass(frozen=True)
class ClassScore:
    """How a class is recognised at unseen sites, all of them together."""

    name: str
    n: int
    recall: float
    taken_for: str  # the class it is most often mistaken for; "" if never

    @property
    def right(self) -> int:
        """How many of the n."""
        return round(self.recall * self.n)

    def words(self) -> str:
        """Such as "recognised 4 of 12 times (33 %), mostly taken for naevus"."""
        taken = f", mostly taken for {self.taken_for}" if self.taken_for else ""
        return f"recognised {self.right} of {counted(self.n, 'time')} ({100 * self.recall:.0f} %){taken}"


def class_scores(classes: Sequence[str], scores: Sequence[SiteScore]) -> list[ClassScore]:
    """Weakest first; a class that no held-out site has is left out."""
    confusion = np.sum([np.asarray(score.confusion, dtype=np.int64) for score in scores], axis=0)
    found = []
    for k, name in enumerate(classes):
        n = int(confusion[k].sum())
        if n:
            wrong = confusion[k].copy()
            wrong[k] = 0
            taken = classes[int(wrong.argmax())] if wrong.any() else ""
            found.append(ClassScore(name, n, float(confusion[k, k]) / n, taken))
    return sorted(found, key=lambda score: (score.recall, score.name))


def weak_classes(scores: Sequence[ClassScore]) -> list[ClassScore]:
    """The weak ones, by the rule of all reports: under one half or 15 points below the mean, and not the best."""
    return [scores[k] for k in weak_indices([score.recall for score in scores])[:MOST]]


def verdict(method: str, scores: Mapping[str, Sequence[SiteScore]]) -> str:
    """Whether the method was worth it, in words; the measure is accuracy averaged over classes, at unseen sites."""
    own = [score.balanced for score in scores[method]]
    others = {name: [s.balanced for s in rows] for name, rows in scores.items() if name != method}
    if not others:
        return ""
    best = max(others, key=lambda name: float(np.mean(others[name])))
    gains = np.array(own) - np.array(others[best])
    mean, wins, k = float(gains.mean()), int((gains > 0).sum()), len(gains)
    numbers = (
        f"{100 * float(np.mean(own)):.1f} % against {100 * float(np.mean(others[best])):.1f} % for {best}, the best of "
        f"the others (mean over classes, at sites not seen in training); better at {wins} of {k} sites"
    )
    # A method may win on rare classes and lose more samples of common ones; who reads one number must see both.
    samples = f" Counting samples, {method} is right {_right(scores[method])}, {best} {_right(scores[best])}."
    if mean > WORTH and wins * 2 > k:
        return f"{method} was worth it: {numbers}.{_certainty(gains)}{samples}"
    if mean < -WORTH:
        again = f"To use {best}, fit again with --method {best.lower()} and another --out."
        return f"{method} was not worth it here: {numbers}.{_certainty(gains)}{samples} {again}"
    return f"{method} made no clear difference: {numbers}.{samples} The simpler method would do."


def _right(scores: Sequence[SiteScore]) -> str:
    return f"{100 * float(np.mean([score.accuracy for score in scores])):.1f} %"


def _certainty(gains: np.ndarray[Any, Any]) -> str:
    if len(gains) < 3 or float(np.std(gains)) == 0:
        return " So few sites cannot rule out chance."
    p = float(stats.ttest_1samp(gains, 0.0).pvalue)
    return f" A paired t-test over sites gives p = {p:.2g}" + (
        "." if p < 0.05 else ": with so few sites this may still be chance."
    )
