"""A file of rows of float32 that is written piece by piece and survives a kill.

    rows.bin    the rows, one after the other
    rows.txt    a line for each piece in it: its number of rows and its checksum

A piece counts when its line is complete and its checksum holds. Whatever follows the last such piece is written again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np
import numpy.typing as npt

from longshift.io import write_text

Rows = npt.NDArray[np.float32]


class RowFile:
    """The rows in a folder, each with `columns` numbers."""

    def __init__(self, folder: Path, columns: int) -> None:
        self.data, self.lines, self.columns = folder / "rows.bin", folder / "rows.txt", columns

    def intact(self) -> int:
        """How many rows from the first on are as they were written."""
        return sum(count for count, _ in self._pieces())

    def read(self, count: int) -> Rows:
        """The first rows, memory-mapped."""
        return np.memmap(self.data, dtype=np.float32, mode="r", shape=(count, self.columns))

    @contextmanager
    def appending(self) -> Iterator[RowWriter]:
        """Write after the intact rows; one process at a time."""
        pieces = list(self._pieces())
        write_text(self.lines, "".join(line for _, line in pieces))
        with self.data.open("r+b" if self.data.exists() else "wb") as data, self.lines.open("a") as lines:
            data.truncate(sum(count for count, _ in pieces) * self.columns * 4)
            data.seek(0, os.SEEK_END)
            yield RowWriter(data, lines)

    def _pieces(self) -> Iterator[tuple[int, str]]:
        """Number of rows and line of each intact piece, in order, up to the first that is not."""
        if not (self.data.exists() and self.lines.exists()):
            return
        with self.data.open("rb") as data, self.lines.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                count = line.partition(" ")[0]
                if not (line.endswith("\n") and count.isdecimal()):
                    return
                content = data.read(int(count) * self.columns * 4)
                if len(content) != int(count) * self.columns * 4 or line != _line(int(count), content):
                    return
                yield int(count), line


class RowWriter:
    """Appends pieces."""

    def __init__(self, data: BinaryIO, lines: TextIO) -> None:
        self._data, self._lines = data, lines

    def write(self, rows: Rows) -> None:
        """Append a piece; it counts once this returns."""
        content = np.ascontiguousarray(rows, dtype=np.float32).tobytes()
        self._data.write(content)
        self._data.flush()
        self._lines.write(_line(len(rows), content))
        self._lines.flush()


def _line(count: int, content: bytes) -> str:
    return f"{count} {zlib.crc32(content):08x}\n"
