"""The numbers of a fit: what held-out sites tell about a new site. The words are in templates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from longshift.errors import LongshiftError
from longshift.fitting.data_summary import DataSummary, lines, named_lines
from longshift.fitting.plan import NO_STYLE, FitJob, FitPlan
from longshift.fitting.suggest import LabelCurve
from longshift.inference import ENOUGH_SITES, UnseenAccuracy, one_more_site
from longshift.metrics import mean_class_accuracy
from longshift.report import share_interval, weak_below, weak_indices
from longshift.settings import NO_TARGET
from longshift.training import RunConfig

LEARNED = 0.6  # accuracy at unseen sites; below it, a network without pretrained weights is blamed before the data
WORTH = 0.005  # half a point: a smaller difference between methods does not count
EQUAL = 1e-9  # differences of accuracies that differ by less are rounding errors
TIE = 1e-6  # of accuracy: rounding errors of means are smaller, and four digits of percent show all that is larger
LOGISTIC, MAJORITY = "LogisticRegression", "Majority class"  # what every fit is compared with
NOTEWORTHY = 0.05  # a difference between seen and unseen sites
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SiteScore:
    """Scores at a site of a model that was trained without it."""

    site: str
    n: int
    accuracy: float
    balanced: float  # mean over the classes that the site has
    seen: float  # accuracy on held-out samples of the sites it was trained on
    validation: float  # accuracy that selected its weights: each class of each of these sites counts equally
    per_class: Mapping[str, float | None]
    confusion: tuple[tuple[int, ...], ...]
    seen_at: Mapping[str, float | None] = field(default_factory=dict)  # as `seen`, at each of these sites


def site_score(site: str, evaluations: Mapping[str, Any]) -> SiteScore:
    """From the evaluations in a run's result ("selected" or "averaged")."""
    # Of data with an own test part, that one; else the samples that selected the weights.
    target, seen = evaluations["target"], evaluations.get("test") or evaluations["validation"]
    table = np.asarray(seen["confusion"])
    return SiteScore(
        site,
        int(target["n"]),
        float(target["accuracy"]),
        mean_class_accuracy(target["per_class"].values()),
        float(table.trace() / table.sum()),  # of the samples, as at the site; cells do not count equally here
        float(evaluations["validation"]["accuracy"]),
        dict(target["per_class"]),
        tuple(tuple(row) for row in target["confusion"]),
        dict(seen["per_domain"]),
    )


@dataclass(frozen=True)
class AccuracyInterval:
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
        """Whether there are enough sites to expect a number; with fewer, there is only a wide range."""
        return self.sites >= ENOUGH_SITES

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "values": list(self.values), "sites": self.sites, "enough_sites": self.enough}


def expect(values: Sequence[float], sizes: Sequence[int]) -> AccuracyInterval:
    """A prediction interval for one more site; `sizes` are the numbers of samples at the held-out sites.

    >>> found = expect([0.92, 0.9], [500, 500])
    >>> round(found.low, 2), round(found.high, 2), found.enough
    (0.43, 0.99, False)
    """
    found = one_more_site(values, sizes)
    return AccuracyInterval(found.mean, found.low, found.high, tuple(values))


@dataclass(frozen=True)
class ClassScore:
    """How well a class is recognized, over all held-out sites together."""

    name: str
    n: int
    recall: float
    precision: float | None  # share of the predictions of this class that are correct; None if it is never predicted
    taken_for: str  # the class it is most often mistaken for; "" if never
    alone: str = ""  # the only site that has it: the class cannot be learned while that site is held out
    unsure: bool = False  # so few samples cannot show that it is weak

    @property
    def right(self) -> int:
        """How many of the n are correct."""
        return round(self.recall * self.n)


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
            right, predicted = float(confusion[k, k]), int(confusion[:, k].sum())
            precision = right / predicted if predicted else None
            found.append(ClassScore(name, n, right / n, precision, taken, (alone or {}).get(name, "")))
    return sorted(found, key=lambda score: (score.recall, score.name))


def weak_classes(scores: Sequence[ClassScore]) -> list[ClassScore]:
    """The weak ones, by the rule of all reports: under one half or 15 points below the mean, and not the best.

    A class that could not be learned while its only site was held out does not count as weak: it was not measured.
    """
    learned = [score for score in scores if not score.alone]
    shares = [score.recall for score in learned]
    weak = [learned[k] for k in weak_indices(shares)]
    return [replace(score, unsure=share_interval(score.recall, score.n)[1] >= weak_below(shares)) for score in weak]


def hardest_site(scores: Sequence[SiteScore]) -> tuple[SiteScore, bool]:
    """The site with the lowest accuracy, and whether it is hard but has too few samples to show it.

    A site is hard by the rule of weak classes.
    """
    shares = [score.accuracy for score in scores]
    worst = min(scores, key=lambda score: score.accuracy)
    hard = any(scores[k] is worst for k in weak_indices(shares))
    return worst, hard and share_interval(worst.accuracy, worst.n)[1] >= weak_below(shares)


def same_site_gaps(scores: Sequence[SiteScore]) -> dict[str, tuple[float, float]]:
    """The accuracy at each site while models knew it (mean over the models of the other sites) and while unseen."""
    found = {}
    for score in scores:
        known = [other.seen_at.get(score.site) for other in scores if other is not score]
        values = [value for value in known if value is not None]
        if values:
            found[score.site] = (float(np.mean(values)), score.accuracy)
    return found


def known_and_unseen(own: Sequence[SiteScore]) -> tuple[float, float]:
    """The mean accuracy at sites while models knew them and while held out; of one held-out site, that of its model."""
    if pairs := list(same_site_gaps(own).values()):
        known, unseen = np.mean(pairs, axis=0)
        return float(known), float(unseen)
    return own[0].seen, own[0].accuracy


def unseen_accuracy(classes: Sequence[str], own: Sequence[SiteScore], left_out: Collection[str]) -> UnseenAccuracy:
    """The accuracy that decides whether the model may be used.

    Classes that only one site has are left out, because no model could learn them while that site was held out. If
    there are no others, all count. Guessing is among the classes that are left, or among all where only one is left.
    """
    sites = [
        [value for name, value in score.per_class.items() if value is not None and name not in left_out]
        for score in own
    ]
    means = [float(np.mean(values)) for values in sites if values]
    if not left_out or not means:
        return UnseenAccuracy(float(np.mean([score.balanced for score in own])), len(own), len(classes))
    left = len(classes) - len(left_out)
    return UnseenAccuracy(float(np.mean(means)), len(means), left if left > 1 else len(classes))


def better_baseline(own: Sequence[SiteScore], scores: Mapping[str, Sequence[SiteScore]]) -> str:
    """The simple model that is clearly better, over samples and averaged over classes; "" if none is.

    Over samples, the gain must exceed the standard error of a difference of two shares: a few images condemn no model.
    """
    share, n = float(np.mean([score.accuracy for score in own])), sum(score.n for score in own)
    least = (max(WORTH, float(np.sqrt(2 * share * (1 - share) / n))), WORTH)

    def clearly(rows: Sequence[SiteScore]) -> bool:
        pairs = [[(a.accuracy, b.accuracy), (a.balanced, b.balanced)] for a, b in zip(rows, own, strict=True)]
        gains = np.subtract(*np.moveaxis(np.array(pairs), 2, 0))  # (sites, 2)
        return bool((gains.mean(axis=0) > least).all())

    return next((name for name in (MAJORITY, LOGISTIC) if name in scores and clearly(scores[name])), "")


def paired_p_value(gains: Floats) -> float | None:
    """Of a t-test over sites; None for so few or so equal differences that there is no test."""
    if len(gains) < 3 or float(np.ptp(gains)) < EQUAL:
        return None
    return float(stats.ttest_1samp(gains, 0.0).pvalue)


@dataclass(frozen=True)
class MethodComparison:
    """The method of the fit and the best other one, at the same held-out sites."""

    best: str  # the other method
    simple: bool  # it is not a method of ours
    own: float  # accuracy averaged over classes
    other: float
    wins: int  # sites
    sites: int
    p_value: float | None

    @property
    def verdict(self) -> Literal["better", "worse", "same"]:
        """Whether the method of the fit is better."""
        if self.own - self.other > WORTH and 2 * self.wins > self.sites:
            return "better"
        return "worse" if self.own - self.other < -WORTH else "same"


def compare_methods(method: str, scores: Mapping[str, Sequence[SiteScore]]) -> MethodComparison | None:
    """Compare by accuracy averaged over classes at unseen sites; None if there is no other model."""
    balanced = {name: np.array([score.balanced for score in rows]) for name, rows in scores.items()}
    others = [name for name in scores if name != method]
    if not others:
        return None
    best = max(others, key=lambda name: float(balanced[name].mean()))
    gains = balanced[method] - balanced[best]
    return MethodComparison(
        best, best in (LOGISTIC, MAJORITY), float(balanced[method].mean()), float(balanced[best].mean()),
        int((gains > 0).sum()), len(gains), paired_p_value(gains),
    )  # fmt: skip


@dataclass(frozen=True)
class StyleChoice:
    """Whether the method of the fit mixes styles, and why."""

    style: str
    why: Literal["requested", "vectors", "head", "small images", "measured", "diverged"]
    diverged: tuple[str, ...] = ()  # held-out sites at which the other choice diverged
    on: float = 0.0  # accuracy over classes with styles mixed: mean of held-out sites and validation samples
    off: float = 0.0
    better: int = 0  # sites at which the chosen one is better
    worse: int = 0
    sites: int = 0
    p_value: float | None = None
    one_source: bool = False  # each run was trained on a single site, the final model on two

    @property
    def mixes(self) -> bool:
        """Whether styles are mixed."""
        return self.style != NO_STYLE

    @property
    def tie(self) -> bool:
        """Whether both are equally good; then styles are not mixed."""
        return abs(self.on - self.off) < TIE


def untried_style(config: RunConfig, asked: bool) -> StyleChoice | None:
    """Why styles are or are not mixed without a trial; None for a method that never mixes styles."""
    found = config.style_config()
    style = found.mix if found else NO_STYLE
    if asked:
        return StyleChoice(style, "requested")
    if config.method_class.Style.hyper_parameters()["mix"].default == NO_STYLE:
        return None
    return StyleChoice(style, "vectors" if config.vectors else "head" if config.frozen else "small images")


def better_style(
    scores: Mapping[str, Sequence[SiteScore]], diverged: Mapping[str, Sequence[str]], one_source: bool = False
) -> StyleChoice:
    """The style with the best accuracy over classes, at held-out sites and on validation samples; off in a tie.

    Accuracy at a few held-out sites differs more between equal runs than accuracy on validation samples.

    Args:
        scores: Scores of each style that can be chosen.
        diverged: Held-out sites at which training with a style diverged; a style with such a site has no scores.
        one_source: Whether each run was trained on a single site.
    """
    if len(scores) == 1:
        lost = tuple(site for sites in diverged.values() for site in sites)
        return StyleChoice(next(iter(scores)), "diverged", lost)
    (style,) = scores.keys() - {NO_STYLE}
    on, off = (
        np.array([(score.balanced + score.validation) / 2 for score in scores[name]]) for name in (style, NO_STYLE)
    )
    chosen = style if float(on.mean() - off.mean()) >= TIE else NO_STYLE
    gains = off - on if chosen == NO_STYLE else on - off
    return StyleChoice(
        chosen, "measured", (), float(on.mean()), float(off.mean()), int((gains >= TIE).sum()),
        int((gains <= -TIE).sum()), len(gains), paired_p_value(on - off), one_source,
    )  # fmt: skip


def choose_style(
    plan: FitPlan, jobs: Sequence[FitJob], results: Mapping[Any, Mapping[str, Any]], one_source: bool
) -> StyleChoice:
    """Compare the styles that were tried; a style with a run that diverged loses to one without."""
    tried = {style: [job for job in jobs if job.style == style] for style in plan.styles}
    diverged = {
        style: [job.site for job in some if results[job.folder]["status"] == "diverged"]
        for style, some in tried.items()
    }
    if all(diverged.values()):  # no run can be trusted to the end: those with weights from before are compared
        diverged = {
            style: [job.site for job in some if not results[job.folder]["selected"]] for style, some in tried.items()
        }
    if all(diverged.values()):
        require_weights(jobs, results)
    scores = {
        style: [site_score(job.site, results[job.folder]["selected"]) for job in some]
        for style, some in tried.items()
        if not diverged[style]
    }
    return better_style(scores, diverged, one_source)


def choose_method(plan: FitPlan, jobs: Sequence[FitJob], results: Mapping[Any, Mapping[str, Any]]) -> str:
    """Of the methods that were tried, the best at the held-out sites: over samples and classes; the first in a tie."""

    def score(method: str) -> float:
        rows = [site_score("", results[job.folder]["selected"]) for job in jobs if job.method == method]
        return float(np.mean([row.accuracy + row.balanced for row in rows]))

    require_weights(jobs, results)
    return max(plan.tried, key=score)


def require_weights(jobs: Sequence[FitJob], results: Mapping[Any, Mapping[str, Any]]) -> None:
    """Raise for a run that diverged before it had weights to select."""
    for job in jobs:
        if not results[job.folder]["selected"]:
            raise LongshiftError(
                f"{job.label}: the loss became infinite or NaN before the first evaluation; "
                f"use a smaller learning rate (--set lr=...) and another --out. The run is in {job.folder}"
            )


@dataclass(frozen=True)
class Training:
    """What was trained, and for how long."""

    config: RunConfig  # of the final model
    runs: int
    steps: int  # planned, per run
    usual_steps: int  # without --minutes
    minutes: float | None
    tried_styles: int  # runs with a style that is not chosen
    unreached: str  # where the weights are that were wanted and cannot be downloaded
    why_trainable: str  # "requested", "gpu" or "no gpu"
    tried: Sequence[str] = ()  # titles of the methods of which the better one at the held-out sites was chosen
    final_steps: int = 0  # that the final model has; fewer than planned where time ran out
    unvalidated: Sequence[tuple[str, str]] = ()  # site and class of single samples or groups, which only train


@dataclass(frozen=True)
class FitSummary:
    """What to expect of the final model at a new site."""

    data: DataSummary
    training: Training
    title: str  # of the method
    scores: Mapping[str, Sequence[SiteScore]]  # by method: "NDCL", "ERM"
    accuracy: AccuracyInterval
    balanced: AccuracyInterval
    classes: Sequence[ClassScore]  # weakest first
    weak: Sequence[ClassScore]
    unseen: UnseenAccuracy  # what the model's files keep
    validation: float  # accuracy of the final model on samples of the sites it was trained on
    comparison: MethodComparison | None = None
    style: StyleChoice | None = None
    labels: LabelCurve | None = None

    @property
    def warning(self) -> str:
        """Why the model must not be used, or ""."""
        return self.unseen.warning()

    @property
    def own(self) -> Sequence[SiteScore]:
        """The scores of the method itself."""
        return self.scores[self.title]

    @property
    def worst_site(self) -> SiteScore:
        """The site with the lowest accuracy when held out."""
        return hardest_site(self.own)[0]

    @property
    def alone(self) -> list[ClassScore]:
        """Classes that only one site has, which were not measured."""
        return [score for score in self.classes if score.alone]

    @property
    def low_from_scratch(self) -> bool:
        """Whether the accuracy at unseen sites is low and the network had no starting weights."""
        config = self.training.config
        scratch = not (config.vectors or config.weights or config.pretrained)
        return scratch and known_and_unseen(self.own)[1] < LEARNED

    @property
    def findings(self) -> list[str]:
        """The verdict in one line, then what to do about it; at most six."""
        known, unseen = known_and_unseen(self.own)
        wide = known - unseen > NOTEWORTHY
        return lines("findings.txt.j2", summary=self, data=self.data, known=known, unseen=unseen, wide=wide)[:6]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Names and values of what was tried besides: style mixing, labels."""
        return named_lines("notes.txt.j2", summary=self, style=self.style)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found = {
            "method": self.title,
            "expected_accuracy": self.accuracy.to_json(),
            "expected_balanced_accuracy": self.balanced.to_json(),
            "sites": {name: [asdict(score) for score in rows] for name, rows in self.scores.items()},
            "classes": [asdict(score) for score in self.classes],
            "weak_classes": [score.name for score in self.weak],
            "worst_site": self.worst_site.site,
            "warning": self.warning,
            "comparison": {**asdict(self.comparison), "verdict": self.comparison.verdict} if self.comparison else None,
            "style_mixing": asdict(self.style) if self.style else None,
            "findings": self.findings,
        }
        return found | ({"label_curve": self.labels.to_json()} if self.labels else {})


def summarize(
    data: DataSummary, training: Training, scores: Mapping[str, Sequence[SiteScore]], validation: float,
    style: StyleChoice | None = None, labels: LabelCurve | None = None,
) -> FitSummary:  # fmt: skip
    """Summarize the scores at held-out sites; `validation` is the accuracy of the final model at its own sites."""
    title = training.config.method_class.info.title
    own = scores[title]
    sizes = [score.n for score in own]
    classes = class_scores(data.classes, own, data.alone())
    unmeasured = {score.name for score in classes if score.alone}
    below = better_baseline(own, scores)
    unseen = replace(unseen_accuracy(data.classes, own, unmeasured), below=below)
    return FitSummary(
        data, training, title, scores,
        expect([score.accuracy for score in own], sizes), expect([score.balanced for score in own], sizes),
        classes, weak_classes(classes), unseen, validation,
        compare_methods(title, scores), style, labels,
    )  # fmt: skip


def held_out_scores(jobs: Sequence[FitJob], results: Mapping[Any, Mapping[str, Any]]) -> dict[str, list[SiteScore]]:
    """Scores by the printed name of the method: "NDCL", "ERM"."""
    scores: dict[str, list[SiteScore]] = {}
    for job in jobs:
        if job.site == NO_TARGET:
            continue
        title, result = job.config.method_class.info.title, results[job.folder]
        scores.setdefault(title, []).append(site_score(job.site, result["selected"]))
    return scores
