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
