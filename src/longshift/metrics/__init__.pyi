# Used by the other packages of longshift; not public.
from .evaluation import (
    Evaluation as Evaluation,
    evaluate_predictions as evaluate_predictions,
    group_means as group_means,
    mean_class_accuracy as mean_class_accuracy,
)
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
    "class_posteriors",
    "evaluate_predictions",
    "expected_calibration_error",
    "fit_temperature",
    "js_divergence",
    "margins",
    "mean_class_accuracy",
    "negative_log_likelihood",
]
