"""Every method trains on a compiled network as on a plain one: whatever gradients it takes, and in whatever order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from longshift.methods import all_methods
from longshift.methods.base import Method
from longshift.nn.network import Network
from longshift.rng import HostDraws
from tests.methods.tiny import FEATURES, Tiny

STEPS = 6


@pytest.fixture(autouse=True)
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forward and backward are traced as for a GPU, but no code is generated from them."""
    plain = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, **options: plain(module, backend="aot_eager", **options))
    limit, donated = torch._dynamo.config.recompile_limit, torch._functorch.config.donated_buffer
    for config, name in ((torch._dynamo.config, "recompile_limit"), (torch._functorch.config, "donated_buffer")):
        monkeypatch.setattr(config._config[name], "default", config._config[name].default)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    torch._dynamo.config.recompile_limit, torch._functorch.config.donated_buffer = limit, donated


class Deeper(Tiny):
    """With a layer in the middle, whose output the backward pass keeps for itself."""

    def network(self, seed: int = 0) -> Network:
        torch.manual_seed(seed)
        layers = [nn.Conv2d(3, 5, 3), nn.Hardtanh(), nn.Conv2d(5, FEATURES, 3, stride=2), nn.Hardtanh()]
        body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.ReLU())
        return Network(body, nn.Linear(FEATURES, self.classes))


def _trained(tiny: Tiny, name: str, compiled: bool) -> Method:
    method = tiny.make(name)
    if compiled:
        method.network.compile_featurizer()
    method.start(HostDraws(0))
    tiny.train(method, 0, STEPS)
    return method


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, cls in all_methods().items() if cls.by_steps])
def test_a_compiled_network_ends_where_a_plain_one_does(name: str) -> None:
    tiny = Deeper()
    _trained(tiny, "erm", compiled=True)  # a worker of a sweep has compiled for another method before
    expected, found = (_trained(tiny, name, compiled).state_dict() for compiled in (False, True))
    for key, value in expected.items():
        assert torch.allclose(found[key], value, rtol=1e-4, atol=1e-5), f"{key} differs"


@pytest.mark.slow
def test_several_gradients_of_one_pass_may_be_taken_in_another_thread() -> None:
    """As for a GPU, where autograd has a thread of its own: options that count in one thread would not reach it."""
    network = Deeper().network()
    network.compile_featurizer()
    parameters = list(network.parameters())
    with ThreadPoolExecutor(1) as other:
        for times in (1, 2):  # compiled for gradients that are taken once
            total = network(torch.rand(4, 3, 8, 8)).sum()
            for _ in range(times):
                other.submit(torch.autograd.grad, total, parameters, retain_graph=times > 1).result()
