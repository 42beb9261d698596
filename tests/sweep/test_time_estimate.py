"""Planning measures on few samples, from all domains, and leaves the task as it was."""

from __future__ import annotations

import numpy as np
import pytest

from longshift.sweep.time_estimate import measure_cost, thinned
from longshift.training.run_config import Runtime
from longshift.training.task import Task, TaskCache
from tests.training.runs import digits_config


@pytest.mark.parametrize("most", [10, 100, 10**6])
def test_thinned_sets_are_parts_of_the_whole_ones(most: int, digits_task: Task) -> None:
    few, all_ = thinned(digits_task, most).split, digits_task.split
    assert np.array_equal(few.train, all_.train)
    for name in ("validation", "test", "target_indices"):
        thin, whole = getattr(few, name), getattr(all_, name)
        assert np.isin(thin, whole).all()
        assert len(thin) == len(whole) if most >= len(whole) else most <= len(thin) < 2 * most
    assert set(digits_task.manifest.domains[few.validation]) == set(digits_task.manifest.domains[all_.validation])


def test_measuring_looks_at_few_images_and_forgets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watched(task: Task, most: int) -> Task:
        few = thinned(task, most)
        seen.append(len(few.split.validation))
        return few

    monkeypatch.setattr("longshift.sweep.time_estimate.thinned", watched)
    monkeypatch.setattr("longshift.sweep.time_estimate.MEASURED", 20)
    kept, config = TaskCache(), digits_config()
    cost = measure_cost(config, Runtime(), "cpu", kept)
    assert cost.measured
    assert cost.seconds_per_step > 0
    assert cost.seconds_per_image > 0
    assert seen[0] < 40 < len(kept.get(config).split.validation)
