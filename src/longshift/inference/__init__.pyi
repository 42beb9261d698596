from .embedding import Embedded as Embedded, embed as embed, require_table as require_table, write_table as write_table
from .evaluate_run import ALL_SITES as ALL_SITES, evaluate as evaluate
from .exporting import export as export
from .labeled_site import SiteResult as SiteResult, evaluate_site as evaluate_site, seen_words as seen_words
from .loading import (
    FINAL_FOLDER as FINAL_FOLDER,
    PLAN_FILE as PLAN_FILE,
    LoadedModel as LoadedModel,
    calibrated_probabilities as calibrated_probabilities,
    load_model as load_model,
)
from .model_outputs import Outputs as Outputs, collect_outputs as collect_outputs
from .model_warning import UnseenAccuracy as UnseenAccuracy, keep_unseen as keep_unseen
from .prediction import Predictions as Predictions, predict as predict
from .prediction_inputs import (
    VECTOR_SUFFIXES as VECTOR_SUFFIXES,
    expand_inputs as expand_inputs,
    require_inputs as require_inputs,
)
from .site_doubt import Doubt as Doubt, class_excess as class_excess, relative_excess as relative_excess
from .site_estimate import (
    HeldOutSite as HeldOutSite,
    SiteEstimate as SiteEstimate,
    SiteKnowledge as SiteKnowledge,
    estimate_site as estimate_site,
    odd_mix as odd_mix,
)
from .site_knowledge_file import (
    read_knowledge as read_knowledge,
    read_memory as read_memory,
    write_knowledge as write_knowledge,
    write_memory as write_memory,
)
from .site_signals import (
    Reference as Reference,
    Signals as Signals,
    make_reference as make_reference,
    novelty as novelty,
    read_signals as read_signals,
)
from .sure_rule import SureRule as SureRule, choose_sure as choose_sure
