"""Launchers: where the jobs of a sweep run. "local" uses processes of this machine, "ray" a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from longshift.registry import Registry
from longshift.sweep.job_queue import JobQueue
from longshift.sweep.local_launcher import make_slots, run_local
from longshift.training import Runtime, TrackerKind


@dataclass(frozen=True)
class LaunchOptions:
    """The options of `longshift sweep run`; a launcher ignores those that mean nothing to it.

    Args:
        device: "auto", "cpu", "cuda", "cuda:1" ...
        jobs_per_gpu: Jobs that share a GPU.
        workers: Most jobs at a time; None: as many as the machine or cluster can take.
        threads: CPU threads per job.
        address: Address of a cluster.
        shared_folder: Whether all machines see the sweep's folder under the same path.
    """

    device: str = "auto"
    jobs_per_gpu: int = 1
    workers: int | None = None
    threads: int = 1
    address: str | None = None
    shared_folder: bool = True


@dataclass(frozen=True)
class Launch:
    """One `longshift sweep run`.

    Args:
        queue: The jobs: `next_job()` gives a job or None, `finish(job, outcome)` takes its outcome, `tell()` updates
            the progress bar, `open` says whether anything is left.
        options: The options of the command.
        runtime: How each job is executed.
        stop: Whether the user asked to stop.
        track: Where to send metrics while jobs run, if anywhere.

    Example:
        >>> @register_launcher("one-by-one")  # doctest: +SKIP
        ... def one_by_one(launch: Launch) -> None:
        ...     while not launch.stop() and (job := launch.queue.next_job()) is not None:
        ...         launch.queue.finish(job, execute(job, launch.queue.store, launch.runtime, tasks))
    """

    queue: JobQueue
    options: LaunchOptions
    runtime: Runtime
    stop: Callable[[], bool] = lambda: False
    track: TrackerKind | None = None


Launcher = Callable[[Launch], None]

LAUNCHERS = Registry[Launcher]("launcher")


def register_launcher(name: str) -> Callable[[Launcher], Launcher]:
    """Decorate a function that runs the jobs of a sweep: `longshift sweep run --launcher NAME` then calls it.

    Args:
        name: Name of the launcher.

    Returns:
        The decorator. The function returns when no job is left, when `launch.stop()` is true, or when
        `launch.queue.trouble` says why the sweep cannot continue.

    Raises:
        LongshiftError: If another launcher has this name.

    Example:
        >>> @register_launcher("here")
        ... def run_here(launch):
        ...     queue, tasks = launch.queue, TaskCache(launch.runtime)
        ...     while not launch.stop() and not queue.trouble and (job := queue.next_job()) is not None:
        ...         queue.finish(job, execute(job, queue.store, launch.runtime, tasks, launch.stop, launch.track))
        ...         queue.tell()
    """

    def add(launcher: Launcher) -> Launcher:
        LAUNCHERS.add(name, launcher)
        return launcher

    return add


@register_launcher("local")
def launch_local(launch: Launch) -> None:
    """Worker processes on this machine."""
    options = launch.options
    slots = make_slots(options.device, options.jobs_per_gpu, options.workers, options.threads)
    run_local(launch.queue, slots, launch.runtime, launch.stop, launch.track)


@register_launcher("ray")
def launch_ray(launch: Launch) -> None:
    """Tasks on a Ray cluster."""
    from longshift.sweep.ray_launcher import run_ray

    run_ray(launch)
