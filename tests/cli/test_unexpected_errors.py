"""Errors that no code foresaw are told in words that name the cause and the next step."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from longshift.cli.unexpected_errors import in_words


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "too little memory"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory"), "too little"),
        (ImportError("libtorch.so: failed to map segment from shared object"), "too little memory"),
        (OSError(12, "Cannot allocate memory"), "too little memory"),
        (RuntimeError("can't start new thread"), "`ulimit -u`"),
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "Resource temporarily unavailable"),
        (OSError(24, "Too many open files"), "ulimit -n"),
        (PermissionError(13, "Permission denied", "/x/y"), "/x/y: Permission denied"),
        (KeyError("x"), "--debug"),
    ],
)
def test_unforeseen_errors_are_told_in_words(error: Exception, said: str) -> None:
    assert said in in_words(error)


def test_an_error_in_a_plugin_is_not_called_a_bug_in_longshift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    monkeypatch.setattr("longshift.cli.unexpected_errors.plugin_files", lambda: [file])
    with pytest.raises(KeyError) as failed:
        exec(compile("\n{}['x']", str(file), "exec"), {})
    words = in_words(failed.value)
    assert words.startswith(f"{file}, line 2: KeyError: 'x'")
    assert "a bug" not in words


def test_a_full_pipe_is_not_a_limit_on_processes() -> None:
    """It has the same error number, EAGAIN."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError) as failed:
        fill(writer)
    os.close(reader)
    os.close(writer)
    assert in_words(failed.value) == "Resource temporarily unavailable"


def fill(pipe: int) -> None:
    while True:
        os.write(pipe, bytes(1 << 16))


@pytest.mark.parametrize("start", ["threading.Thread(target=print).start()", "subprocess.run(['true'])", "fork()"])
@pytest.mark.parametrize("memory", ["RLIM_INFINITY", "4 << 30"])
def test_a_limit_on_processes_is_named(start: str, memory: str) -> None:
    """In a process of a user other than the administrator, who has no such limit."""
    code = (
        "import multiprocessing, os, resource, subprocess, threading\n"
        "from multiprocessing import popen_fork\n"
        "from resource import RLIM_INFINITY\n"
        "from longshift.cli.unexpected_errors import in_words\n"
        "def fork():\n    multiprocessing.get_context('fork').Process(target=print).start()\n"
        "if os.getuid() == 0:\n    os.setuid(65534)\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))\n"
        f"try:\n    {start}\n"
        "except (OSError, RuntimeError) as error:\n    print(in_words(error))\n"
        "else:\n    print('started')\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    if "started" in said:
        pytest.skip("the limit does not hold for this user")
    assert "the limit on processes and threads (`ulimit -u`" in said
    assert ("on memory (`ulimit -v`)" in said) == (memory != "RLIM_INFINITY")
