import pytest

from tests.methods.oracle import Replay, run


@pytest.mark.oracle
def test_fish_agrees_with_the_reference() -> None:
    run(Replay("fish", "Fish", {}))
