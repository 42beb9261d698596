from typing import Any

import pytest

from longshift.methods.base import Method
from longshift.methods.dann import DANN
from tests.methods.oracle import Replay, check_linear, run, set_linear


def init(method: Method, extra: dict[str, Any]) -> None:
    assert isinstance(method, DANN)
    for layer, given in zip(method.discriminator.layers, extra["discriminator"], strict=True):
        set_linear(layer, given)


def final(method: Method, expected: dict[str, Any]) -> None:
    assert isinstance(method, DANN)
    layers = method.discriminator.layers
    names = ["disc_input", *[f"disc_hidden{i}" for i in range(len(layers) - 2)], "disc_output"]
    for layer, name in zip(layers, names, strict=True):
        check_linear(layer, expected[name], name)


@pytest.mark.oracle
def test_dann_agrees_with_the_reference() -> None:
    # The fixture names the rates that all methods have too; DANN has its own.
    run(Replay("dann", "DANN", {"lambda": "dann_lambda", "lr": "", "weight_decay": ""}, init=init, final=final))
