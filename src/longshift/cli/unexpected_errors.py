"""Errors that no code foresaw, in words: a user gets a sentence and the next command, not a traceback."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from pathlib import Path

from longshift.plugins import plugin_files

# What libraries say when the system gives them no memory.
_OUT_OF_MEMORY = (
    "can't allocate memory", "cannot allocate memory", "failed to map segment", "out of memory", "unable to allocate",
    "not enough memory", "bad_alloc",
)  # fmt: skip
# What they say when it gives them no thread.
_NO_THREAD = ("can't start new thread", "resource temporarily unavailable", "thread creation failed")


def in_words(error: Exception) -> str:
    """What happened and what to do about it."""
    if is_without_thread(error):
        return (
            f"the system does not start another process or thread: {_limit_of_threads()}. Use fewer --workers or "
            "--threads, or raise the limit. Finished work is kept; the same command resumes."
        )
    if is_out_of_memory(error):
        return (
            "the machine or its limit (`ulimit -v`) has too little memory for this command. Free some memory, or use "
            "fewer --workers or --threads, a smaller --image-size or batch size (--set batch_size=...). Finished work "
            "is kept; the same command resumes."
        )
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many files are open. Raise the limit: ulimit -n 4096"
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}"
    if place := _place_in_plugin(error):
        return f"{place}: {type(error).__name__}: {error}. `longshift --debug ...` shows the traceback."
    return (
        f"unexpected {type(error).__name__}: {error}. This is a bug in longshift. Please report it with the traceback, "
        "which `longshift --debug ...` shows."
    )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is a lack of memory; libraries raise it as errors of many kinds."""
    return any(
        isinstance(one, MemoryError)
        or (isinstance(one, OSError) and one.errno == errno.ENOMEM)
        or any(words in str(one).lower() for words in _OUT_OF_MEMORY)
        for one in _chain(error)
    )


def is_without_thread(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is a thread or a process that the system does not start.

    The error number EAGAIN alone does not tell: a pipe that is full for the moment has it, too.
    """
    return any(
        _starts_a_process(one) if isinstance(one, OSError) else any(words in str(one).lower() for words in _NO_THREAD)
        for one in _chain(error)
    )


def _starts_a_process(error: OSError) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    last = Path(frames[-1].filename) if frames else Path()
    return error.errno == errno.EAGAIN and (last.name == "subprocess.py" or last.parent.name == "multiprocessing")


def _limit_of_threads() -> str:
    """The limits that may be the reason; a thread needs memory for its stack."""
    limit = "the limit on processes and threads (`ulimit -u`, or that of the container) is reached"
    try:
        import resource
    except ImportError:  # Windows
        return limit
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return limit + (", or that on memory (`ulimit -v`)" if limited else "")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what caused it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _place_in_plugin(error: Exception) -> str:
    """The last line of the user's own plugins that led to the error; "" if none did."""
    files = plugin_files()
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) in files]
    return f"{lines[-1].filename}, line {lines[-1].lineno}" if lines else ""
