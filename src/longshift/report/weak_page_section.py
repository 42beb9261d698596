"""The classes and domains with the lowest accuracy, each with misclassified images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from scipy import stats

from longshift.data import Manifest, holds_vectors
from longshift.errors import LongshiftError
from longshift.inference import LEVEL
from longshift.report.html_page import Section, fold, fragment, join_html, paragraphs
from longshift.report.misclassified import Misclassified, load_manifest, misclassified_samples, pictures
from longshift.report.run_records import Record, class_accuracy, sum_confusion
from longshift.report.weak_rule import BEHIND, LOW, share_interval, weak_below, weak_indices
from longshift.text import agree, counted

CLASSES, DOMAINS, PICTURES, PLACES = 3, 2, 8, 4
CLEARLY = 0.05  # p of the test whether a class is weaker at one place than at the others
Place = tuple[str, int, int]  # target, right, samples
ENOUGH = 20  # training samples of a class; with fewer, more of them would help in any case
LEARNED = 0.6  # accuracy at known domains; below it, a network without pretrained weights is blamed before the data


@dataclass(frozen=True)
class Weak:
    """A class or domain with a low accuracy: its title on the page, its accuracy and what to say about it."""

    name: str
    accuracy: float | None  # None: not measured
    text: str
    title: str = ""


def weak_section(
    records: Sequence[Record],
    data: str | None = None,
    name: str = "",
    noun: str = "domain",
    most: int = CLASSES,
    advise: bool = False,
) -> Section:
    """The classes and domains with the lowest accuracy of one method.

    `data` says where the images are now, `noun` what a domain is; `advise` adds what its owner could do.
    """
    manifest, samples, why = _samples(records, data)
    parts: list[Markup] = []
    for of_class, found in (
        (True, weak_classes(records, most, noun, advise)),
        (False, weak_domains(records, noun, advise)),
    ):
        for weak in found:
            own = [s for s in samples if (s.true if of_class else s.domain) == weak.name]
            parts.append(_part(weak, own, manifest))
    if why:
        parts.append(paragraphs(why))
    weak_ones = len(weak_indices(learned_accuracy(records)))
    intro = (
        f"Where {records[0].title} has the lowest accuracy on unseen {noun}s. A class is called weak, and a {noun} "
        f"hard, below {100 * LOW:.0f}% or {100 * BEHIND:.0f} points below the mean. If there are too few "
        "samples to tell, the text says so."
    )
    if advise and needs_weights(records):
        intro += (
            " No pretrained weights were used. Try --weights FILE.safetensors first. Accuracy is low even on other "
            f"samples of the training {noun}s, so there is no advice on the data here."
        )
    if weak_ones > most:
        intro += f" {weak_ones} classes are weak; the lowest {most} {agree(most, 'is', 'are')} shown."
    if samples:
        intro += (
            " The most confident mistakes come first; confidence is calibrated, as in the output of longshift predict."
        )
    return Section(f"Lowest-scoring classes and {noun}s", join_html(*parts), intro, name, wide=True)


def weak_classes(
    records: Sequence[Record], most: int = CLASSES, noun: str = "domain", advise: bool = False
) -> list[Weak]:
    """Classes that score low on the target (or, if none does, the lowest one): how low, how sure that is, and where.

    Classes that no run could learn, because none of its training samples was of them, come first.
    """
    classes, confusion = records[0].classes, sum_confusion(records)
    accuracy, trained = learned_accuracy(records), _trained(records)
    never = [k for k, value in enumerate(accuracy) if value is None and confusion[k].sum()]
    known = [value for value in accuracy if value is not None]
    weak = weak_indices(accuracy)
    lowest = [k for k, value in enumerate(accuracy) if known and value == min(known) < max(known)][:1]
    usual = float(np.median(trained.mean(axis=0)))
    trials, blame_data = _trials(records), advise and not needs_weights(records)
    found = [_never_learned(classes[k], int(confusion[k].sum()), noun, advise) for k in never[:most]]
    for k in (weak or lowest)[:most]:
        n, right = int(confusion[k].sum()), int(confusion[k, k])
        counts = float(trained[:, k].mean())
        sites, wrong = _by_target(records, k), confusion[k].copy()
        said = f"{right} of {counted(n, 'sample')} right"
        if trials == 1:
            said += f" ({_interval(right / n, n)})"
        if len(sites) > 1:
            said += f". By {noun}: {', '.join(f'{name} {r} of {m}' for name, r, m in sites[:PLACES])}"
        said += f". A run has {counts:.0f} training samples of it on average, and {usual:.0f} of the median class."
        wrong[k] = 0
        taken = [int(j) for j in np.argsort(-wrong, kind="stable")[:3] if wrong[j]]
        if taken:
            others = ", ".join(f"{classes[j]} ({100 * wrong[j] / n:.0f}%)" for j in taken)
            said += f" Most often misclassified as {others}."
        unsure = bool(weak) and _within_noise(right / n, n / trials, known)
        at = low_place(sites, trials)
        if unsure:
            said += f" It may not be weak: {_too_few(round(n / trials))}."
            if at:
                said += f" At {at[0]}, it is clearly weaker than at the other {noun}s."
        if blame_data and weak:
            few = counts < ENOUGH
            # A shortage that the other classes share does not explain why this one is weak.
            rare = counts < usual and (few or counts < usual / 2)
            if at:
                said += " " + _place_advice(classes[k], at, sites, rare, noun)
            elif unsure:
                said += " Label more samples of it to find out."
            else:
                said += " " + _class_advice(classes[k], rare, few, classes[taken[0]], noun)
        found.append(Weak(classes[k], right / n, said, "Low-scoring class" if weak else "Lowest class, not weak"))
    return found


def needs_weights(records: Sequence[Record]) -> bool:
    """Whether no run had pretrained weights and the accuracy is low even on other samples of the training domains.

    In that case the network is to blame before the data. Without such samples, validation samples count.
    """
    runs = [record.result["run"] for record in records]
    if any(run.get("weights") or run.get("pretrained") or holds_vectors(str(run["data"])) for run in runs):
        return False
    found = [record.chosen.get("test") or record.chosen.get("validation") or {} for record in records]
    known = [float(part["accuracy"]) for part in found if "accuracy" in part]
    return bool(known) and float(np.mean(known)) < LEARNED


def _too_few(n: int) -> str:
    return f"{counted(n, 'sample')} {agree(n, 'is', 'are')} too few to tell"


def _trials(records: Sequence[Record]) -> float:
    """How many runs have the same target: the same samples in several runs say no more than once."""
    return len(records) / len({record.target for record in records})


def _within_noise(share: float, n: float, known: Sequence[float]) -> bool:
    """Whether n samples cannot show that a share is low among the known ones."""
    return share_interval(share, n)[1] >= weak_below(known)


def _trained(records: Sequence[Record]) -> npt.NDArray[np.int64]:
    """Training samples of each class in each run."""
    return np.array([np.asarray(r.result["split"]["counts"]).sum(axis=0) for r in records])


def learned_accuracy(records: Sequence[Record]) -> list[float | None]:
    """Accuracy of each class, None where no run that was measured on it had a sample of it to learn from."""
    tables = np.array([r.chosen["target"]["confusion"] for r in records])
    measured = (tables.sum(axis=2) * (_trained(records) > 0)).sum(axis=0)
    return [value if n else None for value, n in zip(class_accuracy(records), measured, strict=True)]


def _interval(share: float, n: int) -> str:
    low, high = share_interval(share, n)
    return f"{100 * LEVEL:.0f}% interval {100 * low:.0f} to {100 * high:.0f}%, from the sample size alone"


def _never_learned(name: str, n: int, noun: str, advise: bool) -> Weak:
    said = (
        f"While the {noun} with this class was unseen, there was no sample of it to train on, and its "
        f"{counted(n, 'sample')} {agree(n, 'counts', 'count')} as wrong. This says nothing about a model trained "
        f"on all {noun}s."
    )
    if advise:
        said += f" What to do: collect samples of {name} to train on at a second {noun}; only then can it be measured."
    return Weak(name, None, said, "Class that could not be learned")


def _by_target(records: Sequence[Record], k: int) -> list[Place]:
    """A class at each target, the lowest share first; runs of one target together."""
    targets = {record.target for record in records}
    rows = {name: sum_confusion([r for r in records if r.target == name])[k] for name in targets}
    found = [(name, int(row[k]), int(row.sum())) for name, row in rows.items() if row.sum()]
    return sorted(found, key=lambda row: (row[1] / row[2], row[0]))


def low_place(places: Sequence[Place], trials: float = 1) -> Place | None:
    """Where a class is clearly weaker than at the other places together, by Fisher's exact test; None if nowhere.

    The lowest p counts, times the number of places, because the place is not chosen in advance (Bonferroni).
    `trials` of a place repeat the same samples, so their counts are divided by it.

    >>> low_place([("sketch", 0, 20), ("art", 5, 20), ("photo", 18, 20)])
    ('sketch', 0, 20)
    >>> low_place([("art", 9, 20), ("photo", 11, 20)])
    """
    if len(places) < 2:
        return None
    right, samples = sum(r for _, r, _ in places), sum(n for _, _, n in places)

    def p_value(place: Place) -> float:
        _, r, n = place
        cells = [[r, n - r], [right - r, samples - n - (right - r)]]
        return float(stats.fisher_exact(np.rint(np.array(cells) / trials).astype(int), "less").pvalue)

    p, lowest = min(((p_value(place), place) for place in places), key=lambda found: found[0])
    return lowest if p * len(places) < CLEARLY else None


def _place_advice(name: str, at: Place, places: Sequence[Place], rare: bool, noun: str) -> str:
    """What the owner of the data could do about a class that is weak at one place above all."""
    place, right, there = at
    missed, all_missed = there - right, sum(m - r for _, r, m in places)
    much = "All" if missed == all_missed else "Most" if missed > all_missed / 2 else f"{missed} of {all_missed}"
    act = (
        f"{much} mistakes are at {place}, where {right} of {counted(there, 'sample')} {agree(right, 'is', 'are')} "
        f"right. What to do: compare the samples and labels of {name} at {place} with those at other {noun}s; then add "
        f"{noun}s like it."
    )
    return act + (f" It is also rare: collect more samples of it, from more than one {noun}." if rare else "")


def _class_advice(name: str, rare: bool, few: bool, taken: str, noun: str) -> str:
    """What the owner of the data could do about a class that is weak everywhere."""
    if rare:
        return (
            f"What to do: there is little to learn it from, so collect more samples of it, from more than one {noun}."
        )
    why = "it is not rare, so more of the same will hardly help"
    if few:
        why = "most classes have no more samples, so their number alone does not explain it"
    return (
        f"What to do: {why}; check whether {name} looks like {taken}, as which it is most often misclassified, and "
        f"whether the two are labeled consistently at all {noun}s."
    )


def weak_domains(records: Sequence[Record], noun: str = "domain", advise: bool = False) -> list[Weak]:
    """The targets that score low (if none does, the lowest one): how much is right there, what is lowest there."""
    targets: dict[str, list[Record]] = {}
    for record in records:
        targets.setdefault(record.target, []).append(record)
    names = list(targets)
    shares = [float(np.mean([r.chosen["target"]["accuracy"] for r in targets[name]])) for name in names]
    hard = weak_indices(shares)[:DOMAINS]
    lowest = [k for k, value in enumerate(shares) if value == min(shares) < max(shares)][:1]
    only = [0] if len(names) == 1 else []
    blame_data = advise and not needs_weights(records)
    title = f"The only unseen {noun}" if only else f"Low-scoring {noun}" if hard else f"Lowest {noun}, not hard"
    found = []
    for k in only or hard or lowest:
        runs = targets[names[k]]
        text, n = _domain_text(runs, noun), round(int(sum_confusion(runs).sum()) / len(runs))
        if hard and _within_noise(shares[k], n, shares):
            text += f" It may not be hard: {_too_few(n)}."
        elif hard and blame_data:
            text += _domain_advice(names[k], noun)
        found.append(Weak(names[k], shares[k], text, title))
    return found


def _domain_advice(target: str, noun: str) -> str:
    return (
        f" What to do: find out what is different at {target} (device, preparation, labels); a new {noun} like it will "
        "have similar accuracy unless you add a few labeled samples from it."
    )


def _domain_text(runs: Sequence[Record], noun: str) -> str:
    confusion = sum_confusion(runs)
    n, right = int(confusion.sum()), int(np.trace(confusion))
    if len(runs) == 1:
        much = f"{right} of {counted(n, 'sample')} correct when held out"
        much += f" ({_interval(right / n, n)})."
    else:
        much = f"Percent of its samples correct when held out, mean of {counted(len(runs), 'run')}."
    rows = [(int(row[k]), int(row.sum()), runs[0].classes[k]) for k, row in enumerate(confusion) if row.sum()]
    missed = sorted((row for row in rows if row[0] < row[1]), key=lambda row: (row[0] - row[1], row[2]))
    if missed:
        much += f" Most mistakes: {', '.join(f'{name} ({r} of {m} right)' for r, m, name in missed[:3])}."
    tests = [r.chosen["test"] for r in runs if r.chosen.get("test")]
    if tests:
        names = [t["worst_domain_name"] for t in tests]
        worst = max(set(names), key=lambda n: (names.count(n), str(n)))
        held = float(np.mean([t["worst_domain"] for t in tests]))
        much += f" Among the training {noun}s, {worst} is the lowest ({100 * held:.1f}% on held-out samples)."
    return much


def _samples(records: Sequence[Record], data: str | None) -> tuple[Manifest | None, list[Misclassified], str]:
    """The dataset and the misclassified samples of the first trial of each target (trials would repeat them).

    Or no dataset, and why there are no samples.
    """
    first = {record.target: record for record in sorted(records, key=lambda r: -r.trial)}
    with_predictions = [r for r in first.values() if r.predictions() is not None]
    if not with_predictions:
        return None, [], "No examples: the runs kept no predictions (train with --save-predictions)."
    try:
        manifest = load_manifest(data or str(records[0].result["run"]["data"]))
        samples = [s for r in with_predictions for s in misclassified_samples(r, manifest)]
    except LongshiftError as error:
        return None, [], f"No examples: {error}."
    return manifest, sorted(samples, key=lambda s: -s.confidence), ""


def _part(weak: Weak, samples: Sequence[Misclassified], manifest: Manifest | None) -> Markup:
    title = f"{weak.title}: {weak.name}" + ("" if weak.accuracy is None else f" ({100 * weak.accuracy:.1f}%)")
    body = paragraphs(weak.text)
    if samples and manifest is not None:
        shown = pictures(_varied(samples), manifest)
        body = join_html(body, fragment("misclassified.html.j2", pictures=shown))
    elif manifest is not None:
        body = join_html(
            body, paragraphs("No examples: no sample of it was misclassified in the runs with predictions.")
        )
    return fold(title, body, opened=True)


def _varied(samples: Sequence[Misclassified]) -> list[Misclassified]:
    """The surest mistakes, but not eight times the same: each pair of classes twice at most while others remain."""
    seen: dict[tuple[str, str], int] = {}
    first: list[Misclassified] = []
    rest: list[Misclassified] = []
    for sample in samples:
        pair = (sample.true, sample.predicted)
        seen[pair] = seen.get(pair, 0) + 1
        (first if seen[pair] <= 2 else rest).append(sample)
    return [*first, *rest][:PICTURES]
