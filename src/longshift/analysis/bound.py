"""The measurable terms of the bound of Theorem 1.

    eps_T(h) <= sum_d pi_d eps_d(h) + l_max Pr[gamma(h) <= delta]
                + zeta_in + zeta_out + eta_in + eta_out + lambda_pi

Terms:

- eps: 0-1 risk, the loss of the proof, so l_max = 1. pi: `mixture_weights`.
- zeta (prior): total variation of embeddings, estimated by a linear domain classifier (`domain_distance`).
  zeta_in is the largest over pairs of sources, zeta_out is between the mixture sum_d pi_d P_d(X) and the target.
- eta (posterior): total variation of P(Y | X = x), averaged over the target's x. The posteriors come from linear
  probes, fitted per domain on the embeddings (the target's out of fold). eta_in is the largest over pairs of sources,
  eta_out is between sum_d pi_d P_d(Y | x) and P_T(Y | x). Taken literally, I[m != m'] with m = y h(x) does not depend
  on y, so the theorem's own posterior divergence is zero. Total variation, the supremum over all events of (x, y), is
  what the text around the theorem means.
- lambda_pi: the risk of the best hypothesis on sources and target together. It is an infimum over a class of
  networks and cannot be computed; the measured total leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.distance import cdist, pdist

from longshift.analysis.domains import DomainOutputs, check_domains, subsample
from longshift.array_types import FloatArray, IntArray
from longshift.metrics import score_samples

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


@dataclass(frozen=True)
class Bound:
    """The bound for one model; a term is None where a domain has too few samples to hold any out."""

    weights: dict[str, float]  # pi by source
    hull_distance: float  # MMD between the target and the closest mixture
    source_risk: float
    margin: float
    prior_in: float | None
    prior_out: float | None
    posterior_in: float
    posterior_out: float | None
    target_risk: float  # the bounded quantity, measured with the target's labels

    @property
    def total(self) -> float:
        """The sum of the terms, without lambda_pi and every term that is None."""
        terms = (self.prior_in, self.prior_out, self.posterior_in, self.posterior_out)
        return self.source_risk + self.margin + sum(term for term in terms if term is not None)


def generalization_bound(
    sources: Sequence[DomainOutputs], target: DomainOutputs, *, delta: float = 0.0, limit: int = 1_000, seed: int = 0
) -> Bound:
    """Measure every computable term on at most `limit` samples per domain (probes and kernels are costly).

    Args:
        sources: Outputs on the source domains, with embeddings.
        target: Outputs on the target domain, with embeddings.
        delta: Threshold of the margin term.
        limit: Largest number of samples per domain.
        seed: Seed of subsampling and folds.

    Returns:
        A `Bound`.

    Raises:
        LongshiftError: There is no source, a domain has no embeddings, or domains have different numbers of classes.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> def outputs(name, shift):
        ...     x, y = rng.normal(shift, 1, (60, 3)), np.arange(60) % 3
        ...     return DomainOutputs(name, x + 3 * np.eye(3)[y], y, x)

        >>> generalization_bound([outputs("a", 0), outputs("b", 1)], outputs("c", 2)).total > 0
        True
    """
    check_domains(sources, target)
    rng = np.random.default_rng(seed)
    domains = []
    for domain in (*sources, target):
        keep = subsample(len(domain), limit, rng)
        domains.append(
            DomainOutputs(domain.name, domain.logits[keep], domain.labels[keep], domain.features()[keep])
        )  # fmt: skip
    mixture = mixture_weights(domains[:-1], domains[-1], seed)
    pi = mixture.weights
    scores = [score_samples(d.logits, d.labels, d.name) for d in domains]
    wrong = [float((s.predicted != s.labels).mean()) for s in scores]
    narrow = [float((s.margin <= delta).mean()) for s in scores]
    features = [d.features() for d in domains]
    pairs = [domain_distance([a], b, np.ones(1), seed) for a, b in combinations(features[:-1], 2)]
    posteriors = [posterior_at(d.features(), d.labels, features[-1], target.classes) for d in domains[:-1]]
    own = posterior_out_of_fold(features[-1], domains[-1].labels, target.classes, seed)
    mixed = np.tensordot(pi, np.stack(posteriors), axes=1)
    known = [pair for pair in pairs if pair is not None]
    return Bound(
        weights={d.name: float(p) for d, p in zip(sources, pi, strict=True)},
        hull_distance=mixture.distance,
        source_risk=float(pi @ wrong[:-1]),
        margin=float(pi @ narrow[:-1]),
        prior_in=max(known, default=0.0) if len(known) == len(pairs) else None,
        prior_out=domain_distance(features[:-1], features[-1], pi, seed),
        posterior_in=max((float(total_variation(a, b).mean()) for a, b in combinations(posteriors, 2)), default=0.0),
        posterior_out=None if own is None else float(total_variation(mixed, own).mean()),
        target_risk=wrong[-1],
    )


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
    gram, cross, own = products[:-1, :-1], products[:-1, -1], float(products[-1, -1])
    gaps = gram - cross[:, None] - cross[None, :] + own
    values, vectors = np.linalg.eigh(gaps)
    root = np.sqrt(np.clip(values, 0.0, None))[:, None] * vectors.T
    k = max(float(np.sqrt(np.trace(gaps) / len(gaps))), 1e-12) if np.trace(gaps) > 0 else 1.0
    stacked = np.vstack([root, np.full((1, len(gaps)), k)])
    found, _ = nnls(stacked, np.append(np.zeros(len(gaps)), k))
    weights: FloatArray = np.asarray(found, dtype=np.float64) / found.sum()
    return Mixture(weights, max(float(weights @ gaps @ weights), 0.0) ** 0.5)


def mixture_weights(sources: Sequence[DomainOutputs], target: DomainOutputs, seed: int = 0) -> Mixture:
    """Project the target's joint distribution P_T(X, Y) on the mixtures sum_d pi_d P_S^d(X, Y).

    Distributions are compared by their mean embeddings under the kernel exp(-|x-x'|^2 / 2 s^2) 1[y = y'] on
    embeddings and labels (s: median distance). A class that the target lacks only adds to the products between sources.
    """
    points, labels = zip(*((domain.features(), domain.labels) for domain in (*sources, target)), strict=True)
    pool = np.concatenate(points)
    distances = pdist(pool[subsample(len(pool), 1_000, np.random.default_rng(seed))], "sqeuclidean")
    middle = float(np.median(distances)) if len(distances) else 0.0
    bandwidth = middle if middle > 0 else 1.0
    count = len(points)
    products = np.empty((count, count))
    for i in range(count):
        for j in range(i, count):
            kernel = np.exp(-cdist(points[i], points[j], "sqeuclidean") / (2 * bandwidth))
            products[i, j] = products[j, i] = float((kernel * (labels[i][:, None] == labels[j][None, :])).mean())
    return closest_mixture(products)


FOLDS = 5


def domain_distance(parts: Sequence[FloatArray], other: FloatArray, pi: FloatArray, seed: int = 0) -> float | None:
    """Estimate the total variation between the mixture pi of some domains and another one, from their embeddings.

    With accuracies a on the mixture and b on the other domain of a linear classifier, out of fold, a + b - 1 is a lower
    bound of sup_A |P(A) - Q(A)| over half-spaces A: half the proxy A-distance of Ben-David et al. Returns None if one
    of the two has a single sample, so that none can be held out.
    """
    from sklearn.model_selection import StratifiedKFold  # takes a second to import

    x = np.concatenate([*parts, other])
    is_other = np.repeat([False, True], [len(x) - len(other), len(other)])
    if min(len(other), len(x) - len(other)) < 2:
        return None
    shares = [np.full(len(part), p / len(part)) for part, p in zip(parts, pi, strict=True)]
    weights = np.concatenate([*shares, np.full(len(other), 1 / len(other))]) * len(x) / 2  # both sides weigh the same
    hits = np.zeros(len(x))
    splitter = StratifiedKFold(min(FOLDS, *np.bincount(is_other)), shuffle=True, random_state=seed)
    for train, held in splitter.split(x, is_other):
        if not all(weights[train][is_other[train] == side].any() for side in (False, True)):
            return None
        model = _probe()
        model.fit(x[train], is_other[train], logisticregression__sample_weight=weights[train])
        hits[held] = model.predict(x[held]) == is_other[held]
    right = [np.average(hits[own], weights=weights[own]) for own in (~is_other, is_other)]
    return max(0.0, float(sum(right)) - 1)


def posterior_at(x: FloatArray, y: IntArray, points: FloatArray, classes: int) -> FloatArray:
    """Estimate P(Y | X = point) of a domain with a multinomial logistic probe; a class it lacks gets 0."""
    result = np.zeros((len(points), classes))
    present = np.unique(y)
    if len(present) == 1:
        result[:, present[0]] = 1.0
        return result
    model = _probe().fit(x, y)
    result[:, model.classes_] = model.predict_proba(points)
    return result


def posterior_out_of_fold(x: FloatArray, y: IntArray, classes: int, seed: int = 0) -> FloatArray | None:
    """Estimate P(Y | X = x_i) at the samples of a domain, out of fold. Returns None with one sample."""
    if len(x) < 2:
        return None
    result = np.zeros((len(x), classes))
    order = np.random.default_rng(seed).permutation(len(x))
    # Assigning the samples of each class to folds in turn keeps the class shares of every fold close to the domain's.
    turn = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(x), dtype=np.int64)
    fold[turn] = np.arange(len(x)) % min(FOLDS, len(x))
    for k in range(min(FOLDS, len(x))):
        train, held = fold != k, fold == k
        result[held] = posterior_at(x[train], y[train], x[held], classes)
    return result


def total_variation(p: FloatArray, q: FloatArray) -> FloatArray:
    """Compute sup_A |p(A) - q(A)| = sum_k |p_k - q_k| / 2 along the last axis."""
    result: FloatArray = np.abs(p - q).sum(axis=-1) / 2
    return result


def _probe() -> Pipeline:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
