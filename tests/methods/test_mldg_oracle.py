import pytest

from tests.methods.oracle import Replay, run


@pytest.mark.oracle
def test_mldg_agrees_with_the_reference() -> None:
    run(Replay("mldg", "MLDG", {"mldg_beta": "beta"}, draws=lambda given: {"permutation": given["permutations"]}))
