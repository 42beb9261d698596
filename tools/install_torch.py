"""Install the PyTorch that suits this machine, before anything else asks for the default one.

    python tools/install_torch.py [INDEX]

On Linux, the default wheels contain CUDA libraries. Without an NVIDIA driver these are of no use, so the CPU wheels are
installed if their index answers within a few seconds. In all other cases nothing is installed here, and pip gets the
default wheels later. Uses only the standard library: it runs before anything is installed.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PACKAGES = ("torch", "torchvision")
SECONDS = 5.0
DRIVER = Path("/proc/driver/nvidia/version")
LARGE = "about 7 GB on disk with all packages"
SMALL = "about 2 GB on disk with all packages"


@dataclass(frozen=True)
class Choice:
    """What to install: an index, or the default wheels if it is empty; and why."""

    index: str
    reason: str


def choose(
    platform: str, installed: bool, driver: Callable[[], bool], answers: Callable[[], bool], index: str = CPU_INDEX
) -> Choice:
    """Choose the wheels; later arguments are asked only if earlier ones do not decide."""
    if installed:
        return Choice("", "PyTorch: already installed, kept.")
    if platform != "linux":
        return Choice("", "PyTorch: default wheels, which contain no CUDA libraries on this system.")
    if driver():
        return Choice("", f"PyTorch: default wheels with CUDA ({LARGE}), because an NVIDIA driver was found.")
    if answers():
        return Choice(index, f"PyTorch: CPU wheels from {index} ({SMALL}), because no NVIDIA driver was found.")
    return Choice(
        "",
        f"PyTorch: default wheels with CUDA ({LARGE}). No NVIDIA driver was found, but the index of the CPU wheels, "
        f"{index}, did not answer within {SECONDS:g} seconds.",
    )


def has_driver() -> bool:
    """Whether an NVIDIA driver is loaded, or its tool is installed."""
    return DRIVER.exists() or shutil.which("nvidia-smi") is not None


def index_answers(index: str, seconds: float = SECONDS) -> bool:
    """Whether the index lists wheels of torch within this time, name resolution and slow answers included."""
    found: list[bool] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(f"{index.rstrip('/')}/torch/", timeout=seconds) as answer:
                found.append(b"torch-" in answer.read())
        except (OSError, ValueError):
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return found == [True]


def install(choice: Choice, run: Callable[[Sequence[str]], int]) -> None:
    """Install the chosen wheels; if that fails, the default ones remain to be installed."""
    print(choice.reason, flush=True)
    if not choice.index:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", *PACKAGES, "--index-url", choice.index]
    if run(command) != 0:
        print(
            f"PyTorch: the CPU wheels could not be installed; default wheels with CUDA ({LARGE}) instead.", flush=True
        )


def main(arguments: Sequence[str]) -> None:
    """Choose and install."""
    index = arguments[0] if arguments else CPU_INDEX
    installed = all(importlib.util.find_spec(name) for name in PACKAGES)
    choice = choose(sys.platform, installed, has_driver, lambda: index_answers(index), index)
    install(choice, subprocess.call)


if __name__ == "__main__":
    main(sys.argv[1:])
