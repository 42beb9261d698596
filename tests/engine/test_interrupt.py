"""What signals do to a command: SIGTERM, however often, and the first Ctrl-C let it save; the second does not."""

from __future__ import annotations

import os
import signal

import pytest

from longshift.engine.interrupt import graceful_stop


def _send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_repeated_sigterm_asks_once_and_never_kills() -> None:
    told: list[str] = []
    with graceful_stop(lambda: told.append("stopping")) as asked:
        assert not asked()
        for _ in range(3):
            _send(signal.SIGTERM)
        assert asked()
    assert told == ["stopping"]


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_after_a_stop_was_asked_for_stops_at_once(first: signal.Signals) -> None:
    with graceful_stop() as asked:
        _send(first)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            _send(signal.SIGINT)


def test_handlers_are_those_of_before_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with graceful_stop():
        _send(signal.SIGTERM)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
