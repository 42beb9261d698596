"""What is read off finished runs: discrepancies, the terms of the bound, correlations, significance tests."""

from longshift.analysis.bound import Bound, Term, generalization_bound
from longshift.analysis.correlation import Correlation, correlate, pearson
from longshift.analysis.domains import DomainOutputs, by_domain, domain_outputs
from longshift.analysis.margins import MarginSummary, margin_summary
from longshift.analysis.mixture import Mixture, mixture_weights
from longshift.analysis.posterior import PosteriorDiscrepancy, posterior_discrepancy
from longshift.analysis.prior import Distance, PriorDiscrepancy, centroid_distances, prior_discrepancy, wasserstein
from longshift.analysis.significance import (
    Friedman,
    PairTest,
    friedman,
    nemenyi_critical_difference,
    nemenyi_p_values,
    rank_groups,
    rank_table,
    wilcoxon_holm,
)
from longshift.metrics.posterior import js_divergence

__all__ = [
    "Bound",
    "Correlation",
    "Distance",
    "DomainOutputs",
    "Friedman",
    "MarginSummary",
    "Mixture",
    "PairTest",
    "PosteriorDiscrepancy",
    "PriorDiscrepancy",
    "Term",
    "by_domain",
    "centroid_distances",
    "correlate",
    "domain_outputs",
    "friedman",
    "generalization_bound",
    "js_divergence",
    "margin_summary",
    "mixture_weights",
    "nemenyi_critical_difference",
    "nemenyi_p_values",
    "pearson",
    "posterior_discrepancy",
    "prior_discrepancy",
    "rank_groups",
    "rank_table",
    "wasserstein",
    "wilcoxon_holm",
]
