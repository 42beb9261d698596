from typing import Any

import pytest

from longshift.methods.base import Method
from longshift.methods.sagnet import SagNet
from tests.methods.oracle import Replay, check_linear, run, set_linear


def init(method: Method, extra: dict[str, Any]) -> None:
    assert isinstance(method, SagNet)
    set_linear(method.style_classifier, extra["style_classifier"])


def final(method: Method, expected: dict[str, Any]) -> None:
    assert isinstance(method, SagNet)
    check_linear(method.style_classifier, expected["style_classifier"], "style classifier")


def draws(given: dict[str, Any]) -> dict[str, list[Any]]:
    # The reference also draws coefficients for the two swaps of content, which have no use for them.
    return {
        "uniform": [step[0] for step in given["alpha"]],
        "permutation": [permutation for step in given["permutations"] for permutation in step],
    }


@pytest.mark.oracle
def test_sagnet_agrees_with_the_reference() -> None:
    run(Replay("sagnet", "SagNet", {"sag_w_adv": "w_adv"}, draws=draws, init=init, final=final))
