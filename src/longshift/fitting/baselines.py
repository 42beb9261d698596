"""What a fit must beat: the most frequent class, and logistic regression on the same features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from longshift.fitting.facts import LOGISTIC, MAJORITY, SiteScore, site_score
from longshift.methods import cell_weights, fit_logistic
from longshift.training import Task, evaluate_set

PARTS = ("validation", "target")
STRENGTHS = (0.3, 0.1, 0.03, 0.01, 0.003)  # 1 / (C n) of scikit-learn


def baseline_scores(tasks: Mapping[str, Task]) -> dict[str, list[SiteScore]]:
    """Scores at each held-out site; logistic regression only where the inputs are vectors or features."""
    found: dict[str, list[SiteScore]] = {}
    for site, task in tasks.items():
        models = {MAJORITY: majority_logits(task)}
        if task.store.inputs.ndim == 2:
            models[LOGISTIC] = class_weighted_logits(task)
        for name, logits in models.items():
            measured = {part: evaluate_set(task, part, values).to_dict() for part, values in logits.items()}
            found.setdefault(name, []).append(site_score(site, measured))
    return found


def majority_logits(task: Task) -> dict[str, Tensor]:
    """The most frequent class of the training samples."""
    likely = torch.from_numpy(task.split.counts.sum(axis=0)).double()
    return {part: likely.expand(len(task.split.part(part)), -1) for part in PARTS}


def class_weighted_logits(task: Task) -> dict[str, Tensor]:
    """Those of scikit-learn's LogisticRegression(class_weight="balanced"), with C chosen on validation."""

    def rows(part: str) -> tuple[Tensor, Tensor]:
        indices = task.split.part(part)
        inputs = torch.from_numpy(np.asarray(task.store.inputs[indices], dtype=np.float32))
        return inputs, torch.from_numpy(task.labels(indices))

    (x, y), (seen, truth) = rows("train"), rows("validation")
    heads = fit_logistic(x, y, cell_weights(y, torch.zeros_like(y)), len(task.split.classes), STRENGTHS)
    balanced = cell_weights(truth, torch.zeros_like(truth))
    best = max(heads, key=lambda head: float(balanced[head.logits(seen).argmax(1) == truth].sum()))
    return {part: best.logits(rows(part)[0]) for part in PARTS}
