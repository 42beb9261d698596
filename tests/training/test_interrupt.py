"""What signals do to a command: SIGTERM, however often, and the first Ctrl-C let it save; the second does not."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from longshift.training.interrupt import graceful_stop


@pytest.fixture(autouse=True)
def past() -> Iterator[list[int]]:
    """The SIGTERMs that went past `graceful_stop`: they would have ended the process, and these tests with it."""
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
    # A shell that starts the tests in the background has them ignore Ctrl-C, which Python then leaves so.
    ctrl_c = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield found
    signal.signal(signal.SIGTERM, before)
    signal.signal(signal.SIGINT, ctrl_c)


def test_repeated_sigterm_asks_once_and_never_kills(past: list[int]) -> None:
    told: list[str] = []
    with graceful_stop(lambda: told.append("stopping")) as asked:
        assert not asked()
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert asked()
    assert told == ["stopping"]
    assert not past


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_after_a_stop_was_asked_for_stops_at_once(first: signal.Signals) -> None:
    with graceful_stop() as asked:
        signal.raise_signal(first)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_sigterm_after_ctrl_c_still_lets_it_save(past: list[int]) -> None:
    with graceful_stop() as asked:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert asked()
    assert not past


def test_handlers_are_those_of_before_afterwards(past: list[int]) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    with graceful_stop():
        signal.raise_signal(signal.SIGTERM)
    assert [signal.getsignal(number) for number in numbers] == before
    signal.raise_signal(signal.SIGTERM)
    assert past == [signal.SIGTERM]
