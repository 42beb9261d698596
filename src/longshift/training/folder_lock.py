"""One command at a time in a folder that is being written to."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from longshift.errors import LongshiftError
from longshift.files import cannot_write, remove_parts


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other commands out of the folder (made if need be), and sweep up what a killed one left half-written.

    The folder itself is locked, so that nothing is left behind, and the lock ends with its process however that ends.
    Where the file system cannot lock a folder (some network drives), work goes on without.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        if _lock(descriptor, folder):
            remove_parts(folder)  # only now is it certain that nobody is writing them
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            folder.rmdir()  # refused unless it is empty: a request with a mistake in it leaves nothing
        raise
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LongshiftError(
            f"another command is at work in {folder}. Wait until it ends, or choose another --out."
        ) from None
    except OSError:
        return False
    return True
