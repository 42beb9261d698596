"""How accurate a model is at a new site, from its predictions there alone, in numbers and in words.

`longshift fit` measures at each held-out site what the predictions alone say (`Signals`) and what is true. Both are
kept with the model (`site_knowledge_file`) and correct what the predictions at a new site say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longshift.analysis import LEVEL, Evidence, Range, corrected_estimate, logit_share
from longshift.inference.site_doubt import ODD, ClassExcess, Doubt, relative_excess
from longshift.inference.site_signals import Reference, Signals
from longshift.inference.sure_rule import SureRule
from longshift.text import counted

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
    usual: Range  # the same for a site that gives no reason for a wider interval
    doubt: Doubt
    signals: Signals
    hardest: HeldOutSite
    farthest: HeldOutSite
    sites: int

    @property
    def far(self) -> bool:
        """Whether the site is farther from the training sites than any held-out one was."""
        return self.doubt.farther > 0

    @property
    def unreliable(self) -> bool:
        """Whether a warning applies: the site is farther away than any before, or one class dominates."""
        return self.doubt.warns

    def short(self) -> str:
        """The number with its interval, marked where it is unreliable."""
        return f"{self._mean()} ({_interval(self.accuracy)})"

    def _mean(self) -> str:
        return _percent(self.accuracy.mean) + (", unreliable here" if self.unreliable else "")

    def statements(self) -> list[str]:
        """The estimate in plain words, and why its interval is wider than usual.

        Where a warning applies, the sentence that the site is easier than a held-out one is left out: it would
        reassure with a number that is unreliable.
        """
        found, hardest = self.accuracy, self.hardest
        sites = counted(self.sites, "held-out site")
        below = found.mean < hardest.accuracy
        lines = [
            f"Expected accuracy here: {self._mean()} ({100 * LEVEL:.0f}% interval {_interval(found)}), from "
            f"{self.signals.n} predictions without labels and the errors of such estimates at the {sites}.",
        ]
        if below or not self.unreliable:
            lines.append(
                f"That is {'below' if below else 'above'} the hardest held-out site, {hardest.site} "
                f"({_percent(hardest.accuracy)} correct there)."
            )
        if reasons := self.doubt.reasons():
            *first, last = reasons
            why = " and ".join([*([", ".join(first)] if first else []), last])
            lines.append(
                f"The interval is wider because {why} (otherwise {_interval(self.usual)}): "
                "estimates for such sites were less accurate on other data."
            )
        return lines

    def sentences(self) -> list[str]:
        """A warning if the site is farther away than any before, and the estimate in plain words."""
        return [*([self.warning()] if self.far else []), *self.statements()]

    def warning(self) -> str:
        """A line for a site that is farther away than any before, or ""."""
        if not self.far:
            return ""
        near = min(self.signals.distances, key=lambda site: self.signals.distances[site])
        return (
            "This site is farther from the training sites than any held-out one was: its distance to the nearest "
            f"training site, {near}, is {self.signals.nearest:.2f}; among the held-out sites, the largest such "
            f"distance was {self.farthest.signals.nearest:.2f} ({self.farthest.site}). None of them shows how wrong "
            "the estimate can be this far away. Label some samples to check it."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "expected_accuracy": asdict(self.accuracy), "level": LEVEL, **asdict(self.signals),
            "hardest_held_out": {"site": self.hardest.site, "accuracy": self.hardest.accuracy},
            "farther_than_any_held_out": self.far, "relative_excess": self.doubt.farther,
            "dominance": self.doubt.dominance, "wider_because": self.doubt.reasons(),
            "otherwise": asdict(self.usual), "sentences": self.sentences(),
        }  # fmt: skip


def estimate_site(knowledge: SiteKnowledge, signals: Signals, dominance: float) -> SiteEstimate | None:
    """The expected accuracy at a site with these signals and dominance of a class; None for too few samples."""
    if signals.n < FEWEST:
        return None
    held = knowledge.held_out
    farthest = max(held, key=lambda site: site.signals.nearest)
    doubt = Doubt(relative_excess(signals.nearest, farthest.signals.nearest), dominance, signals.n)
    found = corrected_estimate(signals.score(), [site.evidence() for site in held])
    return SiteEstimate(
        doubt.widen(found).shares(), doubt.usual().widen(found).shares(), doubt, signals,
        min(held, key=lambda site: site.accuracy), farthest, len(held),
    )  # fmt: skip


def odd_mix(classes: Sequence[str], most: ClassExcess, n: int) -> str:
    """A sentence on a class that n predictions name far more often than it occurs at any training site, or ""."""
    if n < FEWEST or most.excess <= ODD:
        return ""
    return (
        f"{_percent(most.share)} of the predictions are {classes[most.label]}, which has at most "
        f"{_percent(most.known)} of the samples of any training site: either it is really that frequent here, or many "
        "of these predictions are wrong. Label some samples to check it."
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


def _interval(found: Range) -> str:
    return f"{100 * found.low:.0f} to {_percent(found.high)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
