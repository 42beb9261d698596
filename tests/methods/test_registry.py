"""Registered methods: what each says of itself, and methods in other people's loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import timm
import torch
from torch import Tensor, nn

import longshift
from longshift.errors import LongshiftError, UsageError
from longshift.methods import Batch, all_methods, create_method, get_method, list_methods
from longshift.methods.base import Method, Problem
from longshift.nn import Network
from longshift.rng import HostDraws

METHODS = all_methods()


@pytest.mark.parametrize("cls", METHODS.values(), ids=METHODS)
def test_every_hyper_parameter_has_default_space_and_meaning(cls: type[Method]) -> None:
    known = cls.Config.hyper_parameters()
    fields = set(cls.Config.model_fields)
    assert fields == set(known), f"without hp(): {sorted(fields - set(known))}"
    for name, info in known.items():
        assert info.meaning, name
        assert getattr(cls.Config(), name) == info.default
        if not info.instead:
            for value in (info.default, *(value for value, _ in info.variants.values())):
                assert getattr(cls.Config.make({name: value}), name) == value


def test_names_are_found_in_any_case_and_close_ones_offered() -> None:
    assert get_method("GroupDRO") is get_method("groupdro")
    with pytest.raises(UsageError, match="vrexx"):
        get_method("vrexx")


COUNTS = [[30, 3, 9], [3, 30, 9]]


def featurizer() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU())


def samples() -> tuple[Tensor, Tensor, Tensor]:
    x = torch.randn(16, 5, generator=torch.Generator().manual_seed(0))
    return x, torch.arange(16) % 3, torch.arange(16) % 2


def test_names_match_a_pattern_and_a_family() -> None:
    assert list_methods() == list(all_methods()) == longshift.list_methods()
    assert list_methods("NDCL*") == ["ndcl", "ndcl_plus"]
    assert list_methods("nothing") == []
    assert set(list_methods(family="dg")) == {n for n, cls in all_methods().items() if cls.info.family == "dg"}
    with pytest.raises(UsageError, match="`family`"):
        list_methods(family="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list_methods())
def test_every_method_steps_in_a_plain_loop(name: str) -> None:
    method = longshift.create_method(name, featurizer(), COUNTS, feature_dim=8, steps=4, small=True)
    x, y, d = samples()
    before = method.predict(x).detach().clone()
    for index in range(4):
        method.before_step(index)
        if method.wants_features(index):
            method.receive_features(method.network.features(x).detach(), y, d)
        terms = method.step(Batch.from_samples(x, y, d, 2))
        assert all(bool(torch.isfinite(value)) for value in terms.values())
    assert not torch.equal(method.predict(x), before)


def test_it_is_the_method_of_the_registry() -> None:
    created = create_method("ndcl", featurizer(), COUNTS, feature_dim=8, steps=5, seed=3, lr=0.01)
    cls = get_method("ndcl")
    config: Any = cls.Config.make({"lr": 0.01})
    body = featurizer()
    torch.manual_seed(3)
    built = cls(Network(body, nn.Linear(8, 3)), Problem(3, 2, ((30, 3, 9), (3, 30, 9)), 5), config)
    built.start(HostDraws(3))
    batch = Batch.from_samples(*samples(), 2)
    for index in range(3):
        for method in (created, built):
            method.before_step(index)
        assert torch.equal(created.step(batch)["loss"], built.step(batch)["loss"])


def test_counts_as_arrays_and_networks_of_ones_own() -> None:
    own = Network(featurizer(), nn.Linear(8, 3))
    assert create_method("erm", own, np.array(COUNTS)).network is own
    with pytest.raises(ValueError, match="2 classes"):
        create_method("erm", own, [[1, 2], [3, 4]])

    class LikeTimm(nn.Linear):
        num_features = 8

    assert create_method("erm", LikeTimm(5, 8), COUNTS).network.feature_dim == 8
    assert not create_method("erm", LikeTimm(5, 8), COUNTS).network.freeze_bn


def test_timm_models_with_a_layer_after_their_features() -> None:
    network = timm.create_model("mobilenetv3_small_050", num_classes=0)  # 288 features, then a layer of 1024
    method = create_method("erm", network.eval(), COUNTS)
    assert method.predict(torch.zeros(2, 3, 32, 32)).shape == (2, 3)
    with pytest.raises(ValueError, match="7 classes"):
        create_method("erm", timm.create_model("mobilenetv3_small_050", num_classes=7), COUNTS)


def test_random_numbers_of_the_caller_stay_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    body, before = nn.Linear(5, 8), torch.get_rng_state()
    create_method("erm", body, COUNTS, feature_dim=8, seed=5)
    assert torch.equal(torch.get_rng_state(), before)
    assert seeds == []


def test_small_and_given_hyper_parameters() -> None:
    assert create_method("erm", featurizer(), COUNTS, feature_dim=8).config.lr == 5e-5
    assert create_method("erm", featurizer(), COUNTS, feature_dim=8, small=True).config.lr == 1e-3
    with pytest.raises(LongshiftError, match="lrr"):
        create_method("erm", featurizer(), COUNTS, feature_dim=8, lrr=1)
    with pytest.raises(ValueError, match="`feature_dim`"):
        create_method("erm", featurizer(), COUNTS)
    with pytest.raises(ValueError, match="`class_counts`"):
        create_method("erm", featurizer(), torch.tensor([1, 2, 3]), feature_dim=8)
    with pytest.raises(UsageError, match="ndlc"):
        create_method("ndlc", featurizer(), COUNTS, feature_dim=8)


def test_a_batch_needs_equal_domains() -> None:
    x, y, _ = samples()
    with pytest.raises(ValueError, match=r"\[4, 12\]"):
        Batch.from_samples(x, y, (torch.arange(16) >= 4).long(), 2)
    with pytest.raises(ValueError, match=r"\[4, 4\]"):
        Batch.from_samples(x, y, torch.arange(16) % 4, 2)
