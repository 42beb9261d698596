"""Whether probabilities can be trusted at unseen sites: reliability, and accuracy against coverage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from longshift.array_types import FloatArray
from longshift.metrics import probabilities
from longshift.report import Line, Record, Section, figure, join_html, line_chart

BINS, POINTS = 10, 20
FEWEST = 10  # predictions in a bin


def calibration_section(records: Sequence[Record]) -> list[Section]:
    """The section, from the kept predictions at the held-out sites; none if no run kept them."""
    parts = [found for record in records if (found := _scores(record)) is not None]
    if not parts:
        return []
    confidence, correct = (np.concatenate([part[which] for part in parts]) for which in (0, 1))
    x, y = reliability(confidence, correct)
    share, accuracy = accuracy_by_coverage(confidence, correct)
    ends = (float(x[0]), float(x[-1])) if len(x) else (0.0, 1.0)
    plots = join_html(
        figure(
            line_chart(
                [Line("held-out sites", [100 * v for v in x], y), Line("calibrated", [100 * v for v in ends], ends)],
                "probability of the predicted class (%)", "correct",
            ),
            "Reliability: below the straight line, probabilities are too high.",
        ),
        figure(
            line_chart(
                [Line("held-out sites", [100 * v for v in share], accuracy)], "most confident part (%)", "correct"
            ),
            "Accuracy against coverage: of the most confident predictions, this share is correct.",
        ),
    )  # fmt: skip
    intro = "At the held-out sites, with the calibrated probabilities of longshift predict; every sample counts once."
    return [Section("Calibration at unseen sites", plots, intro, "calibration")]


def reliability(confidence: FloatArray, correct: npt.NDArray[np.bool_]) -> tuple[list[float], list[float]]:
    """Mean confidence and accuracy in bins of equal width; bins with few predictions are left out."""
    index = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    bins = [index == k for k in range(BINS) if (index == k).sum() >= FEWEST]
    return [float(confidence[own].mean()) for own in bins], [float(correct[own].mean()) for own in bins]


def accuracy_by_coverage(confidence: FloatArray, correct: npt.NDArray[np.bool_]) -> tuple[list[float], list[float]]:
    """Shares of the most confident predictions, and the accuracy among them."""
    ordered = correct[np.argsort(-confidence, kind="stable")].astype(np.float64)
    sizes = np.unique(np.ceil(np.linspace(1 / POINTS, 1, POINTS) * len(ordered)).astype(int))
    sums = np.cumsum(ordered)
    return [float(n / len(ordered)) for n in sizes], [float(sums[n - 1] / n) for n in sizes]


def _scores(record: Record) -> tuple[FloatArray, npt.NDArray[np.bool_]] | None:
    arrays = record.predictions()
    if arrays is None or "target_logits" not in arrays:
        return None
    shares = probabilities(arrays["target_logits"].astype(np.float64) / record.temperature(arrays))
    return shares.max(axis=1), shares.argmax(axis=1) == arrays["target_labels"]
