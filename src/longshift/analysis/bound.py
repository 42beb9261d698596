"""The measurable terms of the bound of Theorem 1.

    eps_T(h) <= sum_d pi_d eps_d(h) + l_max Pr[gamma(h) <= delta]
                + zeta_in + zeta_out + eta_in + eta_out + lambda_pi

Terms:

- eps: 0-1 risk, the loss of the proof, so l_max = 1. pi: `mixture_weights`.
- zeta (prior): total variation of embeddings, estimated by a linear domain classifier (`probes.domain_hits`).
  zeta_in is the largest over pairs of sources, zeta_out is between the mixture sum_d pi_d P_d(X) and the target.
- eta (posterior): total variation of P(Y | X = x), averaged over the target's x. The posteriors come from linear
  probes, fitted per domain on the embeddings (the target's out of fold). eta_in is the largest over pairs of sources,
  eta_out is between sum_d pi_d P_d(Y | x) and P_T(Y | x). Taken literally, I[m != m'] with m = y h(x) does not depend
  on y, so the theorem's own posterior divergence is zero. Total variation, the supremum over all events of (x, y), is
  what the text around the theorem means.
- lambda_pi: the risk of the best hypothesis on sources and target together. It is an infimum over a class of
  networks and cannot be computed; the measured total leaves it out.

Intervals: percentile bootstrap over the samples of each domain, with fixed pi and fitted probes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.distance import cdist, pdist

from longshift.analysis.domains import DomainOutputs, check_domains, subsample
from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError, UsageError
from longshift.metrics import score_samples

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


LAMBDA_NOTE = "not computable: the infimum of source and target risk over all hypotheses"


@dataclass(frozen=True)
class Term:
    """One term of the bound with its 95% bootstrap interval; if `value` is None, `note` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Bound:
    """The bound for one model. `total` leaves out lambda_pi and every term without a value."""

    weights: dict[str, float]  # pi by source
    hull_distance: float  # MMD between the target and the closest mixture
    source_risk: Term
    margin: Term
    prior_in: Term
    prior_out: Term
    posterior_in: Term
    posterior_out: Term
    ideal_risk: Term  # lambda_pi
    total: Term
    target_risk: Term  # the bounded quantity, measured with the target's labels

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        terms = {name: vars(value).copy() for name, value in vars(self).items() if isinstance(value, Term)}
        return {"weights": dict(self.weights), "hull_distance": self.hull_distance, **terms}


# Maps sample weights per domain (sources, then the target), each summing to one, to the value of a term.
_Statistic = Callable[[Sequence[FloatArray]], float]


def generalization_bound(
    sources: Sequence[DomainOutputs],
    target: DomainOutputs,
    *,
    delta: float = 0.0,
    bootstrap: int = 200,
    limit: int = 1_000,
    seed: int = 0,
) -> Bound:
    """Measure every computable term on at most `limit` samples per domain (probes and kernels are costly).

    Args:
        sources: Outputs on the source domains, with embeddings.
        target: Outputs on the target domain, with embeddings.
        delta: Threshold of the margin term.
        bootstrap: Number of bootstrap samples for the intervals.
        limit: Largest number of samples per domain.
        seed: Seed of subsampling, folds and bootstrap.

    Returns:
        A `Bound`.

    Raises:
        LongshiftError: There is no source, a domain has no embeddings, or domains have different numbers of classes.
        UsageError: `bootstrap` is below 1.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> def outputs(name, shift):
        ...     x, y = rng.normal(shift, 1, (60, 3)), np.arange(60) % 3
        ...     return DomainOutputs(name, x + 3 * np.eye(3)[y], y, x)

        >>> bound = generalization_bound([outputs("a", 0), outputs("b", 1)], outputs("c", 2), bootstrap=2)
        >>> bound.total.value > 0
        True
    """
    if bootstrap < 1:
        raise UsageError(f"expected at least one bootstrap draw, found {bootstrap}")
    check_domains(sources, target)
    rng = np.random.default_rng(seed)
    domains = [_thin(domain, limit, rng) for domain in (*sources, target)]
    count = len(sources)
    mixture = mixture_weights(domains[:-1], domains[-1], limit=limit, seed=seed)
    pi = mixture.weights
    scores = [score_samples(d.logits, d.labels, d.name) for d in domains]
    wrong = [(s.predicted != s.labels).astype(np.float64) for s in scores]
    narrow = [(s.margin <= delta).astype(np.float64) for s in scores]

    statistics: dict[str, _Statistic | str] = {
        "source_risk": lambda w: sum(float(pi[d] * (w[d] @ wrong[d])) for d in range(count)),
        "margin": lambda w: sum(float(pi[d] * (w[d] @ narrow[d])) for d in range(count)),
        "prior_in": _prior_in(domains[:-1], seed),
        "prior_out": _prior_out(domains, pi, seed),
        **dict(zip(("posterior_in", "posterior_out"), _posterior(domains, pi, seed), strict=True)),
    }

    draws = [[rng.multinomial(len(d), np.full(len(d), 1 / len(d))) / len(d) for d in domains] for _ in range(bootstrap)]
    even = [np.full(len(d), 1 / len(d)) for d in domains]
    terms: dict[str, Term] = {}
    point, spread = 0.0, np.zeros(bootstrap)
    for name, statistic in statistics.items():
        if isinstance(statistic, str):
            terms[name] = Term(None, note=statistic)
            continue
        value, values = statistic(even), np.array([statistic(w) for w in draws])
        terms[name] = _term(value, values)
        point, spread = point + value, spread + values
    missing = [name for name, term in terms.items() if term.value is None]
    note = "without lambda_pi" + (f" and without {', '.join(missing)}" if missing else "")
    return Bound(
        weights={d.name: float(p) for d, p in zip(sources, pi, strict=True)},
        hull_distance=mixture.distance,
        ideal_risk=Term(None, note=LAMBDA_NOTE),
        total=_term(point, spread, note),
        target_risk=_term(float(wrong[-1].mean()), np.array([float(w[-1] @ wrong[-1]) for w in draws])),
        **terms,
    )


def _thin(domain: DomainOutputs, limit: int, rng: np.random.Generator) -> DomainOutputs:
    keep = subsample(len(domain), limit, rng)
    return DomainOutputs(domain.name, domain.logits[keep], domain.labels[keep], domain.features()[keep])


def _term(value: float, values: FloatArray, note: str = "") -> Term:
    low, high = np.percentile(values, [2.5, 97.5])
    return Term(float(value), float(low), float(high), note)


def _prior_in(sources: Sequence[DomainOutputs], seed: int) -> _Statistic | str:
    """Return zeta_in: the maximum over pairs of sources of a + b - 1, with a, b the domain classifier's accuracies."""
    if len(sources) == 1:
        return lambda w: 0.0  # one source: no pair, and the hull is that source
    pairs: list[tuple[int, int, FloatArray, FloatArray]] = []
    for i, j in combinations(range(len(sources)), 2):
        first, second = sources[i], sources[j]
        x = np.concatenate([first.features(), second.features()])
        side = np.repeat(np.array([0, 1], dtype=np.int64), [len(first), len(second)])
        hits = domain_hits(x, side, np.ones(len(x)), seed)
        if hits is None:
            lone = first if len(first) < 2 else second
            return f"domain {lone.name!r} has 1 sample: no domain classifier can be held out"
        pairs.append((i, j, hits[: len(first)], hits[len(first) :]))
    return lambda w: max(0.0, *(float(w[i] @ a + w[j] @ b - 1) for i, j, a, b in pairs))


def _prior_out(domains: Sequence[DomainOutputs], pi: FloatArray, seed: int) -> _Statistic | str:
    """Return zeta_out: the same between the pi-weighted mixture of the sources and the target."""
    sources, target = domains[:-1], domains[-1]
    x = np.concatenate([d.features() for d in domains])
    sizes = [len(d) for d in domains]
    side = np.repeat(np.array([0, 1], dtype=np.int64), [sum(sizes[:-1]), sizes[-1]])
    weights = np.concatenate(
        [*(np.full(len(d), p / len(d)) for d, p in zip(sources, pi, strict=True)), np.ones(sizes[-1])]
    )
    hits = domain_hits(x, side, weights, seed)
    if hits is None:
        return f"too few samples to hold any out ({sum(sizes[:-1])} of the sources, {len(target)} of the target)"
    parts = np.split(hits, np.cumsum(sizes)[:-1])
    return lambda w: max(
        0.0, sum(float(pi[d] * (w[d] @ parts[d])) for d in range(len(sources))) + float(w[-1] @ parts[-1]) - 1
    )


def _posterior(
    domains: Sequence[DomainOutputs], pi: FloatArray, seed: int
) -> tuple[_Statistic | str, _Statistic | str]:
    """Return eta_in and eta_out: total variation of the probes' posteriors, averaged over the target's samples."""
    target, classes = domains[-1], domains[-1].classes
    points = target.features()
    posteriors = [posterior_at(d.features(), d.labels, points, classes) for d in domains[:-1]]
    apart = [total_variation(a, b) for a, b in combinations(posteriors, 2)]

    def inside(w: Sequence[FloatArray]) -> float:
        return max((float(w[-1] @ tv) for tv in apart), default=0.0)

    own = posterior_out_of_fold(points, target.labels, classes, seed)
    if own is None:
        return inside, f"the target {target.name!r} has 1 sample: its posterior cannot be held out"
    away = total_variation(np.tensordot(pi, np.stack(posteriors), axes=1), own)
    return inside, lambda w: float(w[-1] @ away)


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


FOLDS = 5


def domain_hits(x: FloatArray, is_second: IntArray, weights: FloatArray, seed: int = 0) -> FloatArray | None:
    """Return for each sample whether a linear classifier, out of fold, recognizes its domain among two: (N,) of 0, 1.

    With accuracies a on the first and b on the second domain, a + b - 1 estimates from below the total variation
    sup_A |P(A) - Q(A)|, with the supremum over half-spaces: half the proxy A-distance of Ben-David et al.
    Returns None if one of the two has a single sample, so that none can be held out.
    """
    from sklearn.model_selection import StratifiedKFold  # takes a second to import

    sizes = np.bincount(is_second, minlength=2)
    if sizes.min() < 2:
        return None
    hits = np.zeros(len(x))
    balanced = weights.copy()
    for side in (0, 1):
        balanced[is_second == side] /= weights[is_second == side].sum()
    balanced *= len(x) / balanced.sum()
    splitter = StratifiedKFold(min(FOLDS, int(sizes.min())), shuffle=True, random_state=seed)
    for train, held in splitter.split(x, is_second):
        if not all(balanced[train][is_second[train] == side].any() for side in (0, 1)):
            return None
        model = _probe()
        model.fit(x[train], is_second[train], logisticregression__sample_weight=balanced[train])
        hits[held] = model.predict(x[held]) == is_second[held]
    return hits


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
