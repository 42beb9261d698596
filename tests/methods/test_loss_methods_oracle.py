"""The loss-only methods agree with the published implementation on every fixture."""

from __future__ import annotations

import pytest

from tests.methods.oracle import Replay, run

REPLAYS = [
    Replay("coral", "CORAL", {"mmd_gamma": "gamma"}),
    Replay("mmd", "MMD", {"mmd_gamma": "gamma"}),
]


@pytest.mark.oracle
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.method)
def test_agrees_with_the_reference(replay: Replay) -> None:
    run(replay)
