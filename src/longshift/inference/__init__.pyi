from .embedding import Embedded as Embedded, embed as embed, require_table as require_table, write_table as write_table
from .evaluating import SiteResult as SiteResult, evaluate as evaluate, evaluate_site as evaluate_site
from .expected_accuracy import (
    ENOUGH_SITES as ENOUGH_SITES,
    LEVEL as LEVEL,
    Doubt as Doubt,
    Evidence as Evidence,
    HeldOutSite as HeldOutSite,
    Range as Range,
    Reference as Reference,
    Signals as Signals,
    SiteKnowledge as SiteKnowledge,
    SureRule as SureRule,
    choose_sure as choose_sure,
    class_excess as class_excess,
    corrected_estimate as corrected_estimate,
    estimate_site as estimate_site,
    logit_share as logit_share,
    make_reference as make_reference,
    novelty as novelty,
    one_more_site as one_more_site,
    read_knowledge as read_knowledge,
    read_memory as read_memory,
    read_signals as read_signals,
    relative_excess as relative_excess,
    write_knowledge as write_knowledge,
    write_memory as write_memory,
)
from .exporting import export as export
from .loading import (
    FINAL_FOLDER as FINAL_FOLDER,
    PLAN_FILE as PLAN_FILE,
    LoadedModel as LoadedModel,
    UnseenAccuracy as UnseenAccuracy,
    calibrated_probabilities as calibrated_probabilities,
    keep_unseen as keep_unseen,
    load_model as load_model,
)
from .outputs import (
    VECTOR_SUFFIXES as VECTOR_SUFFIXES,
    Outputs as Outputs,
    collect_outputs as collect_outputs,
    expand_inputs as expand_inputs,
    require_inputs as require_inputs,
)
from .prediction import Predictions as Predictions, predict as predict
from .site_adaptation import (
    HeldOutLogits as HeldOutLogits,
    SiteAdaptation as SiteAdaptation,
    SiteOffset as SiteOffset,
    choose_adaptation as choose_adaptation,
    class_means as class_means,
    class_precision as class_precision,
    largest_shares as largest_shares,
    site_offset as site_offset,
)
