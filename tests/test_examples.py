"""The examples and the doctests run, and importing longshift stays quick."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import longshift

ROOT = Path(__file__).parents[1]
PLAIN_ROW = r"([\w-]+)  class 0: ([0-9.]+)  class 1: ([0-9.]+)  class 2: ([0-9.]+)  mean: ([0-9.]+)"


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_own_loop() -> None:
    shown = run("examples/own_loop.py", "--methods", "erm,bsoftmax,boda,dann")
    recalls = {row[0]: [float(value) for value in row[1:]] for row in re.findall(PLAIN_ROW, shown)}
    assert list(recalls) == ["cross-entropy", "NDCLLoss", "erm", "bsoftmax", "boda", "dann"]
    assert recalls["NDCLLoss"][2] > recalls["cross-entropy"][2] + 0.1  # the rare class
    assert recalls["bsoftmax"][2] > recalls["erm"][2] + 0.1
    assert min(row[3] for row in recalls.values()) > 0.5


@pytest.mark.slow
def test_embeddings() -> None:
    shown = run("examples/embeddings.py", "--steps", "40", "--methods", "erm,ndcl")
    rows = re.findall(r"(erm|ndcl)\s+([0-9.]+)\s+([0-9.]+)", shown)
    assert [name for name, *_ in rows] == ["erm", "ndcl"]
    assert all(float(accuracy) > 0.3 for _, accuracy, _ in rows)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ndcl_plus", "vrex", "dann"])  # dann has two optimizers, vrex resets its own
def test_a_method_inside_lightning(method: str) -> None:
    pytest.importorskip("lightning")
    shown = run("-W", "ignore", "examples/method_in_lightning.py", "--method", method)
    assert f"{method} after 300 steps" in shown
    found = [float(value) for value in re.findall(r"recall of class \d: ([0-9.]+)", shown)]
    assert len(found) == 3
    assert sum(found) / 3 > 0.5


# tests/test_public_api.py runs the doctests of all modules with public names.
@pytest.mark.parametrize(
    "name",
    [
        "longshift",
        "longshift.fitting.plan",
        "longshift.fitting.site_scores",
        "longshift.report.weak_rule",
        "longshift.text",
    ],
)
def test_doctests(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0


def test_every_name_is_there() -> None:
    for name in longshift.__all__:
        assert getattr(longshift, name) is not None
        assert name in dir(longshift)
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        _ = longshift.fitt


def test_importing_is_quick() -> None:
    heavy = run("-c", "import sys, longshift; print([m for m in ('torch', 'numpy', 'pandas') if m in sys.modules])")
    assert heavy.strip() == "[]"
