"""What the benchmark of the methods' costs times: the whole method, not its warm-up."""

import argparse
from pathlib import Path

import pytest

from benchmarks.common import made_up_task, warm_timer
from benchmarks.methods import schedules_over
from longshift.methods import get_method


@pytest.mark.parametrize("method", ["boda", "eqrm", "ginidg", "tcri"])
def test_schedules_are_over_in_the_first_step(method: str, tmp_path: Path) -> None:
    args = argparse.Namespace(backbone="small_conv", device="cpu", compile="off", batch=2, warm=1, augment=False)
    usual = get_method(method).Config.make()
    timed = warm_timer(method, made_up_task(2, 16), args, 1, schedules_over(method), tmp_path)
    phase = timed.trainer.method.phase
    assert phase(0) == phase(10_000)
    assert all(getattr(usual, name) > 0 for name in schedules_over(method))
    timed.close()


def test_methods_without_a_schedule_are_timed_as_they_are() -> None:
    assert schedules_over("erm") == schedules_over("ndcl") == {}


def test_features_are_handed_over_while_timing(tmp_path: Path) -> None:
    args = argparse.Namespace(backbone="small_conv", device="cpu", compile="off", batch=2, warm=1, augment=False)
    timed = warm_timer("boda", made_up_task(2, 16), args, 200, schedules_over("boda"), tmp_path)
    calls: list[int] = []
    timed.trainer.method.wants_features = lambda index: index == 2  # type: ignore[method-assign]
    timed.trainer.hand_over_features = lambda: calls.append(timed.done)  # type: ignore[method-assign]
    timed.seconds(3)
    assert calls == [2]
    timed.close()
