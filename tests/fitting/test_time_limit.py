"""The clock of a fit: a run that is too slow is stopped early, and the rest is shortened to what the time allows."""

from __future__ import annotations

import pytest

from longshift.fitting.time_limit import SHARE, TimeLimit


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def late_at(limit: TimeLimit, clock: Clock, steps: int, per_step: float) -> int:
    """The step at which the run is late; 0 if it never is."""
    limit.tick(0)
    for step in range(1, steps + 1):
        clock.now += per_step
        limit.tick(1)
        if limit.late():
            return step
    return 0


def test_without_minutes_there_is_always_time() -> None:
    clock = Clock()
    limit = TimeLimit(None, clock)
    limit.begin(100, 5)
    assert late_at(limit, clock, 100, 1e6) == 0


def test_time_of_an_earlier_command_counts() -> None:
    limit = TimeLimit(10, Clock())
    limit.spend(450)
    assert limit.left == 150
    without = TimeLimit(None, Clock())
    without.spend(450)
    assert without.left == float("inf")


def test_a_run_as_fast_as_planned_goes_through() -> None:
    clock = Clock()
    limit = TimeLimit(10, clock)  # 600 s
    limit.begin(100, 5)
    assert late_at(limit, clock, 100, 0.9) == 0


def test_a_slow_run_is_noticed_early_and_the_rest_fits() -> None:
    clock = Clock()
    limit = TimeLimit(10, clock)
    limit.begin(100, 5)
    assert late_at(limit, clock, 100, 4.0) == 5
    assert limit.left == pytest.approx(580)
    assert limit.affordable() == int(SHARE * 580 / (4.0 * 5))
    limit.begin(limit.affordable(), 5)
    assert late_at(limit, clock, 24, 4.0) == 0


def test_a_run_in_its_second_half_may_finish() -> None:
    clock = Clock()
    limit = TimeLimit(10, clock)
    limit.begin(100, 1)
    limit.tick(0)
    clock.now += 50
    limit.tick(50)
    clock.now += 10_000
    assert not limit.late()


def test_steps_of_an_earlier_command_took_no_time_of_this_one() -> None:
    clock = Clock()
    limit = TimeLimit(10, clock)
    limit.begin(1000, 1)
    limit.tick(900)  # where it resumed
    assert late_at_from_resume(limit, clock) == 0


def late_at_from_resume(limit: TimeLimit, clock: Clock) -> int:
    for step in range(1, 101):
        clock.now += 4
        limit.tick(1)
        if limit.late():
            return step
    return 0


def test_the_fewest_steps_are_always_done() -> None:
    clock = Clock()
    limit = TimeLimit(0.01, clock)
    limit.begin(20, 5)
    assert late_at(limit, clock, 20, 100.0) == 0
