"""The result of a fit, as numbers and as sentences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longshift.fitting.data_summary import DataSummary
from longshift.fitting.plan import Plan
from longshift.fitting.site_scores import (
    MOST,
    ClassScore,
    Estimate,
    SiteScore,
    accuracy_without,
    class_scores,
    expect,
    hardest_site,
    same_site_gaps,
    verdict,
    weak_classes,
)
from longshift.inference import UnseenAccuracy
from longshift.methods import get_method
from longshift.report import LEARNED
from longshift.settings import NO_TARGET
from longshift.text import agree, counted, decimal, some

NOTEWORTHY = 0.05  # a difference between seen and unseen sites


@dataclass(frozen=True)
class Summary:
    """What to expect of the final model at a new site."""

    title: str  # of the method
    scores: Mapping[str, Sequence[SiteScore]]  # by model: "NDCL", "NDCL + EMA", "ERM"
    accuracy: Estimate
    balanced: Estimate
    classes: Sequence[ClassScore]  # weakest first
    weak: Sequence[ClassScore]
    verdict: str
    style_mixing: str  # why styles are or are not mixed; "" for methods without styles
    sentences: Sequence[str]
    unseen: Mapping[str, UnseenAccuracy]  # by weights, "selected" and "averaged": what the model's files keep

    @property
    def warning(self) -> str:
        """Why the model must not be used, or ""."""
        return self.unseen["selected"].warning()

    @property
    def own(self) -> Sequence[SiteScore]:
        """The scores of the method itself."""
        return self.scores[self.title]

    @property
    def worst_site(self) -> SiteScore:
        """The site with the lowest accuracy when held out."""
        return hardest_site(self.own)[0]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "method": self.title,
            "expected_accuracy": self.accuracy.to_json(),
            "expected_balanced_accuracy": self.balanced.to_json(),
            "sites": {name: [asdict(score) for score in rows] for name, rows in self.scores.items()},
            "classes": [asdict(score) for score in self.classes],
            "weak_classes": [score.name for score in self.weak],
            "worst_site": self.worst_site.site,
            "verdict": self.verdict,
            "warning": self.warning,
            "style_mixing": self.style_mixing,
            "sentences": list(self.sentences),
        }


def summarize(
    look: DataSummary, plan: Plan, scores: Mapping[str, Sequence[SiteScore]], final: Mapping[str, Any]
) -> Summary:
    """Summarize the scores at held-out sites and the result of the final model."""
    title = get_method(plan.method).info.title
    own = scores[title]
    sizes = [score.n for score in own]
    accuracy, balanced = expect([s.accuracy for s in own], sizes), expect([s.balanced for s in own], sizes)
    classes = class_scores(look.classes, own, look.alone())
    weak = weak_classes(classes)
    same = accuracy.words() == balanced.words()
    averaged = "The same holds for the average over classes" if same else f"Averaged over classes: {balanced.words()}"
    sentences = [f"Accuracy of {title} at a new site: {accuracy.words()}. {averaged}."]
    if meaning := accuracy.meaning():
        sentences.append(meaning)
    validation = final["selected"]["validation"]["accuracy"]
    alone = [score for score in classes if score.alone]
    unmeasured = {score.name for score in alone}
    unseen = {"selected": unseen_accuracy(look.classes, own, unmeasured)}
    warning = unseen["selected"].warning()
    scratch = look.noun != "vectors" and not (final["run"]["weights"] or final["run"]["pretrained"])
    first = try_weights(own, validation) if scratch else ""
    if warning:
        left_out = " Classes that only one site has are left out of this number." if alone else ""
        start = ", a pretrained backbone (--weights)" if scratch else ""
        hint = first or f"More {look.noun} from more sites{start} or more steps (--steps) may help."
        sentences.insert(0, f"{warning}{left_out} {hint}")
    elif first:
        sentences.append(first)
    if few_steps := short_training(plan):
        sentences.insert(0, few_steps)
    if len(own) == 1:
        sentences.append("Run without --target to hold out each site: one does not show how sites differ.")
    else:
        sentences.append(hardest(own))
    cost = cost_of_a_new_site(own, advise=not first)
    if cost:
        sentences.append(cost)
    if alone:
        sentences.append(unlearned(alone, accuracy_without(look.classes, own, unmeasured)))
        measured = [score.name for score in classes if not score.alone]
        if len(measured) == 1:
            sentences.append(
                f"Only {measured[0]} was measured, so these numbers do not show how well the model tells classes apart."
            )
    if weak:
        sentences.append(name_weak(weak))
    else:
        sentences.append(f"No {'other ' * bool(alone)}class is clearly weak.")
    judgment = verdict(title, {name: rows for name, rows in scores.items() if " + " not in name})
    if judgment and len({plan.steps_at(site) for site in plan.sites}) > 1:
        judgment += (
            " Time ran short, so sites differ in their number of steps; at each site, all methods had the same number."
        )
    if judgment:
        sentences.append(judgment)
    average = next((name for name in scores if name.startswith(f"{title} + ")), None)
    if average:
        with_average = expect([s.balanced for s in scores[average]], sizes).mean
        unseen["averaged"] = unseen_accuracy(look.classes, scores[average], unmeasured)
        gain = with_average - balanced.mean
        points = decimal(100 * gain, signed=True)
        sentences.append(
            f"Averaged weights ({average}) change the accuracy averaged over classes by {points} points"
            + ("; use them with --averaged." if gain > 0 else ".")
        )
    if plan.style_reason:
        sentences.append(plan.style_reason)
    sentences.append(
        f"The final model is trained on {'both' if len(look.sites) == 2 else f'all {len(look.sites)}'} sites. Its "
        f"accuracy on validation samples from these sites is {100 * validation:.0f}%. Its weights were selected on "
        "these samples, so this number does not predict the accuracy at a new site."
    )
    return Summary(title, scores, accuracy, balanced, classes, weak, judgment, plan.style_reason, sentences, unseen)


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


def try_weights(own: Sequence[SiteScore], validation: float) -> str:
    """The first hint for a network without pretrained weights whose accuracy is low even at known sites, or "".

    The accuracy at known sites is that on other samples of the training sites, mean over the held-out runs; without
    such samples, the validation accuracy of the final model.
    """
    seen = [score.seen for score in own if score.seen is not None]
    known = float(np.mean(seen)) if seen else validation
    if known >= LEARNED:
        return ""
    return (
        "No pretrained weights were used. Try --weights FILE.safetensors first. Accuracy is low even on other samples "
        f"of the training sites ({100 * known:.0f}%)."
    )


def short_training(plan: Plan) -> str:
    """The first sentence if time ran so short that the final model has less than half of its planned steps, else ""."""
    steps = plan.steps_at(NO_TARGET)
    if 2 * steps >= plan.steps_at_first:
        return ""
    return (
        f"Training was cut short: the final model has only {steps} of the {plan.steps_at_first} planned steps. Fit "
        "again with more --minutes before you rely on the numbers below."
    )


def cost_of_a_new_site(own: Sequence[SiteScore], advise: bool = True) -> str:
    """What it costs that a site is not among the training sites, measured at the same sites; "" for next to nothing."""
    pairs = same_site_gaps(own)
    if pairs:
        seen, unseen = (float(np.mean([pair[which] for pair in pairs.values()])) for which in (0, 1))
        start = (
            f"The same sites reach {100 * seen:.0f}% on average while a model knows them and {100 * unseen:.0f}% "
            "while held out"
        )
    elif own[0].seen is not None:
        seen, unseen = own[0].seen, own[0].accuracy
        start = (
            f"The model without {own[0].site} reaches {100 * seen:.0f}% on other samples of its training sites and "
            f"{100 * unseen:.0f}% at {own[0].site}"
        )
    else:
        return ""
    if seen - unseen <= NOTEWORTHY:
        return ""
    points = round(100 * seen) - round(100 * unseen)  # of the printed numbers, so that a reader can check it
    advice = " Training samples from the new site would help most." if advise else ""
    return f"{start}: a new site costs about {points} points.{advice}"


def name_weak(weak: Sequence[ClassScore]) -> str:
    """The classes that score low, and how many more there are."""
    listed = "; ".join(f"{score.name}: {score.words()}" for score in weak[:MOST])
    more = f"; and {len(weak) - MOST} more" if len(weak) > MOST else ""
    return f"Lowest-scoring class{'es' * (len(weak) > 1)} over all held-out sites: {listed}{more}."


def hardest(own: Sequence[SiteScore]) -> str:
    """The site with the lowest accuracy, if they differ."""
    worst, doubt = hardest_site(own)
    share = f"{100 * worst.accuracy:.0f}% accuracy when held out"
    if all(score.accuracy == worst.accuracy for score in own):
        return f"All sites were equally hard: {share}."
    return f"The hardest site was {worst.site}: {share}{f' ({doubt})' if doubt else ''}."


def unlearned(alone: Sequence[ClassScore], without: float | None) -> str:
    """How classes that only one site has affect the estimate."""
    listed = some([f"{score.name} (only at {score.alone})" for score in alone], MOST)
    n, one = sum(score.n for score in alone), len(alone) == 1
    its, it = ("its", "it") if one else ("their", "them")
    return (
        f"Not measured: {listed}. No training samples of {it} were left while {its} only site was held out. "
        f"{its.capitalize()} {counted(n, 'sample')} {agree(n, 'counts', 'count')} as misclassified above"
        + ("." if without is None else f"; without {it}, expect {100 * without:.0f}% accuracy.")
        + f" The final model learns {it} from that site only; samples from a second site would help."
    )
