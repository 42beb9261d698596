"""BoDA's centroids: when they are computed, replaced and averaged."""

from __future__ import annotations

import torch

from longshift.methods.boda import BoDA
from longshift.rng import HostDraws
from tests.methods.tiny import FEATURES, Tiny


def made(tiny: Tiny) -> BoDA:
    method = tiny.make("boda", values={"momentum": 0.25})
    assert isinstance(method, BoDA)
    method.start(HostDraws(0))
    return method


def test_features_are_wanted_at_multiples_of_the_frequency_but_not_at_the_start() -> None:
    method = made(Tiny())
    assert [step for step in range(8) if method.wants_features(step)] == [2, 4, 6]


def test_a_group_that_comes_late_is_not_averaged_with_nothing() -> None:
    method = made(Tiny(classes=2, domains=2))
    method.receive_features(torch.full((2, FEATURES), 4.0), torch.tensor([0, 1]), torch.tensor([0, 0]))
    assert method.boda.centroids[1].abs().max() == 0
    method.receive_features(torch.full((2, FEATURES), 8.0), torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert method.boda.centroids[..., 0].tolist() == [[7.0, 4.0], [0.0, 8.0]]


def test_a_class_missing_from_a_domain_does_not_disturb() -> None:
    """What stands in the place of the missing centroid has no influence."""
    tiny = Tiny(missing=True)
    ended = []
    for filler in (0.0, 1e6):
        method = made(tiny)
        with torch.no_grad():
            method.boda.centroids[0, -1] = filler
        tiny.train(method, 0, 6)
        ended.append(method.network.classifier.weight)
    assert torch.equal(ended[0], ended[1])
