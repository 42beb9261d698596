"""The environment of a run: versions, hardware, commit."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import torch

import longshift


def describe(device: torch.device) -> dict[str, str]:
    """Versions and hardware, as strings."""
    packages = {name: _version(name) for name in ("torch", "torchvision", "timm", "numpy")}
    return {
        "longshift": longshift.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        **packages,
        "system": platform.platform(),
        "cpu": cpu_name(),
        "threads": str(torch.get_num_threads()),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cuda": str(torch.version.cuda or "") if device.type == "cuda" else "",
    }


@functools.cache
def commit() -> str:
    """The git commit of the source tree, with "+" when it has changes.

    Outside a checkout (a container, a copied tree) it is $LONGSHIFT_COMMIT, or "".
    """
    if "LONGSHIFT_COMMIT" in os.environ:
        return os.environ["LONGSHIFT_COMMIT"]
    here = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=here, capture_output=True, text=True, timeout=5, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no", "--", "."],
            cwd=here, capture_output=True, text=True, timeout=5, check=True,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return head + ("+" if changed else "")


@functools.cache
def cpu_name() -> str:
    """The processor's model name, where the system has it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
