"""Pure functions from logits and labels to numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.metrics.classification import (
        accuracy as accuracy,
        balanced_accuracy as balanced_accuracy,
        confusion_matrix as confusion_matrix,
        macro_f1 as macro_f1,
        mean_class_accuracy as mean_class_accuracy,
        per_class_accuracy as per_class_accuracy,
        per_domain_accuracy as per_domain_accuracy,
        shot_accuracy as shot_accuracy,
        worst_domain_accuracy as worst_domain_accuracy,
    )
    from longshift.metrics.divergence import class_posteriors as class_posteriors, js_divergence as js_divergence
    from longshift.metrics.evaluation import Evaluation as Evaluation, evaluate_predictions as evaluate_predictions
    from longshift.metrics.probabilistic import (
        expected_calibration_error as expected_calibration_error,
        margins as margins,
        negative_log_likelihood as negative_log_likelihood,
    )
    from longshift.metrics.temperature import fit_temperature as fit_temperature

if TYPE_CHECKING:  # shared with the other packages of longshift, not public
    from longshift.metrics.arrays import (
        Array as Array,
        finite_rows as finite_rows,
        indices as indices,
        integers as integers,
    )
    from longshift.metrics.centered_prototypes import (
        prototype_agreement as prototype_agreement,
        site_prototypes as site_prototypes,
    )
    from longshift.metrics.classification import group_means as group_means
    from longshift.metrics.divergence import nan_mean as nan_mean
    from longshift.metrics.feature_spread import (
        FeatureSummary as FeatureSummary,
        feature_distance as feature_distance,
        summarize_features as summarize_features,
    )
    from longshift.metrics.label_free import (
        confidence_threshold as confidence_threshold,
        difference_of_confidences as difference_of_confidences,
        dispersity as dispersity,
        negative_entropy as negative_entropy,
        thresholded_confidence as thresholded_confidence,
    )
    from longshift.metrics.scores import probabilities as probabilities, score_samples as score_samples

__all__, __getattr__, __dir__ = lazy_exports(__name__)
