import pytest

from tests.methods.oracle import Replay, run


@pytest.mark.oracle
def test_erm_agrees_with_the_reference() -> None:
    run(Replay("erm", "ERM", {}))
