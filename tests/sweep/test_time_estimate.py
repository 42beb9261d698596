"""Planning measures on few samples, from all domains, and leaves the task as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from longshift.progress import Tick
from longshift.sweep import make_plan, read_states
from longshift.sweep.time_estimate import Cost, estimate, measure_cost, thinned
from longshift.training import Trainer
from longshift.training.run_config import RunConfig, Runtime
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
    assert cost.seconds_per_step > 0
    assert cost.seconds_per_image > 0
    assert seen[0] < 40 < len(kept.get(config).split.validation)


def test_nothing_is_compiled_to_measure_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Watched(Trainer):
        def __init__(self, config: RunConfig, task: Task, folder: str, runtime: Runtime) -> None:
            asked.append(runtime.compile)
            super().__init__(config, task, folder, runtime)

    monkeypatch.setattr("longshift.sweep.time_estimate.Trainer", Watched)
    measure_cost(digits_config(), Runtime(compile="on"), "cpu", TaskCache())
    assert asked == ["off"]


def test_each_method_is_named_before_it_is_measured_and_a_backbone_is_evaluated_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sweep.toml").write_text(
        'settings = ["Duality"]\nmethods = ["erm", "mmd", "coral"]\ntrials = 1\ndraws = 1\n[[datasets]]\n'
        'path = "digits"\ntargets = ["ink"]\n[run]\nsteps = 4\n'
    )
    known: list[float | None] = []

    def fake(
        config: RunConfig, runtime: Runtime, device: str, tasks: TaskCache, seconds_per_image: float | None = None
    ) -> Cost:
        known.append(seconds_per_image)
        return Cost(2.0, 0.5 if seconds_per_image is None else seconds_per_image)

    monkeypatch.setattr("longshift.sweep.time_estimate.measure_cost", fake)
    notes: list[tuple[str, int, str]] = []

    @contextmanager
    def bar(label: str, total: int) -> Iterator[Tick]:
        yield lambda done=1, note="": notes.append((label, done, note))

    _, made = make_plan(tmp_path)
    found = estimate(made.runs, read_states(made), Runtime(), "cpu", bar)
    assert found.methods == dict.fromkeys(("erm", "mmd", "coral"), 2.0)
    assert known == [None, 0.5, 0.5]
    measured = [(done, note) for label, done, note in notes if label == "measuring"]
    assert measured == [(done, name) for name in ("erm", "mmd", "coral") for done in (0, 1)]
