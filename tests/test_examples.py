"""The examples and the doctests run, and importing longshift stays quick."""

from __future__ import annotations

import doctest
import importlib
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
PLAIN_ROW = r"([\w-]+)  class 0: ([0-9.]+)  class 1: ([0-9.]+)  class 2: ([0-9.]+)  mean: ([0-9.]+)"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a file of examples/ as a program, in this process: what it prints."""

    def run(name: str, *arguments: str) -> str:
        file = ROOT / "examples" / name
        monkeypatch.setattr(sys, "argv", [str(file), *arguments])
        monkeypatch.chdir(ROOT)
        threads = torch.get_num_threads()
        with torch.random.fork_rng():
            runpy.run_path(str(file), run_name="__main__")
        torch.set_num_threads(threads)
        return capsys.readouterr().out

    return run


@pytest.mark.slow
def test_own_loop(example: Callable[..., str]) -> None:
    shown = example("own_loop.py", "--methods", "erm,bsoftmax,boda,dann")
    recalls = {row[0]: [float(value) for value in row[1:]] for row in re.findall(PLAIN_ROW, shown)}
    assert list(recalls) == ["cross-entropy", "NDCLLoss", "erm", "bsoftmax", "boda", "dann"]
    assert recalls["NDCLLoss"][2] > recalls["cross-entropy"][2] + 0.1  # the rare class
    assert recalls["bsoftmax"][2] > recalls["erm"][2] + 0.1
    assert min(row[3] for row in recalls.values()) > 0.5


@pytest.mark.slow
def test_embeddings(example: Callable[..., str]) -> None:
    shown = example("embeddings.py", "--steps", "40", "--methods", "erm,ndcl")
    rows = re.findall(r"(erm|ndcl)\s+([0-9.]+)\s+([0-9.]+)", shown)
    assert [name for name, *_ in rows] == ["erm", "ndcl"]
    assert all(float(accuracy) > 0.3 for _, accuracy, _ in rows)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ndcl_plus", "vrex", "dann"])  # dann has two optimizers, vrex resets its own
def test_a_method_inside_lightning(example: Callable[..., str], method: str) -> None:
    pytest.importorskip("lightning")
    shown = example("method_in_lightning.py", "--method", method)
    found = [float(value) for value in re.findall(r"recall of class \d: ([0-9.]+)", shown)]
    assert len(found) == 3
    assert sum(found) / 3 > 0.5


# tests/test_public_api.py runs the doctests of all modules with public names.
@pytest.mark.parametrize(
    "name",
    [
        "longshift",
        "longshift.fitting.facts",
        "longshift.fitting.page",
        "longshift.report.weak",
        "longshift.text",
    ],
)
def test_doctests(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0


def test_importing_is_quick() -> None:
    code = "import sys, longshift; print([m for m in ('torch', 'numpy', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.strip() == "[]"
