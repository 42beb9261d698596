"""What is said of progress where there is no terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from longshift.cli import common
from longshift.cli.log_progress import Lines, opening
from longshift.cli.main import main
from longshift.progress import Stage


def _lines(times: list[float], total: int, pieces: int = 1) -> list[str]:
    """Of work that begins at 0 and has its i-th piece (the first time: `pieces` at once) done at times[i]."""
    lines = Lines("work", total, 0.0)
    said = [lines.after(pieces if index == 0 else 1, now) for index, now in enumerate(times)]
    return [text for text in said if text]


def test_the_first_piece_does_not_count_once_there_are_others() -> None:
    # A minute for the first of five pieces, then a second each.
    assert _lines([60, 61, 62, 63, 64], 5) == [
        "work: 1/5, about 4 minutes remaining",
        "work: 2/5, about 3 seconds remaining",
        "work: 3/5, about 2 seconds remaining",
        "work: 4/5, about 1 second remaining",
        "work: 5/5 in 1.1 minutes",
    ]


def test_what_was_done_in_an_earlier_call_says_nothing_about_the_time() -> None:
    assert _lines([1, 3, 5], 82, pieces=80) == ["work: 80/82", "work: 82/82 in 5 seconds"]


def test_short_work_has_one_line() -> None:
    assert _lines([i / 100 for i in range(40)], 40) == ["work: 40/40 in less than a second"]


def test_no_minute_passes_without_a_line_in_long_work() -> None:
    said = _lines([10.0 * i for i in range(1, 1001)], 1000)
    assert len(said) == pytest.approx(1000 / 6, rel=0.2)
    assert said[0].startswith("work: 6/1000, about ")


def test_a_note_without_a_piece_is_said_once_a_minute() -> None:
    lines = Lines("work", 3, 0.0)
    assert lines.after(0, 0.5, "compiling") == ""
    assert lines.after(0, 61.0, "compiling") == "work: 0/3, compiling"
    assert lines.after(0, 62.0, "compiling") == ""


def test_a_stage_is_said_at_once() -> None:
    lines = Lines("work", 3, 0.0)
    assert lines.after(0, 0.1, Stage("compiling")) == "work: 0/3, compiling"
    assert lines.after(3, 0.2) == "work: 3/3 in less than a second"
    assert lines.after(0, 0.3, Stage("measuring")) == "work: 3/3, measuring"


def test_a_training_in_a_log_says_that_it_compiles_and_what_it_measures_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshift.training.trainer.compiles", lambda *_: True)  # says so; nothing is compiled
    flags = [
        "--data",
        "digits",
        "--target",
        "ink",
        "--method",
        "erm",
        "--steps",
        "1",
        "--device",
        "cpu",
        "--no-keep-model",
    ]
    monkeypatch.setattr("sys.argv", ["longshift", "train", *flags, "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().err.splitlines()
    assert "erm on ink: 0/1, compiling: the first step takes up to a minute" in said
    assert said[-1].startswith("erm on ink: 1/1, measuring the selected weights on ")
    assert said[-1].endswith(" images")


def test_in_a_narrow_terminal_a_stage_stands_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(common, "errors", Console(file=screen, force_terminal=True, width=80, color_system=None))
    with common.progress("work", 3) as tick:
        tick(3)
        tick(0, Stage("measuring the last and selected weights on 1577 images"))
    shown = screen.getvalue()
    assert "work: measuring the last and selected weights on 1577 images\n" in shown
    assert "3/3" in shown.rpartition("images\n")[2]


def test_many_jobs_begin_with_their_number() -> None:
    assert opening(48, "job", 48, ["cpu", "cpu"]) == "48 jobs, 2 at a time on cpu"
    assert opening(48, "job", 1, ["cpu", "cpu"]) == "48 jobs, 1 remaining, 1 at a time on cpu"
    assert opening(9, "run", 8, ["cuda:0", "cuda:1", "cuda:0"]) == "9 runs, 8 remaining, 3 at a time on cuda:0, cuda:1"
    assert opening(9, "job", 8) == "9 jobs, 8 remaining"


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with common.progress("work", 2) as tick:
        tick()
        tick(1, "the end")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "work: 2/2 in less than a second the end\n")
    with common.progress("work", 1, quiet=True) as tick:
        tick()
    assert capsys.readouterr().err == ""
