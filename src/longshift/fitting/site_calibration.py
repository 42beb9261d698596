"""What the held-out sites of a fit teach about new sites, from the kept predictions of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longshift.fitting.plan import FitJob
from longshift.inference import (
    HeldOutSite,
    Reference,
    SiteKnowledge,
    choose_sure,
    make_reference,
    read_signals,
)
from longshift.metrics import fit_temperature, probabilities
from longshift.training import RunFolder, read_predictions

Arrays = dict[str, npt.NDArray[Any]]


def learn_new_sites(jobs: Sequence[FitJob], final: Path, sites: Sequence[str]) -> SiteKnowledge | None:
    """Compare, at each held-out site, what the predictions alone say with the truth; None if none were kept.

    Args:
        jobs: The runs of the fit's own method with a site held out.
        final: The folder of the final model, whose validation samples a new site is compared with.
        sites: Names of the sites, in the order of the dataset.
    """
    found = [(job.site, kept) for job in jobs if (kept := _arrays(job.folder)) is not None and "target_logits" in kept]
    own = _arrays(final)
    if not found or own is None or "validation_logits" not in own:
        return None
    held, confidences, correct = [], [], []
    for site, arrays in found:
        reference, temperature = _reference(arrays, sites)
        shares = probabilities(arrays["target_logits"], temperature=temperature)
        right = shares.argmax(axis=1) == arrays["target_labels"]
        signals = read_signals(reference, arrays["target_logits"], arrays["target_features"], temperature)
        held.append(HeldOutSite(site, float(right.mean()), signals))
        confidences.append(shares.max(axis=1))
        correct.append(right)
    # The samples of each site weigh as much together as those of any other.
    weights = [np.full(len(part), 1 / len(part)) for part in correct]
    sure = choose_sure(np.concatenate(confidences), np.concatenate(correct), np.concatenate(weights))
    return SiteKnowledge(tuple(held), _reference(own, sites)[0], sure)


def _arrays(folder: Path) -> Arrays | None:
    path = RunFolder(folder).predictions
    return read_predictions(path) if path.exists() else None


def _reference(arrays: Arrays, sites: Sequence[str]) -> tuple[Reference, float]:
    """The validation samples of a run as reference, and its temperature."""
    logits, labels = arrays["validation_logits"], arrays["validation_labels"]
    temperature = fit_temperature(logits, labels)
    names = [sites[int(d)] for d in arrays["validation_domains"]]
    return make_reference(logits.shape[1], labels, arrays["validation_features"], names), temperature
