from .bound import Bound as Bound, generalization_bound as generalization_bound
from .correlation import Relation as Relation, correlate as correlate, relate as relate, relate_within as relate_within
from .domains import DomainOutputs as DomainOutputs, by_domain as by_domain, domain_outputs as domain_outputs
from .margins import margin_summary as margin_summary
from .posteriors import posterior_discrepancy as posterior_discrepancy
from .prior import (
    centroid_distances as centroid_distances,
    prior_discrepancy as prior_discrepancy,
    wasserstein as wasserstein,
)
from .significance import (
    Friedman as Friedman,
    friedman as friedman,
    nemenyi_critical_difference as nemenyi_critical_difference,
    rank_groups as rank_groups,
    rank_table as rank_table,
    wilcoxon_holm as wilcoxon_holm,
)
from .site_intervals import (
    ENOUGH_SITES as ENOUGH_SITES,
    LEVEL as LEVEL,
    Evidence as Evidence,
    LogitRange as LogitRange,
    Range as Range,
    corrected_estimate as corrected_estimate,
    logit_share as logit_share,
    one_more_site as one_more_site,
)
