from typing import Any

import pytest

from longshift.methods.base import Method
from longshift.methods.boda import BoDA
from tests.methods.oracle import Replay, close, run

NAMES = {"boda_weight": "weight", "boda_start_step": "start_step"}


def after_step(method: Method, expected: dict[str, Any]) -> None:
    assert isinstance(method, BoDA)
    close(method.centroids, expected["centroids_after"], "centroids")


@pytest.mark.oracle
def test_boda_agrees_with_the_reference() -> None:
    run(Replay("boda", "BoDA", NAMES, after_step=after_step))
