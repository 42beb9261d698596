"""Fixtures that several packages' tests share.

Heavy packages are imported where they are used: the process that only hands out tests to others needs none of them.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from longshift.training.task import Task

# The same examples each time, and no deadlines: a test depends neither on luck nor on how busy the machine is.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", max_examples=500, deadline=None)  # `make fuzz`
settings.load_profile("fixed")

# A console takes its width from COLUMNS when it is made, at import; then tests could not choose one.
os.environ.pop("COLUMNS", None)

# Nothing that tests import is ever freed: looking for garbage would take a third of the time until the first test.
gc.disable()

# These tests wait for other processes most of the time. They start first, one after another in the first worker of
# pytest-xdist, while the other workers compute.
WAITING = (
    "tests/sweep/test_ray.py",
    "tests/sweep/test_local.py",
    "tests/test_wheel.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put waiting tests first; skip the tests marked `gpu` on a machine without CUDA."""
    import torch

    items.sort(key=lambda item: not item.nodeid.startswith(WAITING))
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="needs a CUDA GPU")
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of garbage collections: a full one takes half a second otherwise."""
    import torch

    gc.freeze()
    gc.enable()
    torch.set_num_threads(1)  # sums depend on it in the last digit, and the workers of sweeps have one


def pytest_sessionfinish() -> None:
    """Let the interpreter free everything at its end; libraries complain about objects that are left."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Those of a test do not depend on the tests that ran before it in its process."""
    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def warm_workers() -> Iterator[None]:
    """Sweeps in this process have workers that need not import torch."""
    from longshift.sweep import local as local_launcher
    from tests.commands import WarmContext

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_launcher, "CONTEXT", WarmContext())
        yield


# What other programs keep at home stays in use: without it, matplotlib would look for all fonts again.
AT_HOME = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "GIT_CONFIG_GLOBAL": ".gitconfig",
    "PYENV_ROOT": ".pyenv",
}


@pytest.fixture(scope="session", autouse=True)
def default_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give tests a cache of their own, and another home, so that none can reach the user's cache.

    The value is the cache in that home, which stays empty.
    """
    home, users = tmp_path_factory.mktemp("home"), Path.home()
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in AT_HOME.items():
            if name not in os.environ and (users / folder).exists():
                patch.setenv(name, str(users / folder))
        patch.setenv("HOME", str(home))
        patch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield home / ".cache" / "longshift"


@pytest.fixture(autouse=True)
def default_cache_stays_empty(default_cache: Path) -> Iterator[None]:
    """Fail a test that writes into the default cache: outside of tests, that is the user's."""
    yield
    if not default_cache.exists():
        return
    names = sorted(str(path.relative_to(default_cache)) for path in default_cache.rglob("*"))
    shutil.rmtree(default_cache)  # the next test is not to blame
    pytest.fail(f"Expected no files in the default cache, got {names[:5]}. Leave LONGSHIFT_CACHE set.")


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Tests end processes, not the machine: what was written can be read without `fsync`, which takes milliseconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def digits_task() -> Task:
    """The embedded digits, split for the target ink."""
    from longshift.training.task import make_task
    from tests.training.runs import digits_config

    return make_task(digits_config())


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory, digits_task: Task) -> Path:
    """The folder of a finished run on the digits; read it, don't change it."""
    from tests.training.runs import train

    out = tmp_path_factory.mktemp("runs") / "erm-ink"
    train(out, digits_task)
    return out
