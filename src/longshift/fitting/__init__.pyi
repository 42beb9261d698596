from .domain_classifier import DomainClassifier as DomainClassifier
from .fit_results import FitResult as FitResult
from .fit_run import fit as fit
from .head_adaptation import Adapted as Adapted, adapt as adapt

# Used by the other packages of longshift; not public.
from .held_out import held_out_site as held_out_site
from .sample_choice import choose_samples as choose_samples
from .site_page import site_name as site_name, write_site_page as write_site_page
