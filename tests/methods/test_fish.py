"""Fish: the inner walk and its shortened update."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from longshift.methods.fish import Fish, FishConfig
from longshift.nn.network import Network
from longshift.rng import HostDraws
from tests.methods.tiny import Tiny


@pytest.mark.parametrize("freeze", [True, False])
def test_the_walk_is_shortened_with_its_statistics(freeze: bool) -> None:
    """Against a walk on a copy whose whole state is interpolated, as published."""
    torch.manual_seed(0)
    tiny = Tiny()
    body = nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network = Network(body, nn.Linear(5, tiny.classes), freeze_bn=freeze)
    method = Fish(network, tiny.problem(), FishConfig.make({"lr": 1e-2, "meta_lr": 0.3}))
    method.train()
    outer = {key: value.clone() for key, value in network.state_dict().items()}
    walker = copy.deepcopy(network)
    batch = tiny.batch(0)
    method.start(HostDraws(0))
    method.step(batch)

    adam = torch.optim.Adam(walker.parameters(), lr=1e-2)
    for x, y in zip(batch.by_domain(batch.x), batch.by_domain(batch.y), strict=True):
        adam.zero_grad()
        cross_entropy(walker(x), y).backward()
        adam.step()
    for key, end in walker.state_dict().items():
        if end.is_floating_point():
            expected = outer[key] + 0.3 * (end - outer[key])
            torch.testing.assert_close(network.state_dict()[key], expected, rtol=1e-5, atol=1e-7, msg=key)
    moved = not torch.equal(network.state_dict()["featurizer.1.running_mean"], outer["featurizer.1.running_mean"])
    assert moved == (not freeze)
