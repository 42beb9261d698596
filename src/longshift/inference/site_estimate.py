"""How accurate a model is at a new site, from its predictions there alone, in numbers and in words.

`longshift fit` measures at each held-out site what the predictions alone say (`Signals`) and what is true. Both are
kept with the model (`site_knowledge_file`) and correct what the predictions at a new site say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longshift.analysis import LEVEL, Evidence, Range, corrected_estimate, logit_share
from longshift.array_types import IntArray
from longshift.inference.site_signals import Reference, Signals
from longshift.inference.sure_rule import SureRule

ODD = 0.3  # a class is predicted this much more often than at any training site
FEWEST = 20  # samples of a new site; with fewer, nothing is estimated
ONE_SITE = 0.3  # weight of a held-out site whose model was trained on a single one, unlike the final model


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


def estimate_site(knowledge: SiteKnowledge, signals: Signals) -> SiteEstimate | None:
    """The expected accuracy at a site with these signals; None for too few samples."""
    if signals.n < FEWEST:
        return None
    held = knowledge.held_out
    found = corrected_estimate(signals.score(), [site.evidence() for site in held])
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
        f"{_percent(float(known[most]))} of the samples of any training site: either it is really that frequent here, "
        "or many of these predictions are wrong. An estimate of the accuracy is less certain than its interval says."
    )


def no_estimate(knowledge: SiteKnowledge | None, adapted: bool, n: int) -> str:
    """Why there is no estimate for a site with n samples, in a sentence; "" if there is one, or if none is expected."""
    if adapted:
        return (
            "No estimate for this site: the model was adapted, and what `longshift fit` measured at held-out sites "
            "holds for its old last layer. Label some samples and run `longshift evaluate`, or use the old model."
        )
    if knowledge is not None and n < FEWEST:
        return f"No estimate for this site: expected at least {FEWEST} samples of it in one call, got {n}."
    return ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
