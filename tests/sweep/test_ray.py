"""Ray for real: a cluster on this machine, one of whose nodes is lost, and a command that is asked to stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longshift.errors import LongshiftError, UsageError
from longshift.sweep import Launch, LaunchOptions, execute, make_queue
from longshift.sweep.ray import run_ray
from longshift.sweep.state import LEASE
from longshift.training import Runtime, TaskCache
from tests.commands import wait_for
from tests.sweep.small import RUNTIME, run_here, small_plan, table_bytes, write_sweep

# Long enough that a node that is lost, or a command that stops, is in the middle of a job.
FOUR: dict[str, Any] = {"run": {"image_size": 32, "steps": 40, "eval_every": 20, "evaluate": "full"}}

# Ray gives nodes that do not answer up to a minute to come back; those that tests end never do.
IMPATIENT = {
    "health_check_initial_delay_ms": "500", "health_check_period_ms": "500", "health_check_failure_threshold": "3",
    "raylet_rpc_server_reconnect_timeout_base_s": "1", "raylet_rpc_server_reconnect_timeout_max_s": "2",
}  # fmt: skip
SETTINGS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")


def test_without_ray_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, *arguments: Any) -> Any:
        raise ImportError(name)

    for name in SETTINGS:
        monkeypatch.setenv(name, "")
    job_queue = make_queue(small_plan(tmp_path / "s"))
    monkeypatch.setattr("longshift.sweep.ray.importlib.import_module", absent)
    with pytest.raises(UsageError, match=r"\.\[ray\]"):
        run_ray(Launch(job_queue, LaunchOptions(), Runtime()))


def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    with pytest.raises(LongshiftError, match=r"127\.0\.0\.1:1"):
        run_ray(Launch(make_queue(small_plan(tmp_path / "s")), LaunchOptions(address="127.0.0.1:1"), Runtime()))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head node with one processor, for all tests: its worker imports torch once. The last test ends it."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    from ray.cluster_utils import Cluster as Nodes

    with pytest.MonkeyPatch.context() as patch:
        for name, value in IMPATIENT.items():
            patch.setenv(f"RAY_{name}", value)
        for name in SETTINGS:  # this process may have imported Ray without them
            patch.delenv(name, raising=False)
        nodes: Any = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        ray.init(address=nodes.address, log_to_driver=False)
        try:
            yield nodes
        finally:
            ray.shutdown()
            nodes.shutdown()


@pytest.fixture(scope="module")
def four_alone(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("alone")
    run_here(small_plan(folder, **FOUR))
    return table_bytes(folder)


@pytest.mark.slow
def test_a_lost_node_changes_nothing(tmp_path: Path, cluster: Any, four_alone: bytes) -> None:
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    plan = small_plan(tmp_path / "sweep", **FOUR)
    job_queue = make_queue(plan)
    lost: list[int] = []

    def lose_a_node() -> bool:
        # Asked many times a second; two leases say that both nodes are at work, each of which has one processor.
        if not lost and len(list(plan.folder.store.jobs.glob(f"*/{LEASE}"))) > 1:
            lost.append(job_queue.done)
            cluster.remove_node(second, allow_graceful=False)
        return False

    run_ray(Launch(job_queue, LaunchOptions(device="cpu"), RUNTIME, lose_a_node))
    assert lost, "the two nodes never ran at the same time"
    assert not job_queue.deaths, "a job is blamed for the loss of its node"
    assert (job_queue.done, job_queue.failed, job_queue.trouble) == (job_queue.total, 0, "")
    assert table_bytes(tmp_path / "sweep") == four_alone


@pytest.mark.slow
def test_a_command_listens_on_this_machine_only_and_stops_cleanly(tmp_path: Path) -> None:
    """One SIGTERM saves everything; nobody else can reach the ports of a cluster on one machine."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    psutil = pytest.importorskip("psutil")
    folder = write_sweep(
        tmp_path / "s", targets=["ink"], draws=1, run={"steps": 9000, "eval_every": 9000, "hparams": {"batch_size": 4}}
    )
    words = ["sweep", "run", str(folder), "--launcher", "ray", "--device", "cpu", "--workers", "1", "--json"]
    program = "from longshift.cli.main import main; main()"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    process = subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, env=environment)
    wait_for(lambda: list(folder.glob("jobs/*/resume.pt")) or process.poll() is not None)
    everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    sockets = [socket for one in everyone for socket in one.net_connections("tcp") if socket.status == "LISTEN"]
    assert sockets
    assert {socket.laddr.ip for socket in sockets} <= set(LOOPBACK)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate()
    assert process.returncode == 130
    assert json.loads(out)["done"] == 0
    assert list(folder.glob("jobs/*/resume.pt"))
    assert not list(folder.glob(f"jobs/*/{LEASE}"))


# The last test of the cluster, which is gone afterwards.
@pytest.mark.slow
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
    assert job_queue.trouble
    assert not list(plan.folder.store.jobs.glob("*/failure.json"))
    tasks = TaskCache()

    def finish() -> bool:
        return {execute(job, plan.folder.store, RUNTIME, tasks).kind for job in plan.jobs} == {"done"}

    wait_for(finish)  # a worker of the dead node may hold its job for a moment
    assert table_bytes(tmp_path / "sweep") == four_alone
