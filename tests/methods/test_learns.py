"""Every registered method learns the embedded data: clearly above chance within 150 steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.methods import all_methods
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer
from tests.training.small_runs import CPU, config

CHANCE = 0.1  # ten digits
# Defaults made for pretrained backbones are too strong or too slow for a network that starts from nothing; these lie
# inside the search spaces. (MMD at weight 1 makes all features equal before they mean anything.)
EASY: dict[str, dict[str, float]] = {"mmd": {"gamma": 0.1}}


@pytest.fixture(scope="module")
def balanced_digits() -> Task:
    return make_task(config(setting="Balanced"))


@pytest.mark.slow
@pytest.mark.parametrize("name", all_methods())
def test_a_method_learns_within_150_steps(name: str, balanced_digits: Task, tmp_path: Path) -> None:
    # The first steps of a run of the usual length: schedules (GINIDG's reversal) depend on how long it is.
    hparams = {"batch_size": 16, **EASY.get(name, {})}
    run = config(setting="Balanced", method=name, steps=5000, hparams=hparams)
    trainer = Trainer(run, balanced_digits, tmp_path, CPU)
    trainer.method.train()
    reached = 0.0
    for index in range(150):
        trainer.step(index)
        if index % 10 == 9:
            logits = trainer.evaluator.complete({}, ["test"])["test"].logits
            reached = float((logits.argmax(1).numpy() == balanced_digits.labels(trainer.evaluator.sets["test"])).mean())
            if reached > 3 * CHANCE:
                return
    pytest.fail(f"{name} reached {reached:.2f} after 150 steps; chance is {CHANCE}")
