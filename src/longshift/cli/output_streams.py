"""Standard output and standard error that may be lost: the reader of a pipe goes, a terminal closes, a disk is full.

Hours of work do not end because nobody reads about them: what cannot be written is dropped.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from longshift.files import cannot_write

if TYPE_CHECKING:
    from typing_extensions import Buffer


class ForgivingFile(io.RawIOBase):
    """A file descriptor to write to; after an error, everything is dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.lost: OSError | None = None

    def write(self, data: Buffer) -> int:
        """Write bytes, or drop them."""
        size = memoryview(data).nbytes
        if self.lost is not None:
            return size
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.lost = error
            return size

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._descriptor)


def use_forgiving_streams() -> ForgivingFile | None:
    """Replace sys.stdout and sys.stderr; return the file below standard output, None if something else stands there.

    Characters that the terminal does not have are escaped: names in any script must not stop a command.
    """
    sys.stderr, _ = _forgiving(sys.stderr)
    sys.stdout, file = _forgiving(sys.stdout)
    return file


def _forgiving(stream: TextIO) -> tuple[TextIO, ForgivingFile | None]:
    if not isinstance(stream, io.TextIOWrapper):  # a notebook's or a test's own
        return stream, None
    try:
        file = ForgivingFile(stream.fileno())
        stream.flush()
    except OSError:
        return stream, None
    made = io.TextIOWrapper(
        io.BufferedWriter(file), encoding=stream.encoding, errors="backslashreplace",
        line_buffering=stream.line_buffering or file.isatty(),
    )  # fmt: skip
    return made, file


def lost_result(file: ForgivingFile | None) -> str:
    """Why the result on standard output is incomplete; "" if it is complete, or if its reader wanted no more."""
    if file is None:
        return ""
    sys.stdout.flush()
    if file.lost is None or file.lost.errno == errno.EPIPE:
        return ""
    return str(cannot_write("standard output", file.lost))
