# Used by the other packages of longshift; not public.
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
from .evaluation import Evaluation as Evaluation, evaluate_predictions as evaluate_predictions
from .probabilistic import (
    class_posteriors as class_posteriors,
    expected_calibration_error as expected_calibration_error,
    fit_temperature as fit_temperature,
    js_divergence as js_divergence,
    margins as margins,
    nan_mean as nan_mean,
    negative_entropy as negative_entropy,
    negative_log_likelihood as negative_log_likelihood,
)
from .scores import (
    Array as Array,
    finite_rows as finite_rows,
    indices as indices,
    integers as integers,
    probabilities as probabilities,
    score_samples as score_samples,
)

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
