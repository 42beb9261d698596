"""What all verbs print with."""

from __future__ import annotations

import pytest

from longshift.cli import common
from longshift.progress import Stage


def test_lines_tables_and_progress_show_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    common.say("[/red] :smile: \x1b[2J")
    common.print_table("[/b]", ["[/red]"], [["[b]ob"], ["s:x:1"]], caption="[/i] \x07")
    common.caution(f"warning: folder/[red] {'long ' * 40}[/red]")
    with common.progress("decoding [/red]", 1) as tick:
        tick(1, "[/b]")
    out, err = capsys.readouterr()
    for text in ("[/red] :smile: \\x1b[2J", "[/b]", "[b]ob", "s:x:1", "[/i]"):
        assert text in out
    assert "decoding [/red]" in err
    assert f"warning: folder/[red] {'long ' * 40}[/red]" in err.splitlines()
    assert "\x1b" not in out + err


@pytest.mark.parametrize(("times", "first", "counts"), [
    ([60, 61, 62, 63, 64], 1, [1, 2, 3, 4, 5]),  # one line per tenth
    ([1, 3, 5], 80, [80, 82]),  # an earlier command did 80 of 82
    ([i / 100 for i in range(40)], 1, [40]),  # short work has one line
    ([10.0 * i for i in range(1, 31)], 1, [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]),
    ([70, 140], 1, [1, 2]),
])  # fmt: skip
def test_lines_of_progress_without_a_terminal(times: list[float], first: int, counts: list[int]) -> None:
    total = first + len(times) - 1
    lines = common.LogLines("work", total, 0.0)
    printed = [lines.after(1 if index else first, now) for index, now in enumerate(times)]
    assert [int(line.split("/")[0].split()[-1]) for line in printed if line] == counts


def test_remaining_time_does_not_count_the_first_piece() -> None:
    lines = common.LogLines("work", 5, 0.0)
    assert "remaining" not in lines.after(1, 60)
    assert "3 seconds" in lines.after(1, 61)


def test_a_stage_is_printed_at_once() -> None:
    lines = common.LogLines("work", 3, 0.0)
    assert "compiling" in lines.after(0, 0.1, Stage("compiling"))
    assert not lines.after(0, 0.2, "compiling")
    lines.after(1, 1)
    lines.after(2, 2)
    assert "remaining" not in lines.after(0, 2.1, Stage("measuring"))


def test_progress_goes_to_standard_error_and_quiet_prints_none(capsys: pytest.CaptureFixture[str]) -> None:
    with common.progress("work", 2) as tick:
        tick(2)
    out, err = capsys.readouterr()
    assert not out
    assert "2/2" in err
    with common.progress("work", 1, quiet=True) as tick:
        tick()
    assert not capsys.readouterr().err
