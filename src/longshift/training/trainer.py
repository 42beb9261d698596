"""The training loop. Its parts have their own modules: steps, evaluation, selection, averaging, the run's folder."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from longshift.progress import Stage, Tick, silent
from longshift.text import counted
from longshift.training.average import Averager, BestWeights
from longshift.training.build_parts import build_method, build_source, build_stepper
from longshift.training.checkpoint import RunWriter, copy_weights, damaged_resume, describe_model, save_model
from longshift.training.device import Stopwatch, compiles, describe_environment, deterministic_kernels, resolve_device
from longshift.training.evaluate import SETS, Evaluator, Outputs, brief, selection_accuracy
from longshift.training.interrupt import Interrupted
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.run_folder import new_result, write_predictions
from longshift.training.steppers import LossLog
from longshift.training.task import Task


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)  # one per evaluation
    seconds: float = 0.0  # of training, without the first step and without evaluations
    diverged_at: int = 0
    out_of_time: bool = False  # the run ends before its planned steps

    def note(self) -> str:
        """Text next to the progress bar."""
        return f"validation {self.rows[-1]['validation']['accuracy']:.3f}" if self.rows else ""

    def outcome(self) -> dict[str, Any]:
        """How the run ended, for result.json."""
        status = "diverged" if self.diverged_at else "done"
        return {"status": status, "steps_done": self.step, "diverged_at": self.diverged_at or None}

    def times(self, total: float, first_step: float) -> dict[str, float]:
        """Seconds, for result.json."""
        per_step = self.seconds / max(self.step - 1, 1)  # the first step is counted by itself
        rounded = {"total": total, "first_step": first_step, "training": self.seconds}
        return {**{name: round(value, 3) for name, value in rounded.items()}, "per_step": per_step}


class Trainer:
    """Trains one method on one task and writes the run's folder.

    Args:
        config: What to train.
        task: The data to train and evaluate on.
        out: The run's folder.
        runtime: Device, precision and what to keep.
        stop: Asked after each step whether to stop.
        on_row: Called with each evaluation; trackers listen here.
        out_of_time: Asked after each step, with the steps done, whether the run ends here with its best weights.
    """

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        out: Path | str,
        runtime: Runtime | None = None,
        stop: Callable[[], bool] = lambda: False,
        on_row: Callable[[dict[str, Any]], None] = lambda row: None,
        out_of_time: Callable[[int], bool] = lambda step: False,
    ) -> None:
        self.config, self.task, self.stop, self.on_row = config, task, stop, on_row
        self.out_of_time = out_of_time
        self.runtime = runtime or Runtime()
        self.device = resolve_device(self.runtime.device)
        self.method, self.inputs = build_method(config, task, self.runtime, self.device)
        self.source = build_source(config, task, self.runtime, self.device, self.inputs, self.method.config.batch_size)
        self.log = LossLog(self.device)
        self.stepper = build_stepper(config, self.runtime, self.device, self.method, self.source, self.log)
        self.evaluator = Evaluator(
            task, self.method, self.source, self.inputs, Path(out).name,
            batch=self.runtime.eval_batch, keep_features=self.runtime.save_predictions,
        )  # fmt: skip
        self.writer = RunWriter(Path(out), config, task, self.device)
        self.model_file = describe_model(config, task, self.method, self.inputs)
        self.progress, self.best = Progress(), BestWeights()
        self.first_step_seconds = 0.0
        self.last_outputs: Outputs = {}  # of the last weights; the same object as the best ones' if those are the last
        kind = config.average
        self.averager = None if kind == "none" else Averager(self.method, kind, config.average_start)

    def run(self, tick: Tick = silent) -> dict[str, Any]:
        """Train to the end, from the folder's checkpoint if it has one; return what is written to result.json.

        Raises:
            Interrupted: The run was asked to stop; its state is saved.
        """
        with deterministic_kernels(self.runtime.deterministic):
            return self._run(tick)

    def _run(self, tick: Tick) -> dict[str, Any]:
        started = time.perf_counter()
        state = self.writer.open()
        if state is not None:
            self._load_state(state)
        self.method.train()
        tick(self.progress.step, "")
        if compiles(self.runtime, self.device, self.config.steps):
            tick(0, Stage("compiling: the first step takes up to a minute"))
        watch = Stopwatch(self.device)
        try:
            while not (self._last_step() or self.progress.diverged_at):
                self.step(self.progress.step)
                self.progress.step += 1
                if not self.first_step_seconds:
                    self.first_step_seconds = watch.lap()  # with compilation and the choice of kernels
                tick(1, self.progress.note())
                self.progress.out_of_time = self.out_of_time(self.progress.step)
                stopping = self.stop() and not self._last_step()
                if stopping or self._evaluation_due() or self._checkpoint_due():
                    self._evaluate_and_save(watch)
                if stopping:
                    self.writer.wait()
                    raise Interrupted(
                        f"stopped at step {self.progress.step} of {self.config.steps}; "
                        f"resume with: longshift train --resume {self.writer.folder.path}"
                    )
        finally:
            self.source.close()
        return self._finish(started, tick)

    def step(self, index: int) -> None:
        """Run one training step; `index` starts at 0."""
        if self.method.wants_features(index):
            self.hand_over_features()
        self.stepper.run(index)
        if self.averager:
            self.averager.update(index)

    def hand_over_features(self) -> None:
        """Give the method the current features of the whole training set, which some ask for before a step."""
        train = self.task.split.train
        features = self.evaluator.features(train)
        y = torch.as_tensor(self.task.labels(train), device=self.device)
        d = torch.as_tensor(self.task.training_domains(train, self.config.pooled), device=self.device)
        self.method.receive_features(features, y, d)

    def _last_step(self) -> bool:
        return self.progress.step >= self.config.steps or self.progress.out_of_time

    def _evaluation_due(self) -> bool:
        return self.progress.step % self.config.eval_every == 0 or self._last_step()

    def _checkpoint_due(self) -> bool:
        every = self.runtime.checkpoint_every
        return bool(every) and self.progress.step % every == 0

    def _evaluate_and_save(self, watch: Stopwatch) -> None:
        """Evaluate if it is time, then save a checkpoint; neither counts as training time."""
        self.progress.seconds += watch.lap()
        if self._evaluation_due():
            self._evaluate()
        state = {name: part.state() for name, part in self._stateful().items()}
        self.writer.save(self.progress.rows, {"progress": vars(self.progress), **state})
        watch.restart()

    def _evaluate(self) -> None:
        terms, step = self.log.read(), self.progress.step
        names = SETS if self.config.evaluate == "full" else SETS[:1]
        averaging = self.averager if self.averager and self.averager.updates else None
        only = averaging if self.config.average_only else None
        score = functools.partial(selection_accuracy, self.task.split)
        with only.swapped() if only else contextlib.nullcontext():
            outputs = self.evaluator.complete({}, names) if all(map(math.isfinite, terms.values())) else {}
            found = self.evaluator.measure(outputs)
            if not found:
                self.progress.diverged_at = step
                return
            self.best.offer(step, score(found["validation"]), outputs, lambda: copy_weights(self.method))
        self.last_outputs = outputs if not only and self._last_step() else {}
        row = {"step": step, "seconds": round(self.progress.seconds, 3), "terms": terms, **brief(found)}
        if averaging and not only:
            with averaging.swapped():
                outputs = self.evaluator.complete({}, names)
            averaged = self.evaluator.measure(outputs)
            if averaged:
                averaging.offer(step, score(averaged["validation"]), outputs)
            row |= {f"averaged_{name}": values for name, values in brief(averaged).items()}
        self.progress.rows.append(row)
        self.on_row(row)

    def _stateful(self) -> dict[str, Any]:
        """What a checkpoint keeps next to the progress."""
        parts = {"best": self.best, "method": self.method, "terms": self.log, "averager": self.averager}
        return {name: part for name, part in parts.items() if part is not None}

    def _load_state(self, state: dict[str, Any]) -> None:
        try:
            self.progress = Progress(**state["progress"])
            for name, part in self._stateful().items():
                part.load_state(state[name])
        except Exception as error:  # a method's own state may fail in its own way
            raise damaged_resume(self.writer.folder.resume, error) from error

    def _finish(self, started: float, tick: Tick) -> dict[str, Any]:
        """Measure the final weights and write what is kept."""
        progress, folder = self.progress, self.writer.folder
        samples = counted(sum(map(len, self.evaluator.sets.values())), "sample")
        tick(0, Stage(f"measuring the final weights on {samples}"))  # of many images, it takes minutes
        result = new_result(self.config, self.method.config.to_dict(), self.task.split)
        result["data_version"] = self.task.store.version
        result |= {**progress.outcome(), **self._measure_final()}
        if self.best and self.runtime.keep_model:
            save_model(folder, self.model_file, self.task, self.best, self.averager, self.method, result)
        if self.best and self.runtime.save_predictions:
            write_predictions(folder, self.evaluator.prediction_arrays(self.best.outputs))
        result["seconds"] = progress.times(time.perf_counter() - started, self.first_step_seconds)
        on_gpu = self.device.type == "cuda"
        result["memory_gib"] = torch.cuda.max_memory_allocated(self.device) / 2**30 if on_gpu else None
        result["environment"] = describe_environment(self.device)
        return self.writer.finish(progress.rows, result)

    def _measure_final(self) -> dict[str, Any]:
        """The parts "last", "selected" and "averaged" of a result; the method has the selected weights afterwards."""

        def part(step: int, outputs: Outputs) -> dict[str, Any]:
            return {"step": step, **self.evaluator.measure_all(self.evaluator.complete(outputs, SETS))}

        found: dict[str, Any] = {"last": None, "selected": None, "averaged": None}
        if not self.progress.diverged_at:
            found["last"] = part(self.progress.step, self.last_outputs)
        if self.best:
            self.method.load_state_dict(self.best.weights)
            found["selected"] = part(self.best.step, self.best.outputs)
            if self.averager and self.averager.best:
                with self.averager.swapped(self.averager.best.weights):
                    found["averaged"] = part(self.averager.best.step, self.averager.best.outputs)
        return found
