"""Tasks kept between jobs: a dataset is read once per worker, a split once for the methods that share it."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

from longshift.training.run_config import RunConfig
from longshift.training.task import Task, make_task


class TaskCache:
    """The most recent tasks."""

    def __init__(self, cache: Path | None = None, most: int = 8) -> None:
        self._cache, self._most = cache, most
        self._tasks: OrderedDict[tuple[Any, ...], Task] = OrderedDict()

    def get(self, config: RunConfig) -> Task:
        """The task of a run."""
        data = (config.data, config.size)
        key = (
            *data,
            config.benchmark,
            config.setting,
            config.target,
            config.ratio,
            config.shrink,
            config.split_seed,
            config.validation,
        )
        if key not in self._tasks:
            known = next((task for other, task in self._tasks.items() if other[:2] == data), None)
            self._tasks[key] = make_task(config, self._cache, known=known)
            while len(self._tasks) > self._most:
                self._tasks.popitem(last=False)
        self._tasks.move_to_end(key)
        return self._tasks[key]
