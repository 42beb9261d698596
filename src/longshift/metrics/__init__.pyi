# Used by the other packages of longshift; not public.
from .arrays import Array as Array, finite_rows as finite_rows, indices as indices, integers as integers
from .centered_prototypes import prototype_agreement as prototype_agreement, site_prototypes as site_prototypes
from .classification import (
    accuracy as accuracy,
    balanced_accuracy as balanced_accuracy,
    confusion_matrix as confusion_matrix,
    group_means as group_means,
    macro_f1 as macro_f1,
    mean_class_accuracy as mean_class_accuracy,
    per_class_accuracy as per_class_accuracy,
    per_domain_accuracy as per_domain_accuracy,
    shot_accuracy as shot_accuracy,
    worst_domain_accuracy as worst_domain_accuracy,
)
from .divergence import class_posteriors as class_posteriors, js_divergence as js_divergence, nan_mean as nan_mean
from .evaluation import Evaluation as Evaluation, evaluate_predictions as evaluate_predictions
from .feature_spread import (
    FeatureSummary as FeatureSummary,
    feature_distance as feature_distance,
    summarize_features as summarize_features,
)
from .label_free import (
    confidence_threshold as confidence_threshold,
    difference_of_confidences as difference_of_confidences,
    dispersity as dispersity,
    negative_entropy as negative_entropy,
    thresholded_confidence as thresholded_confidence,
)
from .probabilistic import (
    expected_calibration_error as expected_calibration_error,
    margins as margins,
    negative_log_likelihood as negative_log_likelihood,
)
from .scores import probabilities as probabilities, score_samples as score_samples
from .temperature import fit_temperature as fit_temperature

__all__ = [
    "Evaluation",
    "accuracy",
    "balanced_accuracy",
    "class_posteriors",
    "confusion_matrix",
    "evaluate_predictions",
    "expected_calibration_error",
    "fit_temperature",
    "js_divergence",
    "macro_f1",
    "margins",
    "mean_class_accuracy",
    "negative_log_likelihood",
    "per_class_accuracy",
    "per_domain_accuracy",
    "shot_accuracy",
    "worst_domain_accuracy",
]
