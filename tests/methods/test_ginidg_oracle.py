from typing import Any

import pytest
from torch import nn

from longshift.methods.base import Method
from longshift.methods.ginidg import GINIDG
from tests.methods.oracle import Replay, check_linear, run, set_linear


def layers(method: Method) -> dict[str, nn.Module]:
    """The layers beyond the network by the names of the fixtures."""
    assert isinstance(method, GINIDG)
    parts = {"mean": "mean", "log_sigma": "log_variance", "decoder": "decoder"}
    named: dict[str, nn.Module] = {f"generator_{theirs}": method.generator[ours] for theirs, ours in parts.items()}
    named |= {f"gdiscriminator_{i}": layer for i, layer in enumerate(method.real_discriminator.layers)}
    named |= {f"discriminator_{i}": layer for i, layer in enumerate(method.domain_discriminator.layers)}
    return named


def init(method: Method, extra: dict[str, Any]) -> None:
    given: dict[str, Any] = {}
    for name, value in extra.items():
        given |= {f"{name}_{i}": layer for i, layer in enumerate(value)} if isinstance(value, list) else {name: value}
    named = layers(method)
    assert set(given) == set(named)
    for name, layer in named.items():
        set_linear(layer, given[name])


def final(method: Method, expected: dict[str, Any]) -> None:
    compared = [name for name in layers(method) if name in expected]
    assert len(compared) >= 5
    for name in compared:
        check_linear(layers(method)[name], expected[name], name)


def extra_config(case: dict[str, Any]) -> dict[str, Any]:
    first, second = case["hparams"]["disc_hidden"]
    return {"disc_hidden_1": first, "disc_hidden_2": second}


@pytest.mark.oracle
def test_ginidg_agrees_with_the_reference() -> None:
    names = {"n_steps": "", "disc_hidden": ""}
    draws = lambda given: {"normal": given["noise"]}  # noqa: E731
    run(Replay("ginidg", "GINIDG", names, draws=draws, init=init, final=final, extra_config=extra_config))
