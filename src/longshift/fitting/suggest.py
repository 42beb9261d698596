"""Which samples of a new site to label, and how much labels help: simulated at the held-out sites of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longshift.array_types import FloatArray, IntArray
from longshift.fitting.head_refit import Samples, head_logits, refit_head
from longshift.inference import make_reference
from longshift.metrics import fit_temperature, negative_entropy, probabilities

NUMBERS = (10, 20, 50, 100)
DRAWS = 3


def choose_samples(probabilities: FloatArray, features: FloatArray, n: int, seed: int = 0) -> IntArray:
    """Choose n samples by weighted k-means on the features (CLUE; Prabhu et al., ICCV 2021).

    The weight of a sample is the entropy of its prediction over the root of the share of its predicted class, so that
    certain predictions count little and rare classes are not left out. Of each of the n clusters the sample next to
    its center is chosen.

    Args:
        probabilities: Calibrated probabilities (N, K).
        features: Features (N, D).
        n: Number of samples.
        seed: Seed of k-means.

    Returns:
        Indices of the samples, in the order of the input.
    """
    from sklearn.cluster import KMeans

    if n >= len(probabilities):
        return np.arange(len(probabilities))
    predicted = probabilities.argmax(axis=1)
    share = np.bincount(predicted, minlength=probabilities.shape[1])[predicted] / len(predicted)
    weight = (np.maximum(-negative_entropy(probabilities), 0) + 1e-3) / np.sqrt(share)
    rows = np.asarray(features, dtype=np.float64)
    fitted = KMeans(n, n_init=1, random_state=seed).fit(rows, sample_weight=weight)
    chosen: list[int] = []
    for cluster, center in enumerate(fitted.cluster_centers_):
        members = np.flatnonzero(fitted.labels_ == cluster)
        if len(members):
            chosen.append(int(members[np.square(rows[members] - center).sum(axis=1).argmin()]))
    taken = set(chosen)  # an empty cluster is replaced by the heaviest sample that is left
    left = [int(i) for i in np.argsort(-weight, kind="stable") if int(i) not in taken]
    return np.sort(np.array([*chosen, *left][:n], dtype=np.int64))


@dataclass(frozen=True)
class LabelGain:
    """Accuracy at a held-out site after adapting with some labels of it; 0 labels: as it is."""

    site: str
    labels: int
    random: float  # mean over draws of random labels
    suggested: float  # mean over the same draws, labels as `longshift suggest` chooses them


def simulate_labels(
    site: str, arrays: Mapping[str, npt.NDArray[Any]], numbers: Sequence[int] = NUMBERS, draws: int = DRAWS
) -> list[LabelGain]:
    """Adapt the model of one run to its held-out site with more and more labels.

    Half of the site's samples can be labeled and the other half measures, so that choosing hard samples does not make
    the measured ones easier. Numbers of labels above half of the first part are left out.
    """
    logits, features = arrays["target_logits"].astype(np.float64), arrays["target_features"].astype(np.float64)
    site_samples = Samples(features, arrays["target_labels"])
    names = arrays["validation_domains"].astype(str).tolist()
    kept = make_reference(logits.shape[1], arrays["validation_labels"], arrays["validation_features"], names)
    known = Samples(kept.seen, kept.seen_labels)  # as a model keeps them
    temperature = fit_temperature(arrays["validation_logits"], arrays["validation_labels"])
    shares = probabilities(logits, temperature=temperature)
    found: dict[int, list[tuple[float, float]]] = {}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        order = rng.permutation(len(site_samples))
        pool, test = np.array_split(order, 2)
        right = [float((logits[test].argmax(axis=1) == site_samples.labels[test]).mean())] * 2
        found.setdefault(0, []).append((right[0], right[1]))
        for n in numbers:
            if n > len(pool) // 2:
                continue
            chosen = (pool[:n], pool[choose_samples(shares[pool], features[pool], n, draw)])
            after = []
            for picked in chosen:
                head = refit_head(site_samples.part(picked), known, logits.shape[1])
                hits = head_logits(head, features[test]).argmax(axis=1) == site_samples.labels[test]
                after.append(float(hits.mean()))
            found.setdefault(n, []).append((after[0], after[1]))
    means = {n: np.mean(values, axis=0) for n, values in found.items()}
    return [LabelGain(site, n, float(mean[0]), float(mean[1])) for n, mean in means.items()]


@dataclass(frozen=True)
class LabelCurve:
    """Means over sites, for numbers of labels that every site allows."""

    rows: tuple[LabelGain, ...]

    def means(self) -> list[LabelGain]:
        """One row per number of labels, over the sites that all numbers share."""
        sites = {row.site for row in self.rows}
        numbers = [n for n in sorted({row.labels for row in self.rows}) if self._sites(n) == sites]
        return [
            LabelGain(
                "mean", n,
                float(np.mean([row.random for row in self.rows if row.labels == n])),
                float(np.mean([row.suggested for row in self.rows if row.labels == n])),
            )
            for n in numbers
        ]  # fmt: skip

    def _sites(self, labels: int) -> set[str]:
        return {row.site for row in self.rows if row.labels == labels}

    def to_json(self) -> list[dict[str, Any]]:
        """Plain values."""
        return [asdict(row) for row in (*self.rows, *self.means())]
