from .adaptation import Adapted as Adapted, adapt as adapt
from .domain_classifier import DomainClassifier as DomainClassifier

# Used by the other packages of longshift; not public.
from .request import FitRequest as FitRequest, make_request as make_request, open_data as open_data
from .run import FitResult as FitResult, fit as fit, run_fit as run_fit
from .site_page import site_name as site_name, write_site_page as write_site_page
from .suggest import choose_samples as choose_samples
