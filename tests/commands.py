"""`longshift` commands in processes of their own, forked from one that has imported everything: torch takes seconds."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
FORK = multiprocessing.get_context("fork")
CONTEXT.set_forkserver_preload(["tests.commands", "tests.preloaded"])


class Command:
    """A running command, with the part of `subprocess.Popen` that tests use. It leads a process group of its own.

    `files` receive its standard output and standard error; `around` is a context in which it runs. Workers of a sweep
    are forked from the command.
    """

    def __init__(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        files: tuple[Path | None, Path | None] = (None, None),
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix="command-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._files = (files[0] or folder / "stdout", files[1] or folder / "stderr")
        for file in self._files:
            file.touch()
        words = [str(argument) for argument in arguments]
        self._process = CONTEXT.Process(target=_run, args=(words, self._files, dict(os.environ), cwd, around))
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, minus the signal that ended it, or None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Signal the command alone."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 600) -> tuple[str, str]:
        """Wait for the end; what it wrote to standard output and standard error."""
        self._process.join(timeout)
        if self.poll() is None:
            self.kill()
            raise subprocess.TimeoutExpired("longshift", timeout)
        out, error = (file.read_text(encoding="utf-8") if file.is_file() else "" for file in self._files)
        return out, error


class WarmContext:
    """Starts the workers of a sweep in place of the context of the local launcher: they need not import torch again."""

    Pipe = staticmethod(CONTEXT.Pipe)

    @staticmethod
    def Process(target: Callable[..., None], args: tuple[object, ...], daemon: bool) -> BaseProcess:
        """A process with the environment of now, as a spawned one has."""
        return CONTEXT.Process(target=_work, args=(dict(os.environ), target, args), daemon=daemon)


class ForkContext:
    """Starts the workers of a command's sweep: copies of the command, which has imported torch."""

    def __init__(self) -> None:
        self._ours: list[Connection] = []

    def Pipe(self) -> tuple[Connection, Connection]:
        """A pipe, of which workers must not keep the command's end: they would not notice its death."""
        ours, theirs = FORK.Pipe()
        self._ours.append(ours)
        return ours, theirs

    def Process(self, target: Callable[..., None], args: tuple[object, ...], daemon: bool) -> BaseProcess:
        """A process that has only its own end of its pipe."""
        return FORK.Process(target=self._work, args=(target, args), daemon=daemon)

    def _work(self, target: Callable[..., None], args: tuple[object, ...]) -> None:
        for connection in self._ours:
            connection.close()
        target(*args)


def _work(environment: dict[str, str], target: Callable[..., None], args: tuple[object, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    target(*args)


def _run(
    arguments: list[str],
    files: tuple[Path, Path],
    environment: dict[str, str],
    cwd: Path | None,
    around: Callable[[], AbstractContextManager[None]],
) -> None:
    """The life of the process: as if it had been started by a shell."""
    import torch

    from longshift.cli.main import main
    from longshift.sweep import local as local_launcher

    local_launcher.CONTEXT = ForkContext()  # type: ignore[assignment]
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, it would be ignored here, too
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    for descriptor, file in zip((1, 2), files, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), descriptor)
    sys.modules["__main__"] = types.ModuleType("__main__")  # or processes that it spawns would import pytest
    sys.argv = ["longshift", *arguments]
    with around():
        if cwd is not None:
            os.chdir(cwd)
        try:
            main()
        finally:
            atexit._run_exitfuncs()


def import_all() -> None:
    """Import what commands need, and draw the embedded images."""
    import longshift.cli
    from longshift.data.digits import digit_images

    digit_images()
    for module in pkgutil.iter_modules(longshift.cli.__path__, "longshift.cli."):
        __import__(module.name)
    for name in ("sklearn.datasets", "torch._dynamo", "longshift.sweep.worker", "longshift.fitting.run"):
        __import__(name)


def wait_for(condition: Callable[[], object], seconds: float = 600, pause: float = 0.05) -> None:
    """Wait until the condition holds, at most `seconds`; look again after each `pause`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(pause)
