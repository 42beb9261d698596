"""The product for own data: `longshift fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.fitting.domain_classifier import DomainClassifier as DomainClassifier
    from longshift.fitting.fit_results import FitResult as FitResult
    from longshift.fitting.fit_run import fit as fit
    from longshift.fitting.head_adaptation import Adapted as Adapted, adapt as adapt
    from longshift.fitting.sample_choice import choose_samples as choose_samples
    from longshift.fitting.site_page import site_name as site_name, write_site_page as write_site_page

if TYPE_CHECKING:  # shared with the other packages of longshift, not public
    from longshift.fitting.held_out import held_out_site as held_out_site

__all__, __getattr__, __dir__ = lazy_exports(__name__)
