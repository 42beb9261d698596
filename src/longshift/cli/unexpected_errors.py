"""Errors that no code foresaw, in words: a user gets a sentence and the next command, not a traceback."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from longshift.plugins import plugin_files

# What libraries say when the system gives them no memory, or no thread, which needs memory for its stack.
_OUT_OF_MEMORY = (
    "can't allocate memory", "cannot allocate memory", "failed to map segment", "can't start new thread",
    "out of memory", "unable to allocate", "not enough memory", "bad_alloc", "resource temporarily unavailable",
)  # fmt: skip


def in_words(error: Exception) -> str:
    """What happened and what to do about it."""
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
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if any(words in str(error).lower() for words in _OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _place_in_plugin(error: Exception) -> str:
    """The last line of the user's own plugins that led to the error; "" if none did."""
    files = plugin_files()
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) in files]
    return f"{lines[-1].filename}, line {lines[-1].lineno}" if lines else ""
