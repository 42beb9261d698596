"""A run killed with -9 at a random step goes on to the same weights, bit for bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

FLAGS = [
    "--data", "digits", "--target", "ink", "--method", "ndcl", "--steps", "30", "--eval-every", "10",
    "--set", "batch_size=6", "--set", "dropout=0.1", "--checkpoint-every", "1", "--device", "cpu", "--quiet",
]  # fmt: skip
PROGRAM = "from longshift.cli.main import main; main()"


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, "train", *arguments], env=environment)


def _step_reached(folder: Path) -> int:
    try:
        state = torch.load(folder / "resume.pt", weights_only=True)
        return int(state["progress"]["step"])
    except FileNotFoundError:
        return 0


@pytest.mark.slow
def test_kill_9_and_resume_is_bit_equal(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert _start(*FLAGS, "--out", str(whole)).wait(120) == 0
    process = _start(*FLAGS, "--out", str(broken))
    stop_at = random.Random().randint(1, 25)
    deadline = time.monotonic() + 120
    while _step_reached(broken) < stop_at and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL, f"the run ended before it could be killed at step {stop_at}"
    assert not (broken / "result.json").exists()
    assert _start("--resume", str(broken), "--quiet", "--device", "cpu").wait(120) == 0
    first, second = load_file(whole / "model.safetensors"), load_file(broken / "model.safetensors")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[k], second[k]) for k in first), f"weights differ after a kill at step {stop_at}"
