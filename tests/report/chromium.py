"""A real browser, driven from its command line."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

AXE = Path(__file__).parents[2] / ".axe" / "node_modules" / "axe-core" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
    "--virtual-time-budget=3000",
)  # fmt: skip


def browser() -> str | None:
    """$LONGSHIFT_CHROMIUM, or the first browser on the path."""
    given = os.environ.get("LONGSHIFT_CHROMIUM")
    return given or next((found for name in NAMES if (found := shutil.which(name))), None)


needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="no axe-core (npm install --prefix .axe axe-core)")
needs_browser = pytest.mark.skipif(browser() is None, reason="no Chromium on this machine (or in $LONGSHIFT_CHROMIUM)")


def open_page(page: Path, profile: Path, *flags: str) -> tuple[str, list[str]]:
    """The document after its scripts have run, and what it wrote to the console."""
    program = browser()
    assert program is not None
    command = [program, *FLAGS, f"--user-data-dir={profile}", *flags, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
