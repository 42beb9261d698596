"""What the demonstration found, in words: which classes a method rescues, by how much, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from longshift.analysis import rank_table
from longshift.report import ClassChange, Record, class_accuracy, in_words, method_title
from longshift.results import averages, per_target
from longshift.text import decimal

BASELINE = "erm"
NAMED = 3  # classes in the sentence
RESCUED = 5.0  # points that a class must gain to be named
CHANGED = 0.05  # points; a smaller change would be shown as 0.0

Pair = tuple[float, float]  # percent with the baseline, percent with the method


@dataclass(frozen=True)
class Rescue:
    """ERM against the best other method: percent at unseen domains, mean over settings, targets and trials.

    Attributes:
        method: The other method with the best average rank, which is the one that the report's summary puts first.
        few: Accuracy of the classes with few training samples.
        many: Accuracy of the classes with many.
        all: Accuracy over all samples.
        classes: Each class over all runs.
        ranks: Average rank of every method over the cases (setting, target), best first; 1 is the best.
    """

    method: str
    few: Pair
    many: Pair
    all: Pair
    classes: Sequence[ClassChange]
    ranks: Mapping[str, float] = field(default_factory=dict)

    def sentence(self) -> str:
        """The finding in one sentence, whichever way it went."""
        first, other = method_title(BASELINE), method_title(self.method)
        gain = self.few[1] - self.few[0]
        named = sorted((c for c in self.classes if c.gain >= RESCUED), key=lambda c: -c.gain)[:NAMED]
        listed = in_words([f"{c.name} ({100 * c.before:.0f} → {100 * c.after:.0f}%)" for c in named])
        rescued = f", and rescues above all {listed}" if named and gain > 0 else ""
        loss = self.many[0] - self.many[1]
        price = f"the price is {loss:.1f} points on" if loss >= CHANGED else "there is no price to pay on"
        return (
            f"In domains that were not in the training data, ordinary training ({first}) recognizes "
            f"{self.few[0]:.0f}% of the images of rare classes; {other} recognizes {self.few[1]:.0f}% "
            f"({decimal(gain, signed=True)} points){rescued}; "
            f"{price} frequent classes ({self.many[0]:.0f} → {self.many[1]:.0f}%), and over all images accuracy "
            f"{_moved(self.all)}."
        )


def find_rescue(chosen: pd.DataFrame, records: Sequence[Record]) -> Rescue:
    """Compare ERM with the other method that ranks best at unseen domains; `records` are the runs of all methods."""
    means = averages(chosen).groupby("method", observed=True)[["target_accuracy", "target_few", "target_many"]].mean()
    ranks = average_ranks(chosen)
    method = next(name for name in ranks if name != BASELINE)

    def pair(measure: str) -> Pair:
        before, after = (100 * float(means[measure][name]) for name in (BASELINE, method))
        return before, after

    changes = changed_classes(records, method)
    return Rescue(method, pair("target_few"), pair("target_many"), pair("target_accuracy"), changes, ranks)


def average_ranks(chosen: pd.DataFrame) -> dict[str, float]:
    """The average rank of each method, best first; of equal ranks, the higher mean first, as in the report."""
    # Without gaps these are the ranks of the report: the sweep stops with an error if a run fails.
    single = per_target(chosen, ["target_accuracy"]).set_index(["setting", "target", "method"])["target_accuracy"]
    scores = single.unstack("method")
    ranks, means = rank_table(scores).mean(), scores.mean()
    return {name: float(ranks[name]) for name in sorted(map(str, ranks.index), key=lambda m: (ranks[m], -means[m]))}


def changed_classes(records: Sequence[Record], method: str) -> list[ClassChange]:
    """The accuracy of each class with the baseline and with a method, over the samples of all runs."""
    runs = {name: [record for record in records if record.method == name] for name in (BASELINE, method)}
    before, after = (class_accuracy(some) for some in runs.values())
    counts = np.mean([np.asarray(r.result["split"]["counts"]).sum(axis=0) for r in runs[method]], axis=0)
    return [
        ClassChange(name, round(n), first, second)
        for name, n, first, second in zip(runs[method][0].classes, counts.tolist(), before, after, strict=True)
        if first is not None and second is not None
    ]


def method_scores(chosen: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Percent on rare classes and on all samples, by method, best on all samples first."""
    means = averages(chosen).groupby("method", observed=True)[["target_few", "target_accuracy"]].mean()
    ordered = means.sort_values("target_accuracy", ascending=False)
    return {
        str(name): (100 * float(row["target_few"]), 100 * float(row["target_accuracy"]))
        for name, row in ordered.iterrows()
    }


def _moved(pair: Pair) -> str:
    """In words: "rises from 47.0% to 55.0%"."""
    if abs(pair[1] - pair[0]) < CHANGED:
        return f"stays at {pair[1]:.1f}%"
    return f"{'rises' if pair[1] > pair[0] else 'falls'} from {pair[0]:.1f}% to {pair[1]:.1f}%"
