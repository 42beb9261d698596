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
from typing import Any

import numpy as np

from longshift.analysis.domains import DomainOutputs, check_domains, subsample
from longshift.analysis.mixture import mixture_weights
from longshift.analysis.probes import domain_hits, posterior_at, posterior_out_of_fold, total_variation
from longshift.array_types import FloatArray
from longshift.errors import UsageError
from longshift.metrics import score_samples

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
