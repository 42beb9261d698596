"""The time left, as a plain line says it where there is no terminal."""

import re

import pytest

from longshift.cli import common


def _left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], times: list[float], total: int
) -> list[str]:
    """What is said to be left when the first call begins at time 0 and piece i is done at times[i]."""
    clock = iter([0.0, *times])
    monkeypatch.setattr("longshift.cli.common.time.monotonic", lambda: next(clock))
    with common.progress("work", total) as tick:
        for _ in times:
            tick()
    return re.findall(r"about (\S+) left", capsys.readouterr().err)


def test_the_first_piece_does_not_count_once_there_are_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A minute for the first of five pieces, then a second each.
    assert _left(monkeypatch, capsys, [60, 61, 62, 63, 64], 5) == [
        "0:04:00",
        "0:00:03",
        "0:00:02",
        "0:00:01",
        "0:00:00",
    ]
