"""Mixture weights pi: the point in the convex hull of the sources that is closest to the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.distance import cdist, pdist

from longshift.analysis.domains import DomainOutputs, check_domains, subsample
from longshift.array_types import FloatArray
from longshift.errors import LongshiftError


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights pi on the simplex, and the remaining distance (MMD) between the mixture and the target."""

    weights: FloatArray  # (D,)
    distance: float


def closest_mixture(products: FloatArray) -> Mixture:
    """Minimize |sum_d pi_d mu_d - mu_T| over pi >= 0, sum pi = 1, given the inner products of mu_1 ... mu_D, mu_T.

    With M_de = <mu_d - mu_T, mu_e - mu_T> this is the shortest vector in a convex hull. Non-negative least squares on
    |M^(1/2) r|^2 + k^2 (sum r - 1)^2 finds it exactly for any k > 0, as r / sum r: for a given direction of r the
    minimum over its length is k^2 m / (m + k^2), which increases with m = pi' M pi.
    """
    if products.ndim != 2 or products.shape[0] != products.shape[1] or len(products) < 2:
        raise LongshiftError(f"expected the inner products of sources and target, found a matrix {products.shape}")
    gram, cross, own = products[:-1, :-1], products[:-1, -1], float(products[-1, -1])
    gaps = gram - cross[:, None] - cross[None, :] + own
    values, vectors = np.linalg.eigh(gaps)
    root = np.sqrt(np.clip(values, 0.0, None))[:, None] * vectors.T
    k = max(float(np.sqrt(np.trace(gaps) / len(gaps))), 1e-12) if np.trace(gaps) > 0 else 1.0
    stacked = np.vstack([root, np.full((1, len(gaps)), k)])
    found, _ = nnls(stacked, np.append(np.zeros(len(gaps)), k))
    weights: FloatArray = np.asarray(found, dtype=np.float64) / found.sum()
    return Mixture(weights, max(float(weights @ gaps @ weights), 0.0) ** 0.5)


def mixture_weights(
    sources: Sequence[DomainOutputs], target: DomainOutputs, *, limit: int = 1_000, seed: int = 0
) -> Mixture:
    """Project the target's joint distribution P_T(X, Y) on the mixtures sum_d pi_d P_S^d(X, Y).

    Distributions are compared by their mean embeddings under the kernel exp(-|x-x'|^2 / 2 s^2) 1[y = y'] on
    embeddings and labels (s: median distance), on at most `limit` samples per domain. A class that the target lacks
    only adds to the products between sources.
    """
    check_domains(sources, target)
    rng = np.random.default_rng(seed)
    points, labels = [], []
    for domain in (*sources, target):
        keep = subsample(len(domain), limit, rng)
        points.append(domain.features()[keep])
        labels.append(domain.labels[keep])
    pool = np.concatenate(points)
    distances = pdist(pool[subsample(len(pool), 1_000, rng)], "sqeuclidean")
    middle = float(np.median(distances)) if len(distances) else 0.0
    bandwidth = middle if middle > 0 else 1.0
    count = len(points)
    products = np.empty((count, count))
    for i in range(count):
        for j in range(i, count):
            kernel = np.exp(-cdist(points[i], points[j], "sqeuclidean") / (2 * bandwidth))
            products[i, j] = products[j, i] = float((kernel * (labels[i][:, None] == labels[j][None, :])).mean())
    return closest_mixture(products)
