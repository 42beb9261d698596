"""What the held-out sites of a fit teach about new sites, from the kept predictions of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longshift.array_types import FloatArray
from longshift.fitting.data_summary import DataSummary
from longshift.fitting.plan import FitJob
from longshift.inference import (
    HeldOutLogits,
    HeldOutSite,
    SiteAdaptation,
    SiteKnowledge,
    choose_adaptation,
    choose_sure,
    class_means,
    class_precision,
    largest_shares,
    make_reference,
    read_signals,
    site_offset,
)
from longshift.metrics import fit_temperature, probabilities
from longshift.training import RunFolder, read_predictions

Arrays = dict[str, npt.NDArray[Any]]


def learn_new_sites(jobs: Sequence[FitJob], final: Path, data: DataSummary) -> SiteKnowledge | None:
    """Compare, at each held-out site, what the predictions alone say with the truth; None if none were kept.

    Args:
        jobs: The runs of the fit's own method with a site held out.
        final: The folder of the final model, whose validation samples a new site is compared with.
        data: Names and counts of the sites.
    """
    found = [(job.site, kept) for job in jobs if (kept := _arrays(job.folder)) is not None and "target_logits" in kept]
    own = _arrays(final)
    if not found or own is None or "validation_logits" not in own:
        return None
    runs = [_Run(arrays, data) for _, arrays in found]
    last = _Run(own, data)
    adaptation = choose_adaptation(
        [HeldOutLogits(run.adaptation, run.logits("target"), run.arrays["target_labels"]) for run in runs],
        last.adaptation,
    )
    held, confidences, correct = [], [], []
    for (site, arrays), run in zip(found, runs, strict=True):
        # As at a new site: the predictions that are compared with the truth are adapted, if predictions there will be.
        logits = run.logits("target")
        learned = replace(run.adaptation, helps=adaptation.helps)
        logits = logits + site_offset(learned, logits).values
        shares = probabilities(logits)
        right = shares.argmax(axis=1) == arrays["target_labels"]
        signals = read_signals(run.reference, logits, arrays["target_features"], 1.0)
        held.append(HeldOutSite(site, float(right.mean()), signals))
        confidences.append(shares.max(axis=1))
        correct.append(right)
    # The samples of each site weigh as much together as those of any other.
    weights = [np.full(len(part), 1 / len(part)) for part in correct]
    sure = choose_sure(np.concatenate(confidences), np.concatenate(correct), np.concatenate(weights))
    return SiteKnowledge(tuple(held), last.reference, sure, adaptation)


def _arrays(folder: Path) -> Arrays | None:
    path = RunFolder(folder).predictions
    return read_predictions(path) if path.exists() else None


class _Run:
    """What the validation samples of a run say about its model."""

    def __init__(self, arrays: Arrays, data: DataSummary) -> None:
        self.arrays = arrays
        labels, domains = arrays["validation_labels"], arrays["validation_domains"]
        self._temperature = fit_temperature(arrays["validation_logits"], labels)
        classes, sources = len(data.classes), np.unique(domains)
        names = [data.sites[int(d)] for d in domains]
        self.reference = make_reference(classes, labels, arrays["validation_features"], names)
        logits = self.logits("validation")
        means, precision = class_means(logits, labels, domains, classes), class_precision(logits, labels, domains)
        self.adaptation = SiteAdaptation(means, precision, largest_shares(data.counts[sources]))

    def logits(self, part: str) -> FloatArray:
        """Calibrated logits."""
        return np.asarray(self.arrays[f"{part}_logits"] / self._temperature, dtype=np.float64)
