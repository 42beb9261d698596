"""Pure functions from logits and labels to numbers."""

from longshift.metrics.classification import (
    accuracy,
    confusion_matrix,
    macro_f1,
    per_class_accuracy,
    per_domain_accuracy,
    shot_accuracy,
    worst_domain_accuracy,
)
from longshift.metrics.evaluation import Evaluation, evaluate_predictions
from longshift.metrics.probabilistic import expected_calibration_error, margins, negative_log_likelihood
from longshift.metrics.scores import probabilities
from longshift.metrics.temperature import fit_temperature

__all__ = [
    "Evaluation",
    "accuracy",
    "confusion_matrix",
    "evaluate_predictions",
    "expected_calibration_error",
    "fit_temperature",
    "macro_f1",
    "margins",
    "negative_log_likelihood",
    "per_class_accuracy",
    "per_domain_accuracy",
    "probabilities",
    "shot_accuracy",
    "worst_domain_accuracy",
]
