"""SAMALTDG has no published code: it is tested against its definition."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.methods.samaltdg import SAMALTDG
from longshift.rng import HostDraws
from tests.methods.tiny import Tiny

TINY = Tiny(classes=4, domains=3, per_domain=5)
OFF = {"rho": 0.0, "lambda_adv": 0.0, "lambda_ent": 0.0, "lambda_square": 0.0}


def step(values: dict[str, Any]) -> SAMALTDG:
    """The method after one step, with the gradients of that step still in place."""
    method = TINY.make("samaltdg", values=values).double()
    assert isinstance(method, SAMALTDG)
    method.start(HostDraws(0, dtype=torch.float64))
    method.before_step(0)
    batch = TINY.batch(0)
    method.step(type(batch)(batch.x.double(), batch.y, batch.d, batch.domains))
    return method


def network_gradient(values: dict[str, Any]) -> list[Tensor]:
    grads = [p.grad for p in step({**OFF, **values}).network.parameters()]
    return [g for g in grads if g is not None]


def fresh() -> SAMALTDG:
    method = TINY.make("samaltdg").double()
    assert isinstance(method, SAMALTDG)
    return method


def plain(loss_name: str) -> list[Tensor]:
    """The gradient of one loss in the network, without reversal, SAM or weights."""
    method = fresh()
    batch = TINY.batch(0)
    features = method.network.features(batch.x.double())
    if loss_name == "task":
        loss = cross_entropy(method.network.classifier(features), batch.y)
    elif loss_name == "domain":
        loss = cross_entropy(method.discriminator(features), batch.d)
    elif loss_name == "square":
        loss = -method.network.classifier(features).softmax(1).square().sum() / (2 * len(batch))
    else:
        layer, classes = method.domain_classifiers, TINY.classes
        rows = []
        for row, domain in zip(features, batch.d.tolist(), strict=True):
            block = slice(domain * classes, (domain + 1) * classes)
            rows.append(layer.weight[block] @ row + layer.bias[block])
        loss = cross_entropy(torch.stack(rows), batch.y)
    weights = list(method.network.parameters())
    return list(torch.autograd.grad(loss, weights, materialize_grads=True))


def assert_close(actual: list[Tensor], expected: list[Tensor]) -> None:
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=1e-12)


def test_with_all_weights_zero_it_is_plain_cross_entropy() -> None:
    assert_close(network_gradient({}), plain("task"))


def test_features_learn_the_reverse_of_the_adversaries() -> None:
    task = plain("task")
    for name, loss in (("lambda_adv", "domain"), ("lambda_ent", "entropy")):
        expected = [t - 0.7 * p for t, p in zip(task, plain(loss), strict=True)]
        assert_close(network_gradient({name: 0.7}), expected)


def test_square_loss_is_added_with_its_weight() -> None:
    expected = [t + 0.3 * p for t, p in zip(plain("task"), plain("square"), strict=True)]
    assert_close(network_gradient({"lambda_square": 0.3}), expected)


def test_adversaries_learn_at_full_rate_whatever_the_strengths() -> None:
    for strength in (0.0, 0.5):
        method, reference = step({**OFF, "lambda_adv": strength, "lambda_ent": strength}), fresh()
        batch = TINY.batch(0)
        loss = cross_entropy(reference.discriminator(reference.network.features(batch.x.double())), batch.d)
        expected = torch.autograd.grad(loss, list(reference.discriminator.parameters()))
        found = [p.grad for p in method.discriminator.parameters()]
        assert_close([g for g in found if g is not None], list(expected))


def test_only_the_task_loss_is_taken_at_the_sharpest_point() -> None:
    rho = 0.2
    up = plain("task")
    length = sum(float(g.square().sum()) for g in up) ** 0.5
    method, batch = fresh(), TINY.batch(0)
    with torch.no_grad():
        for weight, g in zip(method.network.parameters(), up, strict=True):
            weight.add_(g, alpha=rho / length)
    loss = cross_entropy(method.network(batch.x.double()), batch.y)
    sharp = torch.autograd.grad(loss, list(method.network.parameters()))
    assert_close(network_gradient({"rho": rho}), list(sharp))
    # The adversarial part is that of the unperturbed weights.
    expected = [s - 0.7 * p for s, p in zip(sharp, plain("domain"), strict=True)]
    assert_close(network_gradient({"rho": rho, "lambda_adv": 0.7}), expected)
