"""The package must import where the modules and functions of Unix are missing."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import sys

import pytest

from tests.commands import CONTEXT

BLOCKED = {"fcntl", "resource", "pwd", "grp", "termios"}
FUNCTIONS = ("fork", "getuid", "geteuid", "sched_getaffinity", "uname", "pread", "pwrite", "O_CLOEXEC", "O_DIRECTORY")
SIGNALS = ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGPIPE")


class Blocker:
    """Finds no module of Unix."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in BLOCKED:
            raise ImportError(f"no module {name} on Windows")


def import_package() -> list[str]:
    """Import all modules; return their names."""
    import longshift

    found = pkgutil.walk_packages(longshift.__path__, "longshift.")
    names = [module.name for module in found if not module.name.endswith("__main__")]
    for name in names:
        importlib.import_module(name)
    return names


def import_without_unix() -> None:
    """The first pass loads third-party packages, which use what this system has; the second, only our modules."""
    before = import_package()
    for name in list(sys.modules):
        if name.split(".")[0] == "longshift" or name in BLOCKED:
            del sys.modules[name]
    sys.meta_path.insert(0, Blocker())
    for holder, names in ((os, FUNCTIONS), (signal, SIGNALS)):
        for name in names:
            if hasattr(holder, name):
                delattr(holder, name)
    after = import_package()
    assert before == after
    assert len(after) > 150
    assert not BLOCKED & set(sys.modules)


@pytest.mark.slow
def test_every_module_imports_without_the_modules_of_unix() -> None:
    process = CONTEXT.Process(target=import_without_unix)  # a process of its own: this one needs those functions
    process.start()
    process.join(300)
    assert process.exitcode == 0, "see the traceback on standard error"
