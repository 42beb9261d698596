from typing import Any

import pytest

from tests.methods.oracle import Replay, run


def draws(given: dict[str, Any]) -> dict[str, list[Any]]:
    # The reference draws one more permutation than it has splits.
    return {"permutation": [permutation for step in given["drawn_permutations"] for permutation in step[:-1]]}


@pytest.mark.oracle
def test_pgrad_agrees_with_the_reference() -> None:
    run(Replay("pgrad", "PGrad", {}, draws=draws))
