"""Fixtures that several packages' tests share."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from longshift.sweep import local_launcher
from longshift.training.task import Task, make_task
from tests.commands import WarmContext
from tests.training.runs import digits_config, train

# A console takes its width from COLUMNS when it is made, at import; then tests could not choose one.
os.environ.pop("COLUMNS", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `gpu` on a machine without CUDA."""
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="needs a CUDA GPU")
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of garbage collections: a full one takes half a second otherwise."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let the interpreter free everything at its end; libraries complain about objects that are left."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def warm_workers() -> Iterator[None]:
    """Sweeps in this process have workers that need not import torch; those of commands are started as users do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_launcher, "CONTEXT", WarmContext())
        yield


@pytest.fixture(scope="session")
def digits_task() -> Task:
    """The embedded digits, split for the target ink."""
    return make_task(digits_config())


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory, digits_task: Task) -> Path:
    """The folder of a finished run on the digits; read it, don't change it."""
    out = tmp_path_factory.mktemp("runs") / "erm-ink"
    train(out, digits_task)
    return out
