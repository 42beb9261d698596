from .bound import Bound as Bound, generalization_bound as generalization_bound
from .correlation import Relation as Relation, correlate as correlate, relate as relate, relate_within as relate_within
from .discrepancies import (
    centroid_distances as centroid_distances,
    margin_summary as margin_summary,
    posterior_discrepancy as posterior_discrepancy,
    prior_discrepancy as prior_discrepancy,
    wasserstein as wasserstein,
)
from .domains import DomainOutputs as DomainOutputs, by_domain as by_domain, domain_outputs as domain_outputs
from .significance import (
    Friedman as Friedman,
    friedman as friedman,
    nemenyi_critical_difference as nemenyi_critical_difference,
    rank_groups as rank_groups,
    rank_table as rank_table,
    wilcoxon_holm as wilcoxon_holm,
)
