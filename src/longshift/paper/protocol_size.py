"""How much is run: the published protocol, or a quick cut of it that shows every kind of table in minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longshift.data import DIGITS, holds_vectors


@dataclass(frozen=True)
class Scale:
    """Steps, repetitions and grids. `targets` = 0 means all of them."""

    name: str
    steps: int = 5000
    eval_every: int = 300
    trials: int = 3
    draws: int = 10
    targets: int = 0
    study_trials: int = 3  # of the grids over alpha, beta and rho, which have one draw per point
    study_targets: int = 0
    exponents: tuple[int, ...] = (-3, -2, -1, 0, 1, 2)  # of alpha and beta
    rhos: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    run: Mapping[str, Any] = field(default_factory=dict)  # further keys of the runs
    shorten: bool = False  # whether schedules are shortened with the steps


FULL_SCALE = Scale("full")
QUICK_STEPS = 100


def quick_scale(data: str) -> Scale:
    """Two targets, two trials, default hyper-parameters, few steps of small batches."""
    run: dict[str, Any] = {"hparams": {"batch_size": 16}}
    if data == DIGITS:
        # Half the size is as readable to the small network and four times as fast; so few steps need a high rate.
        run = {"image_size": 16, "hparams": {"batch_size": 16, "lr": 3e-3}}
    elif not holds_vectors(data):
        run = {"hparams": {"batch_size": 8}}
    return Scale(
        "quick", steps=QUICK_STEPS, eval_every=25, trials=2, draws=1, targets=2, study_trials=1, study_targets=1,
        exponents=(-3, -2, -1, 0, 1), rhos=(0.1, 0.2, 0.5, 1.0, 2.0), run=run, shorten=True,
    )  # fmt: skip


def override_scale(
    scale: Scale, steps: int | None = None, trials: int | None = None, draws: int | None = None
) -> Scale:
    """The scale with some of its numbers replaced."""
    chosen = replace(scale, steps=steps or scale.steps, trials=trials or scale.trials, draws=draws or scale.draws)
    return replace(chosen, study_trials=min(chosen.study_trials, trials or chosen.study_trials))


def evaluations(steps: int, eval_every: int) -> int:
    """Steps between two evaluations such that there are several, however few the steps."""
    return max(1, min(eval_every, steps // 2 or 1))
