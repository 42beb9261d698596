"""Runs of a fit that are compared have the same length, also if time runs short between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.fitting import fit
from longshift.fitting.job_runner import JobRunner, _StepCount
from longshift.fitting.plan import Job, Plan
from longshift.fitting.time_limit import TimeLimit
from longshift.io import read_json
from longshift.progress import Bar, Tick
from longshift.settings import NO_TARGET
from longshift.training import Interrupted
from tests.training.runs import CPU

Slow = Callable[[Callable[[Job], float]], None]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """A clock on which each step of a run takes the seconds that a function gives; 1 ms was measured at the start."""
    now = [0.0]
    monkeypatch.setattr("longshift.fitting.fit_run.TimeLimit", lambda minutes: TimeLimit(minutes, lambda: now[0]))
    monkeypatch.setattr("longshift.fitting.plan_making.seconds_per_step", lambda *args: 0.001)
    train_one = JobRunner._train_one

    def use(seconds: Callable[[Job], float]) -> None:
        def slowly(self: JobRunner, job: Job, remaining: int, tick: Tick, pinned: bool) -> Any:
            def ticking(done: int = 1, note: str = "") -> None:
                now[0] += seconds(job)
                tick(done, note)

            return train_one(self, job, remaining, ticking, pinned)

        monkeypatch.setattr(JobRunner, "_train_one", slowly)

    return use


def vectors() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4)) + np.repeat(np.eye(3, 4), 30, axis=0)
    return x, np.repeat(["a", "b", "c"], 30), np.tile(["north", "south", "west"], 30)


def steps_by_site(folder: Path) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for path in (folder / "sites").glob("*/result.json"):
        run = read_json(path)["run"]
        found.setdefault(run["target"], set()).add(run["steps"])
    return found


@pytest.mark.slow
def test_compared_methods_have_the_same_steps_at_each_site(slow: Slow, tmp_path: Path) -> None:
    """The second method at the first site is slow: that site stays as it is, the others are shortened alike."""
    slow(lambda job: 0.001 if (job.site, job.method) == ("north", "erm") else 0.1)
    x, y, domains = vectors()
    said: list[str] = []
    options: dict[str, Any] = {"method": "erm", "steps": 100, "minutes": 1, "out": tmp_path / "fit", "runtime": CPU}
    done = fit(x, y, domains, compare=True, say=said.append, **options)
    found = steps_by_site(tmp_path / "fit")
    assert found["north"] == {100}
    assert len(found["south"]) == len(found["west"]) == 1
    assert max(*found["south"], *found["west"]) < 100
    kept = read_json(tmp_path / "fit" / "fit.json")["steps"]
    assert {site: {steps} for site, steps in kept["held_out"].items()} == found
    assert kept["final"] == read_json(tmp_path / "fit" / "final" / "result.json")["run"]["steps"] < 100
    assert any("Runs that hold out south or west, and the final model, have" in text for text in said)
    assert "at each site, all methods had the same number" in done.summary.verdict
    assert "at each site, all methods had the same number" in done.report.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_shorter_final_model_does_not_make_sites_differ(slow: Slow, tmp_path: Path) -> None:
    slow(lambda job: 1.0 if job.site == NO_TARGET else 0.001)
    x, y, domains = vectors()
    options: dict[str, Any] = {"method": "erm", "steps": 100, "minutes": 1, "out": tmp_path / "fit", "runtime": CPU}
    done = fit(x, y, domains, compare=True, **options)
    kept = read_json(tmp_path / "fit" / "fit.json")["steps"]
    assert set(kept["held_out"].values()) == {100}
    assert kept["final"] < 100
    assert done.summary.verdict
    assert "sites differ in their number of steps" not in done.summary.verdict


@pytest.mark.slow
def test_a_comparison_that_is_added_later_has_the_steps_of_each_site(slow: Slow, tmp_path: Path) -> None:
    slow(lambda job: 0.001 if job.site == "north" else 0.3)
    x, y, domains = vectors()
    options: dict[str, Any] = {"method": "erm", "steps": 100, "minutes": 1, "out": tmp_path / "fit", "runtime": CPU}
    fit(x, y, domains, **options)
    first = steps_by_site(tmp_path / "fit")
    assert first["north"] == {100} != first["west"]
    fit(x, y, domains, compare=True, **options)
    assert steps_by_site(tmp_path / "fit") == first


@pytest.mark.slow
def test_a_machine_that_keeps_slowing_down_leaves_a_useful_model(slow: Slow, tmp_path: Path) -> None:
    """Each start of a run is slower than the one before. No run has fewer than a third of the planned steps."""
    begun: list[tuple[str, int]] = []

    def seconds(job: Job) -> float:
        if (job.site, job.config.steps) not in begun:
            begun.append((job.site, job.config.steps))
        return 0.1 * float(2 ** len(begun))

    slow(seconds)
    x, y, domains = vectors()
    said: list[str] = []
    out = tmp_path / "fit"
    done = fit(x, y, domains, method="erm", steps=90, minutes=1, out=out, runtime=CPU, say=said.append)
    kept = read_json(out / "fit.json")["steps"]
    assert kept["final"] == kept["held_out"]["west"] == 30
    assert min(kept["held_out"].values()) == 30
    starts = [site for site, _ in begun]
    assert max(starts.count(site) for site in starts) == 2
    slower = [text for text in said if "slower than measured" in text]
    assert len(slower) == len(begun) - 4
    assert "have 30 steps instead of 90. This takes longer than the given time" in slower[-1]
    assert done.report.read_text(encoding="utf-8").count("slower than measured") == 1


def test_only_the_last_sentence_on_slow_training_is_kept() -> None:
    plan = Plan("erm", ("north",), {"steps": 90, "eval_every": 30}, "", "", "", pace="90 steps per run.")
    shorter = plan.with_steps(60, {}, "First.").with_steps(40, {"north": 60}, "Second.")
    assert shorter.training(2) == "2 runs. 90 steps per run. Second."
    assert (shorter.steps_at_first, shorter.fewest_steps) == (90, 30)
    assert (shorter.steps_at("north"), shorter.steps_at(NO_TARGET)) == (60, 40)


def test_a_later_command_keeps_what_an_earlier_one_added(tmp_path: Path) -> None:
    x, y, domains = vectors()
    options: dict[str, Any] = {"method": "erm", "steps": 5, "out": tmp_path / "fit", "runtime": CPU}
    fit(x, y, domains, **options)
    notes: list[str] = []
    first = fit(x, y, domains, compare=True, what_if_labeled=True, bar=noting(notes), **options)
    assert first.summary.verdict
    assert "label_curve" in read_json(tmp_path / "fit" / "fit.json")
    # Of the 10 runs 4 were finished; the last of the list is one of them, but the bar ends at the last number.
    assert [note.split()[0] for note in notes[:: len(notes) // 6]] == [f"{n}/10" for n in range(5, 11)]
    kept, page = (tmp_path / "fit" / "fit.json").read_bytes(), first.report.read_text(encoding="utf-8")
    again = fit(x, y, domains, **options)
    assert again.summary.verdict == first.summary.verdict
    assert (tmp_path / "fit" / "fit.json").read_bytes() == kept
    assert again.report.read_text(encoding="utf-8") == page


def test_a_comparison_that_was_stopped_does_not_delay_a_later_command(tmp_path: Path) -> None:
    x, y, domains = vectors()
    options: dict[str, Any] = {"method": "erm", "steps": 5, "out": tmp_path / "fit", "runtime": CPU}
    fit(x, y, domains, **options)
    with pytest.raises(Interrupted, match="stopped in run 5 of 10"):
        fit(
            x,
            y,
            domains,
            compare=True,
            stop=lambda: (tmp_path / "fit" / "sites" / "bsoftmax-1-north").exists(),
            **options,
        )
    assert fit(x, y, domains, **options).summary.verdict == ""
    assert fit(x, y, domains, compare=True, **options).summary.verdict


def noting(notes: list[str]) -> Bar:
    """A bar that keeps the note of each step of training."""

    @contextmanager
    def bar(label: str, total: int) -> Iterator[Tick]:
        def tick(done: int = 1, note: str = "") -> None:
            if label == "fitting" and done and note:
                notes.append(note)

        yield tick

    return bar


@pytest.mark.parametrize("runs", [[3], [10], [4, 9]])
def test_the_bar_ends_at_its_total(runs: list[int]) -> None:
    """Also if a run diverges after some steps, or starts again with fewer."""
    counts: list[int] = []
    tick = _StepCount(lambda done=1, note="": counts.append(done), 10)
    for steps in runs:
        tick(steps)
    tick.finish()
    assert sum(counts) == 10
