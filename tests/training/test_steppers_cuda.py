"""What only a GPU can show of whole runs: compiled, captured, streamed and packed ones agree with plain ones."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.agreement import Outcome, config_for, term_difference, trained
from longshift.sweep.launch import make_queue
from longshift.sweep.local import make_slots, run_local
from longshift.sweep.run_table import collect
from longshift.training.run_config import Runtime
from longshift.training.task import Task, make_task
from tests.sweep.small import small_plan

pytestmark = pytest.mark.gpu
STEPS = 20


@pytest.fixture(scope="module")
def task() -> Task:
    return make_task(config_for("erm", STEPS))


def _trained(method: str, task: Task, **how: Any) -> Outcome:
    return trained(method, STEPS, task, Runtime(precision="fp32", **how))


@pytest.fixture(scope="module")
def cpu(task: Task) -> Callable[[str], Outcome]:
    """The outcome of a method on the CPU."""
    return functools.cache(lambda method: _trained(method, task, device="cpu"))


@pytest.mark.parametrize("method", ["erm", "ndcl", "ginidg", "dann", "pgrad"])
@pytest.mark.parametrize(
    "how",
    [{"graphs": "off"}, {"graphs": "on"}, {"graphs": "on", "stream": True}],
    ids=["plain", "captured", "streamed"],
)
def test_losses_are_those_of_the_cpu(
    method: str, how: dict[str, Any], task: Task, cpu: Callable[[str], Outcome]
) -> None:
    assert term_difference(cpu(method), _trained(method, task, device="cuda", **how)) < 1e-4


def test_compiled_losses_are_those_of_the_cpu(task: Task, cpu: Callable[[str], Outcome]) -> None:
    found = _trained("ndcl", task, device="cuda", graphs="on", compile="on")
    assert term_difference(cpu("ndcl"), found) < 1e-4


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_on_a_gpu_finishes_all_its_jobs(jobs: int, tmp_path: Path) -> None:
    plan = small_plan(tmp_path / "sweep", methods=["erm", "ndcl"])
    job_queue = make_queue(plan)
    run_local(job_queue, make_slots("cuda", jobs), Runtime(keep_model=False), lambda: False)
    assert (job_queue.done, job_queue.failed) == (8, 0)
    table = collect(tmp_path / "sweep")
    assert set(table["status"]) == {"done"}
    assert all("cpu" not in name for name in table["device"])
    assert all(json.loads(values) for values in table["hparams"])
