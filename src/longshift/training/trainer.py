"""The one training loop: steps, evaluation, selection, checkpoints, result."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from longshift.array_types import IntArray
from longshift.errors import LongshiftError
from longshift.files import write_json
from longshift.metrics import Evaluation, fit_temperature
from longshift.progress import Stage, Tick, silent
from longshift.settings import DamagedRecipe, read_recipe, save_split
from longshift.text import counted
from longshift.training import checkpoint, environment, run_folder as record
from longshift.training.assemble import build_method, build_source, build_stepper
from longshift.training.device import compiles, resolve_device
from longshift.training.loss_log import TermLog
from longshift.training.model_file import describe_model, write_model_file
from longshift.training.predictions_file import prediction_arrays, write_predictions
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.run_folder import RunFolder
from longshift.training.score_sets import SETS, feature_rows, judge, posterior_gaps, predict_rows
from longshift.training.task import Task
from longshift.training.weight_averaging import Averager


class Interrupted(LongshiftError):
    """The run was asked to stop and has saved its state."""

    exit_code = 130


@dataclass
class Progress:
    """Where a run stands: what a checkpoint holds beside the method's own state."""

    step: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    best_step: int = 0
    best_accuracy: float = -math.inf
    seconds: float = 0.0
    diverged_at: int = 0
    averaged_step: int = 0
    averaged_accuracy: float = -math.inf


class Trainer:
    """Trains one method on one task and writes the run's folder."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        out: Path | str,
        runtime: Runtime | None = None,
        stop: Callable[[], bool] = lambda: False,
        on_row: Callable[[dict[str, Any]], None] = lambda row: None,
    ) -> None:
        self.config, self.task, self.folder, self.stop = config, task, RunFolder(Path(out)), stop
        self.on_row = on_row  # told of each evaluation: trackers listen here
        self.runtime = runtime or Runtime()
        self.device = resolve_device(self.runtime.device)
        self.method, self.inputs = build_method(config, task, self.runtime, self.device)
        self.model_file = describe_model(config, task, self.method, self.inputs)
        self.progress = Progress()
        self.best: dict[str, Tensor] = {}
        split = task.split
        self.sets: dict[str, IntArray] = {
            "validation": split.validation,
            "test": split.test,
            "target": split.target_indices,
        }
        self.first_step_seconds = 0.0
        self.writer = checkpoint.ResumeWriter(self.folder.resume)
        self.log = TermLog(self.device)
        self.source = build_source(config, task, self.runtime, self.device, self.inputs, self.method.config.batch_size)
        self.stepper = build_stepper(config, self.runtime, self.device, self.method, self.source, self.log)
        self.averager: Averager | None = None
        if config.average != "none":
            self.averager = Averager(self.method, config.average, config.average_start)

    # -- the loop ----------------------------------------------------------------------------------------------

    def run(self, tick: Tick = silent, resume: bool = False) -> dict[str, Any]:
        """Train to the end and return the result (also in result.json)."""
        started = time.perf_counter()
        self._open_folder(resume)
        self.method.train()
        tick(self.progress.step, "")
        clock = time.perf_counter()
        if compiles(self.runtime, self.device, self.config.steps):
            tick(0, Stage("compiling: the first step takes up to a minute"))
        try:
            while self.progress.step < self.config.steps and not self.progress.diverged_at:
                index = self.progress.step
                if self.method.wants_features(index):
                    self.hand_over_features()
                self.stepper.run(index)
                if not self.first_step_seconds:
                    # Compilation and kernel choice happen here; they are told apart from the time of a step.
                    self.synchronise()
                    self.first_step_seconds = time.perf_counter() - clock
                    clock = time.perf_counter()
                if self.averager:
                    self.averager.update(index)
                self.progress.step = index + 1
                tick(1, self._note())
                if self._evaluation_due():
                    self.synchronise()
                    self.progress.seconds += time.perf_counter() - clock
                    self._evaluate()
                    self._save_state()
                    clock = time.perf_counter()
                stopping = self.stop() and self.progress.step < self.config.steps
                if not self._evaluation_due() and (self._checkpoint_due() or stopping):
                    self.synchronise()
                    self.progress.seconds += time.perf_counter() - clock
                    self._save_state()
                    clock = time.perf_counter()
                if stopping:
                    self.writer.wait()
                    raise Interrupted(
                        f"stopped at step {self.progress.step} of {self.config.steps}; "
                        f"go on with: longshift train --resume {self.folder.path}"
                    )
        finally:
            self.source.close()
        if measured := self._to_measure():
            tick(0, measured)
        return self._finish(started)

    def _evaluation_due(self) -> bool:
        step = self.progress.step
        return step % self.config.eval_every == 0 or step == self.config.steps

    def _checkpoint_due(self) -> bool:
        every = self.runtime.checkpoint_every
        return bool(every) and self.progress.step % every == 0

    def _note(self) -> str:
        rows = self.progress.rows
        return f"validation {rows[-1]['validation']['accuracy']:.3f}" if rows else ""

    def synchronise(self) -> None:
        """Wait until the device has done all that was asked of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def hand_over_features(self) -> None:
        """Give the method the current features of the whole training set, which some ask for before a step."""
        train = self.task.split.train
        features = feature_rows(self.method, self.source, self.inputs, train)
        y = torch.as_tensor(self.task.labels(train), device=self.device)
        d = torch.as_tensor(self.task.training_domains(train, self.config.pooled), device=self.device)
        self.method.receive_features(features, y, d)

    # -- evaluation and selection ------------------------------------------------------------------------------

    def _evaluate(self) -> None:
        terms = self.log.read()
        if not all(math.isfinite(value) for value in terms.values()):
            self.progress.diverged_at = self.progress.step
            return
        found = self._look()
        if not found:
            self.progress.diverged_at = self.progress.step
            return
        row: dict[str, Any] = {"step": self.progress.step, "seconds": round(self.progress.seconds, 3), "terms": terms}
        for name, evaluation in found.items():
            row[name] = _brief(evaluation)
        if self.averager and self.averager.updates:
            row |= self._evaluate_average(self.averager)
        self.progress.rows.append(row)
        self.on_row(row)
        score = found["validation"].balanced_accuracy
        if score > self.progress.best_accuracy:
            self.progress.best_accuracy = score
            self.progress.best_step = self.progress.step
            self.best = checkpoint.copy_weights(self.method)

    def _look(self) -> dict[str, Evaluation]:
        """Metrics of the current weights; nothing if a prediction is not finite."""
        names = SETS if self.config.evaluate == "full" else SETS[:1]
        logits = {name: self.predict(name) for name in names if len(self.sets[name])}
        if not all(torch.isfinite(values).all() for values in logits.values()):
            return {}
        return {name: self._judge(name, values) for name, values in logits.items()}

    def _evaluate_average(self, averager: Averager) -> dict[str, Any]:
        """Judge the averaged weights like any other model, and select among them on their own."""
        with averager.swapped():
            found = self._look()
        if found and found["validation"].balanced_accuracy > self.progress.averaged_accuracy:
            self.progress.averaged_accuracy = found["validation"].balanced_accuracy
            self.progress.averaged_step = self.progress.step
            averager.keep()
        return {f"averaged_{name}": _brief(evaluation) for name, evaluation in found.items()}

    def predict(self, name: str) -> Tensor:
        """Logits of the current weights on one of the sets "validation", "test", "target"."""
        return predict_rows(self.method, self.source, self.inputs, self.sets[name])

    def _judge(self, name: str, logits: Tensor) -> Evaluation:
        return judge(self.task, name, logits, self.folder.path.name)

    # -- the folder --------------------------------------------------------------------------------------------

    def _open_folder(self, resume: bool) -> None:
        folder = self.folder
        if folder.finished():
            raise LongshiftError(
                f"{folder.path} holds a finished run; see `longshift evaluate {folder.path}`, or start "
                "another with --out FOLDER"
            )
        if folder.resume.exists() and not resume:
            raise LongshiftError(
                f"{folder.path} holds an unfinished run. Go on with: longshift train --resume {folder.path}"
            )
        record.write_config(folder, self.config)
        if resume and folder.resume.exists() and folder.split.exists():
            try:
                self._same_split(read_recipe(folder.split).fingerprint)
            except DamagedRecipe as error:
                raise LongshiftError(f"{error}. Remove it and go on: the run writes it again.") from error
        write_json(folder.environment, environment.describe(self.device))
        save_split(self.task.split, self.task.manifest, folder.split)
        if resume and folder.resume.exists():
            state = checkpoint.load_resume(folder.resume, self.device)
            self._same_split(state.get("split", self.task.split.fingerprint))  # older checkpoints do not say
            try:
                self._load_state(state)
            except Exception as error:  # a method's own state may fail in its own way
                raise checkpoint.damaged_resume(folder.resume, error) from error

    def _same_split(self, saved: str) -> None:
        """A run that goes on must see the files it began with: else validation images could end up in training."""
        if saved != self.task.split.fingerprint:
            raise LongshiftError(
                f"the data of {self.folder.path} have changed since the run began (its split was {saved[:12]}, the "
                f"files now give {self.task.split.fingerprint[:12]}). Restore them, or start again in another folder."
            )

    def _load_state(self, state: dict[str, Any]) -> None:
        own = self.config.fingerprint()
        if state.get("run", own) != own:  # older checkpoints do not say
            raise LongshiftError(f"it belongs to another run ({state['run'][:12]}, not {own[:12]})")
        self.progress = Progress(**state["progress"])
        self.best = state["best"]
        self.method.load_state(state["method"])
        self.log.load_state(state.get("terms", {}))
        if self.averager:
            self.averager.load_state(state["averager"])

    def _save_state(self) -> None:
        record.write_metrics(self.folder, self.progress.rows)
        state = {"run": self.config.fingerprint(), "progress": vars(self.progress), "best": self.best}
        state["split"] = self.task.split.fingerprint
        state["method"], state["terms"] = self.method.state(), self.log.state()
        if self.averager:
            state["averager"] = self.averager.state()
        self.writer.save(state)

    def _finish(self, started: float) -> dict[str, Any]:
        progress = self.progress
        outcome = record.new_result(self.config, self.method.config.to_dict(), self.task.split)
        outcome |= {
            "status": "diverged" if progress.diverged_at else "done",
            "steps_done": progress.step,
            "diverged_at": progress.diverged_at or None,
        }
        if not progress.diverged_at:
            outcome["last"] = {"step": progress.step, **self._judge_all()}
        if self.best:
            if progress.best_step == progress.step and outcome["last"]:
                outcome["selected"] = outcome["last"]
            else:
                self.method.load_state_dict(self.best)
                outcome["selected"] = {"step": progress.best_step, **self._judge_all()}
            if self.averager and self.averager.best:
                with self.averager.swapped(self.averager.best):
                    outcome["averaged"] = {"step": progress.averaged_step, **self._judge_all()}
            if self.runtime.keep_model:
                self._save_model()
            if self.runtime.save_predictions:
                self._save_predictions()
        trained = max(progress.step - 1, 1)  # the first step is counted by itself
        outcome["seconds"] = {
            "total": round(time.perf_counter() - started, 3),
            "first_step": round(self.first_step_seconds, 3),
            "training": round(progress.seconds, 3),
            "per_step": progress.seconds / trained,
        }
        outcome["memory_gib"] = (
            torch.cuda.max_memory_allocated(self.device) / 2**30 if self.device.type == "cuda" else None
        )
        outcome["environment"] = environment.describe(self.device)
        record.write_metrics(self.folder, progress.rows)
        write_json(self.folder.result, outcome)
        with contextlib.suppress(
            LongshiftError
        ):  # the run is finished: a state that could not be written is not missed
            self.writer.close()
        self.folder.resume.unlink(missing_ok=True)
        return outcome

    def _to_measure(self) -> Stage | None:
        """What `_finish` is about to do, in words: on many images it takes minutes."""
        progress = self.progress
        which = ["last"] if not progress.diverged_at and progress.best_step != progress.step else []
        which += ["selected"] if self.best else []
        which += ["averaged"] if self.best and self.averager and self.averager.best else []
        kind = "vector" if self.config.vectors else "image"
        number = counted(sum(map(len, self.sets.values())), kind)
        return Stage(f"measuring the {' and '.join(which)} weights on {number}") if which else None

    def _judge_all(self) -> dict[str, Any]:
        logits = {name: self.predict(name) for name in SETS if len(self.sets[name])}
        judged = {name: self._judge(name, values).to_dict() for name, values in logits.items()}
        return {**judged, "posterior": posterior_gaps(self.task, logits)}

    def _save_model(self) -> None:
        """The selected weights (now in the method), and how to use them with calibrated probabilities."""
        checkpoint.save_weights(self.folder.model, self.best)
        labels = self.task.labels(self.sets["validation"])
        selected, averaged = fit_temperature(self.predict("validation"), labels), 1.0
        if self.averager and self.averager.best:
            with self.averager.swapped(self.averager.best):
                checkpoint.save_weights(self.folder.averaged, self.method.state_dict())
                averaged = fit_temperature(self.predict("validation"), labels)
        described = dataclasses.replace(self.model_file, temperature=selected, averaged_temperature=averaged)
        write_model_file(self.folder.description, described)

    def _save_predictions(self) -> None:
        def logits(indices: IntArray) -> Tensor:
            return predict_rows(self.method, self.source, self.inputs, indices)

        def features(indices: IntArray) -> Tensor:
            return feature_rows(self.method, self.source, self.inputs, indices)

        write_predictions(self.folder.predictions, prediction_arrays(self.task, self.sets, logits, features))


def _brief(evaluation: Evaluation) -> dict[str, Any]:
    """A row of metrics.jsonl: everything but the confusion matrix."""
    return {name: value for name, value in evaluation.to_dict().items() if name != "confusion"}
