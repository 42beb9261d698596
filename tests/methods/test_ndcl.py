"""The ndcl method: its options reach the loss, ablations leave out what they name, draws are used as announced."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from longshift.losses import NDCLLoss, NDCLRecipe
from longshift.losses.ndcl_loss import RELEASED
from longshift.methods import get_method
from longshift.methods.base import Batch, Problem
from longshift.methods.ndcl import ABLATIONS, NDCL, NDCLConfig
from longshift.nn.network import Network
from longshift.rng import HostDraws
from tests.given_draws import GivenDraws

COUNTS = ((40, 10, 5, 0), (3, 30, 0, 8), (6, 6, 6, 6))


class Counting(nn.Module):
    """A featurizer that counts its forward passes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 6)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        result: Tensor = self.layer(x).tanh()
        return result


def make(**values: Any) -> NDCL:
    torch.manual_seed(0)
    method = NDCL(Network(Counting(), nn.Linear(6, 4)), Problem(4, 3, COUNTS), NDCLConfig.make(values))
    method.start(HostDraws(1))
    method.train()
    return method


def samples() -> Batch:
    g = torch.Generator().manual_seed(2)
    y = torch.tensor([0, 0, 1, 2, 1, 1, 3, 1, 0, 1, 2, 3])
    return Batch(torch.randn(12, 5, generator=g), y, torch.arange(3).repeat_interleave(4), 3)


def passes(method: NDCL) -> int:
    featurizer = method.network.featurizer
    assert isinstance(featurizer, Counting)
    return featurizer.calls


def test_defaults_are_the_papers_equations() -> None:
    assert NDCLConfig.make().recipe() == NDCLRecipe()
    assert get_method("ndcl") is NDCL


@pytest.mark.parametrize(
    ("values", "forwards", "terms"),
    [
        ({}, 2, {"loss", "ce", "con", "const"}),
        ({"ablation": "no_weight"}, 2, {"loss", "ce", "con", "const"}),
        ({"ablation": "no_con"}, 1, {"loss", "ce", "const"}),
        ({"alpha": 0.0}, 1, {"loss", "ce", "const"}),
        ({"ablation": "no_const"}, 2, {"loss", "ce", "con"}),
        ({"ablation": "no_aug"}, 1, {"loss", "ce", "con", "const"}),
    ],
)
def test_ablations(values: dict[str, Any], forwards: int, terms: set[str]) -> None:
    method = make(**values)
    logged = method.step(samples())
    assert set(logged) == terms
    assert passes(method) == forwards


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_an_ablation_overrides_what_a_search_has_drawn(ablation: str) -> None:
    recipe = NDCLConfig.make({"alpha": 0.37, "beta": 0.012, "ablation": ablation}).recipe()
    expected: dict[str, Any] = {"alpha": 0.37, "beta": 0.012, **ABLATIONS[ablation]}
    assert recipe == NDCLRecipe(**expected)


@pytest.mark.parametrize("name", RELEASED)
def test_a_given_value_wins_over_the_preset_also_where_it_is_the_default(name: str) -> None:
    papers = getattr(NDCLRecipe(), name)
    config = NDCLConfig.make({"preset": "released", name: papers})
    expected: dict[str, Any] = {**RELEASED, name: papers}
    assert config.recipe() == NDCLRecipe(**expected)
    assert NDCLConfig.make(config.to_dict()) == config
    drawn = NDCLConfig.sample(np.random.default_rng(3))
    on_top = NDCLConfig.make({"preset": "released", name: papers}, base=drawn)
    assert on_top.recipe() == NDCLRecipe(**expected, alpha=drawn.alpha, beta=drawn.beta, rho=drawn.rho)


@pytest.mark.parametrize("values", [{}, {"preset": "released"}, {"prior": "domain", "negatives": "both"}])
def test_loss_is_that_of_the_module_on_the_same_draws(values: dict[str, Any]) -> None:
    method, given = make(**values), samples()
    lam = torch.rand(method.config.recipe().n_lambdas(12), generator=torch.Generator().manual_seed(0))
    method.draws = GivenDraws({"beta": [lam]}, torch.float32)
    terms = method.loss(given)
    assert method.draws.left == {"beta": 0}
    ndcl = NDCLLoss(torch.tensor(COUNTS), recipe=method.config.recipe())
    torch.testing.assert_close(terms.total, ndcl(method.network, given.x, given.y, given.d, lam))


def test_search_space_is_the_published_one() -> None:
    known = NDCLConfig.hyper_parameters()
    found = {name: (known[name].default, known[name].space.describe()) for name in ("alpha", "beta", "rho")}
    assert found == {
        "alpha": (0.1, "10^U(-3, 0)"),
        "beta": (0.1, "10^U(-3, 0)"),
        "rho": (0.2, "U(0.1, 0.3)"),
    }


def test_with_the_domain_prior_alone_it_is_balanced_softmax() -> None:
    """What NDCL can have over BSoftmax lies in its weights, its contrast and its alignment."""
    method = make(prior="domain", weights="none", alpha=0.0, beta=0.0)
    other = get_method("bsoftmax")(method.network, method.problem, get_method("bsoftmax").Config.make({}))
    torch.testing.assert_close(method.loss(samples()).total, other.loss(samples()).total, rtol=1e-6, atol=0)


def test_a_styled_sample_is_aligned_as_one_of_its_style_s_domain() -> None:
    values = {"alpha": 0.0, "prior": "domain", "weights": "none"}
    given = samples()
    style_d = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
    styled = dataclasses.replace(given, style_d=style_d)
    own = make(**values).loss(styled).terms
    partner = make(**values, style_domain="partner").loss(styled).terms
    moved = make(**values).loss(dataclasses.replace(given, d=style_d)).terms
    assert own.keys() == partner.keys()
    torch.testing.assert_close(own["const"], make(**values).loss(given).terms["const"])
    torch.testing.assert_close(partner["const"], moved["const"])
    assert not torch.isclose(own["const"], partner["const"])
    torch.testing.assert_close(partner["ce"], own["ce"])  # the prior stays that of the sample's own domain
    assert not torch.isclose(partner["ce"], moved["ce"])
