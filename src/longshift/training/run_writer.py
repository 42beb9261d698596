"""Writes the folder of a run: opens it, keeps checkpoints while the run trains, and closes it with the result."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import torch

from longshift.errors import LongshiftError
from longshift.io import write_json
from longshift.settings import DamagedRecipe, read_recipe, save_split
from longshift.training import environment
from longshift.training.checkpoint import ResumeWriter, damaged_resume, load_resume
from longshift.training.resolve_run import require_version
from longshift.training.run_config import RunConfig
from longshift.training.run_folder import RunFolder, refuse_finished, write_config, write_metrics, write_result
from longshift.training.task import Task


class RunWriter:
    """The folder of one run that is being trained."""

    def __init__(self, path: Path, config: RunConfig, task: Task, device: torch.device) -> None:
        self.folder, self.config, self.task, self.device = RunFolder(path), config, task, device
        self._checkpoints = ResumeWriter(self.folder.resume)

    def open(self) -> dict[str, Any] | None:
        """Write what is known before training; return the state of the checkpoint if there is one to resume from.

        A folder with another run is refused.
        """
        folder = self.folder
        refuse_finished(folder)
        unfinished = folder.resume.exists()
        write_config(folder, self.config)
        if unfinished and folder.split.exists():
            try:
                self._require_split(read_recipe(folder.split).fingerprint)
            except DamagedRecipe as error:
                raise LongshiftError(f"{error}. Remove the file and resume: the run writes it again.") from error
        write_json(folder.environment, environment.describe(self.device))
        save_split(self.task.split, self.task.manifest, folder.split)
        if not unfinished:
            return None
        state = load_resume(folder.resume, self.device)
        own, saved = self.config.fingerprint(), str(state.get("run"))
        if saved != own:
            raise damaged_resume(folder.resume, ValueError(f"it belongs to another run ({saved[:12]}, not {own[:12]})"))
        self._require_split(str(state["split"]))
        require_version(
            str(state["data_version"]),
            self.task.store.version,
            f"the data of {folder.path} have changed since the run started",
        )
        return state

    def _require_split(self, saved: str) -> None:
        """A resumed run must see the files it started with: else validation images could end up in training."""
        current = self.task.split.fingerprint
        if saved != current:
            raise LongshiftError(
                f"the data of {self.folder.path} have changed since the run started (its split was {saved[:12]}, the "
                f"files now give {current[:12]}). Restore them, or start again in another folder."
            )

    def save(self, rows: list[dict[str, Any]], state: dict[str, Any]) -> None:
        """Write the evaluations so far and start to write a checkpoint."""
        write_metrics(self.folder, rows)
        own = {
            "run": self.config.fingerprint(),
            "split": self.task.split.fingerprint,
            "data_version": self.task.store.version,
        }
        self._checkpoints.save({**own, **state})

    def wait(self) -> None:
        """Return when the checkpoint is written."""
        self._checkpoints.wait()

    def finish(self, rows: list[dict[str, Any]], result: dict[str, Any]) -> dict[str, Any]:
        """Write the result, which is returned, and remove the checkpoint."""
        write_metrics(self.folder, rows)
        write_result(self.folder, result)
        with contextlib.suppress(LongshiftError):  # the run is finished: a checkpoint that failed is not needed
            self._checkpoints.close()
        self.folder.resume.unlink(missing_ok=True)
        return result
