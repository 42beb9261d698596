"""`longshift.train`: one run from a request to its result, in a folder that nobody else writes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longshift.data import load_dataset
from longshift.errors import UsageError
from longshift.io import lock_folder
from longshift.nn import check_backbone
from longshift.progress import Bar, no_bar
from longshift.training.device import start_warmup, training_threads, use_threads
from longshift.training.interrupt import graceful_stop
from longshift.training.resolve_run import Request, ResolvedRun, describe_network, resolve
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.run_folder import RunFolder, read_config, refuse_finished, write_config
from longshift.training.task import make_task
from longshift.training.trackers import TrackerKind, open_tracker, tracker_kind
from longshift.training.trainer import Trainer

Say = Callable[[str], None]


@dataclass(frozen=True)
class TrainedRun:
    """A finished run.

    Attributes:
        folder: Where it is kept; `longshift.load_model` and `longshift.evaluate` take it.
        config: Its configuration.
        result: What result.json holds: status, accuracies of the selected and the last weights, times.
    """

    folder: Path
    config: RunConfig
    result: dict[str, Any]


def train(
    request: Request | None = None,
    *,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    runtime: Runtime | None = None,
    track: TrackerKind | None = None,
    bar: Bar = no_bar,
    say: Say = lambda text: None,
) -> TrainedRun:
    """Train one method and keep the run in a folder, as the command `longshift train` does.

    The request is completed and checked by `longshift.resolve`. The folder is locked while the run writes to it.
    Ctrl-C (or SIGTERM) stops after the current step with everything saved; a second Ctrl-C stops at once. The same call
    resumes.

    Args:
        request: A `RunConfig`, or a mapping of its keys. Leave it out to resume a run.
        out: Folder of the run; by default runs/METHOD-TARGET-HASH.
        resume: Folder of a run that was stopped; everything else is read from it.
        runtime: Device, precision and the like; none of it changes what the run is.
        track: Also write to "tensorboard" (in the run's folder) or "mlflow" (next to it).
        bar: Called with a label and a number of steps; returns a context manager that gives a function `tick`.
        say: Called with each note and warning.

    Returns:
        The folder, the configuration and the result.

    Raises:
        UsageError: The request has mistakes; all are listed.
        Interrupted: The run was stopped; the same call or `train(resume=folder)` resumes it.
        LongshiftError: The data cannot be read, or the folder holds another run.

    Example:
        >>> import tempfile
        >>> request = {"data": "digits", "target": "ink", "method": "erm", "steps": 2, "eval_every": 1}
        >>> run = train(request, out=tempfile.mkdtemp(), runtime=Runtime(device="cpu"))
        >>> run.result["status"], run.config.backbone_name
        ('done', 'small_conv')
    """
    runtime = runtime or Runtime()
    run, folder = _open(request, out, resume, runtime, bar, say)
    config = run.config
    if warning := config.never_starts():
        say(f"warning: {warning}")
    start_warmup(runtime, config.steps)
    if config.pretrained:
        check_backbone(config.backbone_name, pretrained=True)  # before the images are decoded
    kind = tracker_kind(track) if track else None
    with lock_folder(folder):  # before the images are decoded, so that a folder in use is refused at once
        task = make_task(run, runtime, bar)
        with (
            use_threads(training_threads(config, runtime)),
            graceful_stop(lambda: say("stopping after this step; press Ctrl-C again to stop at once")) as stop,
            bar(f"{config.method} on {config.target}", config.steps) as tick,
            open_tracker(kind, folder, config) as tracker,
        ):
            result = Trainer(config, task, folder, runtime, stop, tracker.row).run(tick)
            tracker.finish(result)
    return TrainedRun(folder, config, result)


def _open(
    request: Request | None, out: str | Path | None, resume: str | Path | None, runtime: Runtime, bar: Bar, say: Say
) -> tuple[ResolvedRun, Path]:
    if resume is not None:
        if request or (out and Path(out) != Path(resume)):
            raise UsageError("--resume takes everything from the run's folder; drop the other options")
        config = read_config(RunFolder(Path(resume)))
        refuse_finished(RunFolder(Path(resume)))
        return ResolvedRun(config, load_dataset(config.data)), Path(resume)
    if request is None:
        raise UsageError("expected a request (a RunConfig or its keys) or a folder to resume, got neither")
    run = resolve(request, cache=runtime.cache, bar=bar)
    config = run.config
    folder = Path(out) if out else Path("runs") / default_name(config)
    refuse_finished(RunFolder(folder))
    if RunFolder(folder).resume.exists():
        write_config(RunFolder(folder), config)  # refuses another run, before the images are decoded
        say(f"resuming the run in {folder}")
    asked = request.model_dump(exclude_unset=True) if isinstance(request, RunConfig) else request
    if config.benchmark and not asked.get("benchmark"):
        say(f"the names are those of {config.benchmark}: its published counts are used")
    if not (config.vectors or {"image_size", "backbone"} <= asked.keys()):
        say(f"{describe_network(config)} (--backbone and --image-size choose others)")
    return run, folder


def default_name(config: RunConfig) -> str:
    """The name of a run's folder: METHOD-TARGET-HASH."""
    target = "".join(c if c.isalnum() or c in "-_." else "_" for c in config.target)
    return f"{config.method_class.info.name}-{target}-{config.fingerprint()[:8]}"
