"""All registries of the package, for tests that register something and must leave no trace."""

from __future__ import annotations

import pytest

from longshift.data.benchmarks import BENCHMARKS, all_benchmarks
from longshift.data.readers import READERS
from longshift.methods import all_methods
from longshift.methods.registry import METHODS
from longshift.nn.sources import SOURCES
from longshift.registry import VARIABLE
from longshift.report.kinds import KINDS
from longshift.settings import GENERATORS
from longshift.sweep import LAUNCHERS, columns
from longshift.training.augment import AUGMENTATIONS

REGISTRIES = (METHODS, GENERATORS, BENCHMARKS, READERS, SOURCES, AUGMENTATIONS, LAUNCHERS, KINDS)


def restore_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the test, registries hold what they hold now."""
    all_methods()
    all_benchmarks()
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(columns, "_plugins", dict(columns._plugins))
    monkeypatch.setenv(VARIABLE, "")  # first: one that was not set would stay as the test leaves it
    monkeypatch.delenv(VARIABLE)
