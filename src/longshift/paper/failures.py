"""Figs. 8 and 9: how long tails that run against each other mislead alignment, and how small domains are absorbed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from longshift.analysis import DomainOutputs
from longshift.array_types import FloatArray
from longshift.metrics import probabilities
from longshift.paper.recipe import Impossible, Output, Picture, Recipe, Results, caption
from longshift.paper.workspace import Workspace
from longshift.report import method_title
from longshift.sweep import Job
from longshift.text import counted

if TYPE_CHECKING:
    from longshift.report import Absorption, Misalignment  # matplotlib takes a second to import

Totals = Mapping[str, Mapping[str, int]]
Counts = dict[str, dict[str, int]]

PAPER_RATIO = 400
PAPER_SIZES = (100, 20, 4)  # samples per class of the major, medium and minority domain
PAPER_LEVEL = 10
LEFT = 1  # sample per class that a split keeps for the in-distribution test
GRID = np.linspace(0.0, 1.0, 101)
ROLES = ("major", "medium", "minority")
CURVE_POINTS = 20


def toy_rows(*methods: str) -> dict[str, tuple[str, bool]]:
    """Label -> method, and whether on balanced counts: ERM on these, then each method on the imbalanced ones."""
    return {"ERM (balanced)": ("erm", True), **{method_title(name): (name, False) for name in methods}}


ALIGNED = toy_rows("erm", "mmd", "rdm", "tcri")
ABSORBED = toy_rows("erm", "tcri")


def toy_recipe(
    name: str, label: str, title: str, rows: Mapping[str, tuple[str, bool]], counts_name: str,
    find: Callable[[Totals, Sequence[str]], Mirrored | Absorbed], make: Callable[[Results], Sequence[Output]],
) -> Recipe:  # fmt: skip
    """One run per row, on the last domain as target, as sketch is in PACS; no run where the data lack the counts."""

    def jobs(workspace: Workspace) -> list[Job]:
        *sources, target = workspace.manifest.domain_names
        try:
            counts = find(workspace.totals, sources)
        except Impossible:
            return []
        files = {
            False: workspace.counts_file(counts_name, counts.uneven, counts.validation),
            True: workspace.counts_file(f"{counts_name}-balanced", counts.level, counts.validation),
        }
        every = max(1, workspace.scale.steps // CURVE_POINTS)
        return [
            workspace.job(method, files[balanced], target, label=row, eval_every=every)
            for row, (method, balanced) in rows.items()
            if method in workspace.methods
        ]

    return Recipe(name, label, title, "figure", jobs, make, predictions=True)


def _found(results: Results, rows: Mapping[str, tuple[str, bool]]) -> dict[str, str]:
    chosen = results.chosen.dropna(subset="fingerprint").drop_duplicates("method").set_index("method")["fingerprint"]
    return {label: str(chosen[label]) for label in rows if label in chosen}


# -- training counts, scaled to what a dataset has -----------------------------------------------------------------


def study_validation(totals: Totals, sources: Sequence[str], most: int) -> int:
    """A third of the smallest class of the sources, up to `most`: these studies look at the validation set itself."""
    smallest = min(totals[source][name] for source in sources for name in _shared(totals, sources))
    return max(1, min(most, smallest // 3))


@dataclass(frozen=True)
class Mirrored:
    """Two domains whose long tails run against each other, and the same numbers spread evenly."""

    first: str
    second: str
    classes: tuple[str, ...]  # from the first domain's largest to the second's
    ratio: float
    uneven: Counts
    level: Counts
    validation: int


def mirrored_counts(totals: Totals, sources: Sequence[str]) -> Mirrored:
    """The first domain falls geometrically from its largest class to 1 / ratio of it, the second rises alike.

    The two leading classes are those that can give most. The ratio is that of the paper or, where they give less, their
    number of samples, so that the smallest class keeps one.
    """
    first, second = sources[:2]
    names = _shared(totals, (first, second))
    validation = study_validation(totals, (first, second), 20)
    room = {d: {k: totals[d][k] - validation - LEFT for k in names} for d in (first, second)}
    # From the class of which the first domain has most, next to the second, to the other way round.
    order = sorted(names, key=lambda k: (room[second][k] - room[first][k], k))
    pairs = ((a, b) for a in order for b in reversed(order) if a != b)
    leader, last = max(pairs, key=lambda pair: min(room[first][pair[0]], room[second][pair[1]]))
    head = min(room[first][leader], room[second][last])
    order = [leader, *(k for k in order if k not in (leader, last)), last]
    if head < 2:
        raise Impossible(f"no long tail is possible: the largest class of {first} or {second} can give {head} samples")
    ratio = min(float(PAPER_RATIO), float(head))
    steps = [head * ratio ** (-i / (len(order) - 1)) for i in range(len(order))]
    tail = {
        first: {k: _fit(n, room[first][k]) for k, n in zip(order, steps, strict=True)},
        second: {k: _fit(n, room[second][k]) for k, n in zip(order, reversed(steps), strict=True)},
    }
    level: Counts = {}
    for domain in (first, second):
        mean = sum(tail[domain].values()) / len(order)
        level[domain] = {k: _fit(mean, room[domain][k]) for k in order}
    return Mirrored(first, second, tuple(order), ratio, tail, level, validation)


@dataclass(frozen=True)
class Absorbed:
    """Three domains of very different size, balanced in themselves, and the same domains all small."""

    sources: tuple[str, str, str]  # major, medium, minority
    sizes: tuple[int, int, int]
    level_size: int
    uneven: Counts
    level: Counts
    validation: int


def absorbed_counts(totals: Totals, sources: Sequence[str]) -> Absorbed:
    """100, 20 and 4 samples per class against 10, 10 and 10; scaled down alike where the largest domain holds less."""
    if len(sources) < 3:
        raise Impossible(f"it needs 3 source domains, a major, a medium and a minority one; found {len(sources)}")
    names = _shared(totals, sources)
    validation = study_validation(totals, sources, 10)
    room = {d: min(totals[d][k] for k in names) - validation - LEFT for d in sources}
    major, medium, minority = sorted(sources, key=lambda d: -room[d])[:3]
    scale = min(1.0, room[major] / PAPER_SIZES[0])
    chosen = (major, medium, minority)
    sizes = tuple(_fit(scale * size, room[d]) for d, size in zip(chosen, PAPER_SIZES, strict=True))
    level = min(_fit(scale * PAPER_LEVEL, room[d]) for d in chosen)
    if sizes[0] <= sizes[2]:
        raise Impossible(f"the domains cannot be made unequal: {major} can give {sizes[0]} samples per class")
    return Absorbed(
        chosen, (sizes[0], sizes[1], sizes[2]), level,
        {d: dict.fromkeys(names, size) for d, size in zip(chosen, sizes, strict=True)},
        {d: dict.fromkeys(names, level) for d in chosen},
        validation,
    )  # fmt: skip


def _shared(totals: Totals, sources: Sequence[str]) -> list[str]:
    """Classes that all the domains have enough of: one sample to train on, one to validate and one to test with."""
    names = dict.fromkeys(name for row in totals.values() for name in row)
    found = [name for name in names if all(totals[source].get(name, 0) >= 3 for source in sources)]
    if len(found) < 2:
        shared = counted(len(found), "class", "classes")
        raise Impossible(f"{' and '.join(sources)} share {shared} with 3 samples or more; 2 are needed")
    return found


def _fit(wanted: float, room: int) -> int:
    return max(1, min(round(wanted), room))


# -- long tails that run against each other ------------------------------------------------------------------------


def class_rates(domain: DomainOutputs, order: Sequence[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One-against-rest ROC of each class at common false positive rates, and its area; NaN without both kinds."""
    from sklearn.metrics import auc, roc_curve  # takes a second: `--list` does not need it

    p = probabilities(domain.logits, domain.name)
    curves, areas = np.full((len(order), len(GRID)), np.nan), np.full(len(order), np.nan)
    for row, k in enumerate(order):
        truth = domain.labels == k
        if truth.any() and not truth.all():
            x, y, _ = roc_curve(truth, p[:, k])
            curves[row], areas[row] = np.interp(GRID, x, y), auc(x, y)
            curves[row, 0] = 0.0
    return GRID, curves, areas


def misalignment(results: Results, fingerprint: str, counts: Mirrored) -> Misalignment:
    """ROC, centroid distances and Wasserstein distances on the balanced validation set."""
    from longshift.analysis import centroid_distances, wasserstein
    from longshift.report import Misalignment

    sources, _ = results.outputs(fingerprint, parts=("validation",))
    named = {domain.name: domain for domain in sources}
    pair = [named[counts.first], named[counts.second]]
    classes = results.workspace.manifest.classes
    order = [classes.index(name) for name in counts.classes]
    heads = [d.features()[d.labels == k] for d, k in zip(pair, (order[0], order[-1]), strict=True)]
    return Misalignment(
        {d.name: class_rates(d, order) for d in pair},
        {d.name: centroid_distances(d.features(), d.labels, len(classes))[order] for d in pair},
        wasserstein(pair[0].features(), pair[1].features()),
        wasserstein(heads[0], heads[1]),
    )


def _misaligned(results: Results) -> list[Output]:
    from longshift.report import misalignment_panels

    counts = mirrored_counts(results.workspace.totals, results.workspace.manifest.domain_names[:-1])
    rows = {label: misalignment(results, run, counts) for label, run in _found(results, ALIGNED).items()}
    samples = {label: counts.level if balanced else counts.uneven for label, (_, balanced) in ALIGNED.items()}
    table = [
        {
            "method": label, "domain": domain, "class": name, "training_samples": samples[label][domain][name],
            "auc": row.rates[domain][2][k], "centroid_distance": row.centroids[domain][k],
            "distance_of_domains": row.between_domains, "distance_of_largest_classes": row.between_heads,
        }
        for label, row in rows.items()
        for domain in row.rates
        for k, name in enumerate(counts.classes)
    ]  # fmt: skip
    heading = f"Long tails that run against each other ({counts.ratio:g}:1), {results.workspace.name}"
    drawing = misalignment_panels(rows, counts.classes, heading)
    text = caption("failure-misaligned", results.missing, counts=counts, paper_ratio=PAPER_RATIO)
    return [Picture("failure-misaligned", heading, drawing, text, pd.DataFrame(table))]


# -- small domains among large ones --------------------------------------------------------------------------------


def absorption(results: Results, fingerprint: str, counts: Absorbed) -> Absorption:
    """Validation loss of each source while training; distances between domains for the selected weights."""
    from longshift.analysis import prior_discrepancy
    from longshift.report import Absorption

    metrics = results.metrics(fingerprint)
    losses = {s: [float(row["validation"]["nll_per_domain"][s]) for row in metrics] for s in counts.sources}
    sources, target = results.outputs(fingerprint)
    ordered = sorted(sources, key=lambda d: counts.sources.index(d.name))
    found = prior_discrepancy(ordered, target)
    return Absorption([int(row["step"]) for row in metrics], losses, found.names, found.distances)


def _absorbing(results: Results) -> list[Output]:
    from longshift.report import absorption_panels

    counts = absorbed_counts(results.workspace.totals, results.workspace.manifest.domain_names[:-1])
    rows = {label: absorption(results, run, counts) for label, run in _found(results, ABSORBED).items()}
    table = [
        {"method": label, "what": "validation loss", "from": source, "to": "", "step": step, "value": value}
        for label, row in rows.items()
        for source, losses in row.losses.items()
        for step, value in zip(row.steps, losses, strict=True)
    ] + [
        {"method": label, "what": "distance", "from": a, "to": b, "step": "", "value": row.distances[i, j]}
        for label, row in rows.items()
        for i, a in enumerate(row.names)
        for j, b in enumerate(row.names)
        if i < j
    ]
    sizes = "/".join(map(str, counts.sizes))
    heading = f"Small domains among large ones ({sizes} samples per class), {results.workspace.name}"
    drawing = absorption_panels(rows, dict(zip(counts.sources, ROLES, strict=True)), heading)
    text = caption(
        "failure-absorbed", results.missing, counts=counts, paper_sizes=PAPER_SIZES, paper_level=PAPER_LEVEL
    )  # fmt: skip
    return [Picture("failure-absorbed", heading, drawing, text, pd.DataFrame(table))]


RECIPES = (
    toy_recipe(
        "failure-misaligned", "Fig. 8", "failure mode: long tails that run against each other", ALIGNED, "mirrored",
        mirrored_counts, _misaligned,
    ),
    toy_recipe(
        "failure-absorbed", "Fig. 9", "failure mode: small domains absorbed by large ones", ABSORBED, "absorbed",
        absorbed_counts, _absorbing,
    ),
)  # fmt: skip
