"""Fixtures that several packages' tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from longshift.training.task import Task, make_task
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
