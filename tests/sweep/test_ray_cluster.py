"""Ray for real: two nodes on one machine, one of which is lost while it runs a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longshift.sweep.job_queue import make_queue
from longshift.sweep.launchers import Launch, LaunchOptions
from longshift.sweep.ray_launcher import node_store, run_ray
from longshift.sweep.run_job import execute
from longshift.training.task import TaskCache
from tests.commands import wait_for
from tests.sweep.small import RUNTIME, run_here, small_plan, table_bytes

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
pytestmark = pytest.mark.slow


# Long enough that a node that is lost, or a command that stops, is in the middle of a job.
FOUR: dict[str, Any] = {"run": {"image_size": 32, "steps": 40, "eval_every": 20, "evaluate": "full"}}

# Ray gives nodes that do not answer up to a minute to come back; those that tests end never do.
IMPATIENT = {
    "health_check_initial_delay_ms": "500", "health_check_period_ms": "500", "health_check_failure_threshold": "3",
    "raylet_rpc_server_reconnect_timeout_base_s": "1", "raylet_rpc_server_reconnect_timeout_max_s": "2",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head node with one processor, for all tests: its worker imports torch once. The last test ends it."""
    from ray.cluster_utils import Cluster as Nodes

    with pytest.MonkeyPatch.context() as patch:
        for name, value in IMPATIENT.items():
            patch.setenv(f"RAY_{name}", value)
        nodes: Any = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        ray.init(address=nodes.address, log_to_driver=False)
        try:
            yield nodes
        finally:
            ray.shutdown()
            nodes.shutdown()


def _undisturbed(folder: Path, **changes: Any) -> bytes:
    run_here(small_plan(folder, **changes))
    return table_bytes(folder)


@pytest.fixture(scope="module")
def four_alone(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _undisturbed(tmp_path_factory.mktemp("alone"), **FOUR)


@pytest.mark.parametrize("shared", [False])
def test_a_lost_node_changes_nothing(tmp_path: Path, cluster: Any, four_alone: bytes, shared: bool) -> None:
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    plan = small_plan(tmp_path / "sweep", **FOUR)
    job_queue = make_queue(plan)
    claims = (plan.folder.store if shared else node_store()).claims
    lost: list[int] = []

    def lose_a_node() -> bool:
        # Asked many times a second; two claims say that both nodes are at work, each of which has one processor.
        if not lost and claims.exists() and len(list(claims.glob("*.lock"))) > 1:
            lost.append(job_queue.done)
            cluster.remove_node(second, allow_graceful=False)
        return False

    run_ray(Launch(job_queue, LaunchOptions(device="cpu", shared_folder=shared), RUNTIME, lose_a_node))
    assert lost, "the two nodes never ran at the same time"
    assert not job_queue.deaths, "a job is blamed for the loss of its node"
    assert (job_queue.done, job_queue.failed, job_queue.trouble) == (job_queue.total, 0, "")
    assert table_bytes(tmp_path / "sweep") == four_alone


def test_a_stop_keeps_checkpoints_and_the_sweep_goes_on(tmp_path: Path, cluster: Any) -> None:
    run = {"image_size": 32, "steps": 200, "eval_every": 100}  # jobs are asked to stop once a second
    changes: dict[str, Any] = {"draws": 1, "targets": ["ink"], "run": run}
    expected = _undisturbed(tmp_path / "alone", **changes)
    plan = small_plan(tmp_path / "sweep", **changes)
    folder = plan.folder.store.jobs
    job_queue = make_queue(plan)
    run_ray(Launch(job_queue, LaunchOptions(device="cpu"), RUNTIME, lambda: any(folder.glob("*/resume.pt"))))
    assert job_queue.done < job_queue.total
    assert any(folder.glob("*/resume.pt"))
    again = make_queue(plan)
    run_ray(Launch(again, LaunchOptions(device="cpu"), RUNTIME))
    assert (again.done, again.failed) == (1, 0)
    assert table_bytes(tmp_path / "sweep") == expected


# The last test: the cluster is gone afterwards.
def test_a_dead_raylet_fails_no_job(tmp_path: Path, cluster: Any, four_alone: bytes) -> None:
    """The node of the command itself: nothing can run any more, and `sweep run` resumes later."""
    plan = small_plan(tmp_path / "sweep", **FOUR)
    job_queue, killed = make_queue(plan), list[bool]()

    def kill_the_raylet() -> bool:
        if not killed and job_queue.done and job_queue.running:
            killed.append(True)
            cluster.head_node.kill_raylet()
        return False

    run_ray(Launch(job_queue, LaunchOptions(device="cpu"), RUNTIME, kill_the_raylet))
    assert killed
    assert job_queue.failed == 0
    assert job_queue.done < job_queue.total
    assert job_queue.trouble.startswith("the Ray cluster does not run jobs any more")
    assert not list(plan.folder.store.jobs.glob("*/failure.json"))
    tasks = TaskCache()

    def finish() -> bool:
        return {execute(job, plan.folder.store, RUNTIME, tasks).kind for job in plan.jobs} == {"done"}

    wait_for(finish)  # a worker of the dead node may hold its job for a moment
    assert table_bytes(tmp_path / "sweep") == four_alone
