"""Rows that were written survive a kill; whatever is damaged is written again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longshift.training.row_file import RowFile

ROWS = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)


def write(folder: Path, *pieces: slice) -> RowFile:
    file = RowFile(folder, 3)
    with file.appending() as writer:
        for piece in pieces:
            writer.write(ROWS[piece])
    return file


def test_pieces_are_read_as_one_array(tmp_path: Path) -> None:
    write(tmp_path, slice(0, 4), slice(4, 5))
    file = write(tmp_path, slice(5, 10))
    assert file.intact() == 10
    found = file.read(7)
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, ROWS[:7])


@pytest.mark.parametrize("cut", [1, 12, 13, 47])
def test_a_piece_that_was_cut_off_is_written_again(tmp_path: Path, cut: int) -> None:
    file = write(tmp_path, slice(0, 4), slice(4, 8))
    file.data.write_bytes(file.data.read_bytes()[:-cut])
    assert file.intact() == 4
    write(tmp_path, slice(4, 10))
    assert file.intact() == 10
    np.testing.assert_array_equal(file.read(10), ROWS)


def test_a_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    file = write(tmp_path, slice(0, 4), slice(4, 8))
    file.lines.write_text(file.lines.read_text()[:-1])
    assert file.intact() == 4


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    file = write(tmp_path, slice(0, 4), slice(4, 8))
    content = bytearray(file.data.read_bytes())
    content[5 * 12] ^= 1
    file.data.write_bytes(bytes(content))
    assert file.intact() == 4


def test_without_files_there_are_no_rows(tmp_path: Path) -> None:
    assert RowFile(tmp_path, 3).intact() == 0
