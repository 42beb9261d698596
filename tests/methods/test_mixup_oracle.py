from typing import Any

import pytest

from tests.methods.oracle import Replay, run


def draws(given: dict[str, Any]) -> dict[str, list[Any]]:
    return {"permutation": given["permutations"], "beta": given["lam"]}


@pytest.mark.oracle
def test_mixup_agrees_with_the_reference() -> None:
    run(Replay("mixup", "Mixup", {"mixup_alpha": "alpha"}, draws=draws))
