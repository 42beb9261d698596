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
RIGHT = 2  # points: mean probability and accuracy that differ by no more are about equal


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
    measured = held_out_gap(float(confidence.mean()), float(correct.mean()), len(parts))
    intro = f"Calibrated probabilities of longshift predict; every sample counts once. {measured}"
    return [Section("Calibration at unseen sites", plots, intro, "calibration")]


def held_out_gap(confidence: float, accuracy: float, sites: int) -> str:
    """Whether probabilities were too high or too low at the held-out sites, from their mean and the accuracy there.

    >>> held_out_gap(0.62, 0.69, 3)
    'At the held-out sites, probabilities were too low by 7 points on average (mean probability 62%, 69% correct).'
    """
    probability, correct = round(100 * confidence), round(100 * accuracy)
    points = probability - correct  # of the printed numbers, so that a reader can check it
    off = "about right" if abs(points) <= RIGHT else f"too {'high' if points > 0 else 'low'} by {abs(points)} points"
    return (
        f"At the held-out site{'s' * (sites > 1)}, probabilities were {off} on average (mean probability "
        f"{probability}%, {correct}% correct)."
    )


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
