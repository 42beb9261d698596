"""The outcome of a fit: numbers for programs, sentences for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longshift.fitting.data_summary import Look
from longshift.fitting.plan import Plan
from longshift.fitting.site_scores import (
    MOST,
    ClassScore,
    Estimate,
    SiteScore,
    accuracy_without,
    class_scores,
    expect,
    verdict,
    weak_classes,
)
from longshift.inference import Unseen
from longshift.methods import get_method
from longshift.text import counted, some


@dataclass(frozen=True)
class Summary:
    """What to expect of the final model at a site it has not seen."""

    title: str  # of the method
    scores: Mapping[str, Sequence[SiteScore]]  # by model: "NDCL", "NDCL + EMA", "ERM"
    accuracy: Estimate
    balanced: Estimate
    classes: Sequence[ClassScore]  # weakest first
    weak: Sequence[ClassScore]
    verdict: str
    sentences: Sequence[str]
    unseen: Mapping[str, Unseen]  # by weights, "selected" and "averaged": what the model's files keep

    @property
    def warning(self) -> str:
        """Why the model must not be used; "" if nothing speaks against it."""
        return self.unseen["selected"].warning()

    @property
    def own(self) -> Sequence[SiteScore]:
        """The scores of the method itself."""
        return self.scores[self.title]

    @property
    def worst_site(self) -> SiteScore:
        """The site that was hardest while unseen."""
        return min(self.own, key=lambda score: score.accuracy)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "method": self.title,
            "expected_accuracy": asdict(self.accuracy),
            "expected_balanced_accuracy": asdict(self.balanced),
            "sites": {name: [asdict(score) for score in rows] for name, rows in self.scores.items()},
            "classes": [asdict(score) for score in self.classes],
            "weak_classes": [score.name for score in self.weak],
            "worst_site": self.worst_site.site,
            "verdict": self.verdict,
            "warning": self.warning,
            "sentences": list(self.sentences),
        }


def summarise(look: Look, plan: Plan, scores: Mapping[str, Sequence[SiteScore]], final: Mapping[str, Any]) -> Summary:
    """Numbers and sentences from the scores at held-out sites and the result of the final model."""
    title = get_method(plan.method).info.title
    own = scores[title]
    n = sum(score.n for score in own)
    accuracy, balanced = expect([s.accuracy for s in own], n), expect([s.balanced for s in own], n)
    classes = class_scores(look.classes, own, look.alone())
    weak = weak_classes(classes)
    said = [
        f"At a site it has not seen, expect {title} to be right {accuracy.words()}; "
        f"averaged over classes, {balanced.words()}."
    ]
    unseen = {"selected": Unseen(balanced.mean, len(own), len(look.classes))}
    warning = unseen["selected"].warning()
    if warning:
        start = "" if look.noun == "vectors" else ", a pretrained backbone (--weights)"
        said.append(f"{warning} More {look.noun} of more sites{start} or more steps (--steps) may help.")
    if len(own) == 1:
        said.append("With one held-out site the interval does not know how much sites differ; hold out each for that.")
    else:
        said.append(hardest(own))
    seen = [score.seen for score in own if score.seen is not None]
    if seen:
        gap = sum(seen) / len(seen) - accuracy.mean
        if gap > 0.05:
            said.append(cost_of_a_new_site(own, gap + accuracy.mean, gap))
    alone = [score for score in classes if score.alone]
    if alone:
        said.append(unlearnt(alone, accuracy_without(look.classes, own, {score.name for score in alone})))
    if weak:
        said.append(name_weak(weak))
    else:
        said.append(f"No {'other ' * bool(alone)}class stands out as weak.")
    judgement = verdict(title, {name: rows for name, rows in scores.items() if " + " not in name})
    if judgement:
        said.append(judgement)
    averaged = next((name for name in scores if name.startswith(f"{title} + ")), None)
    if averaged:
        with_average = expect([s.balanced for s in scores[averaged]], n).mean
        unseen["averaged"] = Unseen(with_average, len(own), len(look.classes))
        gain = with_average - balanced.mean
        said.append(
            f"With averaged weights ({averaged}) the accuracy averaged over classes changes by {100 * gain:+.1f} points"
            + ("; use them with --averaged." if gain > 0 else ".")
        )
    validation = final["selected"]["validation"]["accuracy"]
    said.append(
        f"The final model is another one, trained on {_all(len(look.sites))} sites. It is right "
        f"{100 * validation:.0f} % on validation samples of these same sites, by which its weights were chosen; that "
        "says nothing of a new site."
    )
    return Summary(title, scores, accuracy, balanced, classes, weak, judgement, said, unseen)


def cost_of_a_new_site(own: Sequence[SiteScore], seen: float, gap: float) -> str:
    """How the models with a site held out do at the sites they know; not to be taken for the final model."""
    if len(own) == 1:
        which = f"The model of this estimate was trained without {own[0].site}. It is"
    else:
        which = "The models of this estimate were each trained without the site they were measured at. They are"
    return (
        f"{which} right {100 * seen:.0f} % on further samples of the sites trained on: a new site costs about "
        f"{100 * gap:.0f} points. Samples of the new site would help most."
    )


def _all(number: int) -> str:
    return "both" if number == 2 else f"all {number}"


def name_weak(weak: Sequence[ClassScore]) -> str:
    """The weakest classes, and how many more there are."""
    listed = "; ".join(f"{score.name}, {score.words()}" for score in weak[:MOST])
    more = f"; and {len(weak) - MOST} more" if len(weak) > MOST else ""
    return f"Weak class{'es' * (len(weak) > 1)}, all held-out sites together: {listed}{more}."


def hardest(own: Sequence[SiteScore]) -> str:
    """Which site had the lowest accuracy, if one had."""
    worst = min(own, key=lambda score: score.accuracy)
    share = f"{100 * worst.accuracy:.0f} % while unseen"
    if all(score.accuracy == worst.accuracy for score in own):
        return f"No site was harder than the others: {share}."
    return f"The hardest site was {worst.site}, with {share}."


def unlearnt(alone: Sequence[ClassScore], without: float | None) -> str:
    """What a class that only one site has does to the estimate."""
    listed = some([f"{score.name} (only at {score.alone})" for score in alone], MOST)
    n, one = sum(score.n for score in alone), len(alone) == 1
    its, it = ("its", "it") if one else ("their", "them")
    return (
        f"Nothing can be said of {listed}: while {its} only site was held out, nothing was left to learn {it} from. "
        f"{counted(n, 'sample')} of {it} {'counts' if n == 1 else 'count'} as wrong above"
        + ("." if without is None else f"; without, expect {100 * without:.0f} % right.")
        + f" The final model knows {it} from that site alone; samples from a second site would help most here."
    )
