"""The loss-only methods: forward passes, phases, reported terms, ranges."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.methods import get_method
from longshift.methods.base import Batch, Method, Problem
from longshift.methods.eqrm import EQRM
from longshift.methods.tcri import TCRI
from longshift.nn.network import Network
from longshift.rng import HostDraws

# The change of schedule, where there is one, falls on step 2 of 4.
NAMES: dict[str, dict[str, Any]] = {
    "irm": {"anneal": 2},
    "vrex": {"anneal": 2},
    "groupdro": {},
    "coral": {},
    "mmd": {},
    "fishr": {"anneal": 2},
    "eqrm": {"burnin": 2, "eqrm_lr": 1e-3},
    "rdm": {"anneal": 2, "rdm_lr": 2e-3},
    "tcri": {"anneal": 2},
    "focal": {"gamma": 0.5},
    "reweight": {},
    "bsoftmax": {},
    "ldam": {},
}
WIDTH = 7


def make(name: str, classes: int, domains: int, missing: bool = False, **values: Any) -> Method:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(6, WIDTH), nn.ReLU())
    counts = [[3 + 10 * (d + k) for k in range(classes)] for d in range(domains)]
    if missing:
        counts[0][classes - 1] = 0
    problem = Problem(classes, domains, tuple(map(tuple, counts)))
    cls = get_method(name)
    config = cls.Config.make({"lr": 1e-2, **NAMES[name], **values})
    method = cls(Network(body, nn.Linear(WIDTH, classes)), problem, config)
    method.start(HostDraws(0))
    return method.train()


def batches(classes: int, domains: int, n: int, steps: int = 4, missing: bool = False) -> list[Batch]:
    generator = torch.Generator().manual_seed(1)
    result = []
    for _ in range(steps):
        y = torch.randint(classes, (domains, n), generator=generator)
        if missing:
            y[0] = y[0].clamp_max(classes - 2)
        d = torch.arange(domains).repeat_interleave(n)
        result.append(Batch(torch.randn(domains * n, 6, generator=generator), y.flatten(), d, domains))
    return result


def train(method: Method, given: list[Batch], start: int = 0) -> None:
    for index, batch in enumerate(given, start):
        method.before_step(index)
        terms = method.step(batch)
        bad = [key for key, value in terms.items() if not bool(value.isfinite().all())]
        assert not bad, f"step {index}: {bad} not finite"
    bad = [key for key, value in method.state_dict().items() if not bool(value.isfinite().all())]
    assert not bad, f"not finite after training: {bad}"


@pytest.mark.parametrize("name", NAMES)
def test_one_forward_pass_serves_all_domains(name: str) -> None:
    method, calls = make(name, 5, 3), []
    method.network.featurizer.register_forward_hook(lambda module, args, output: calls.append(args[0].shape[0]))
    train(method, batches(5, 3, 4))
    assert calls == [12] * 4


def parameters(modules: list[nn.Module]) -> list[Tensor]:
    return [p.detach().clone() for module in modules for p in module.parameters()]


@pytest.mark.parametrize("repaired", [False, True])
def test_tcri_spurious_layers_freeze_after_annealing_unless_repaired(repaired: bool) -> None:
    method, given = make("tcri", 5, 3, train_spurious=repaired), batches(5, 3, 6)
    assert isinstance(method, TCRI)
    layers = [method.spurious, *method.spurious_classifiers]
    train(method, given[:2])
    before, general = parameters(layers), parameters([method.general])
    train(method, given[2:], 2)
    moved = [not torch.equal(a, b) for a, b in zip(before, parameters(layers), strict=True)]
    assert all(moved) if repaired else not any(moved)
    assert not torch.equal(general[0], method.general.weight)
    assert method.phase(1) != method.phase(2) or repaired


def test_eqrm_repaired_has_the_same_loss_and_another_gradient() -> None:
    given = batches(5, 4, 6)[0]
    reached = {}
    for implicit in (False, True):
        method = make("eqrm", 5, 4, burnin=0, implicit=implicit)
        assert isinstance(method, EQRM)
        method.before_step(0)
        x = given.x.clone().requires_grad_()
        total = method.loss(Batch(x, given.y, given.d, 4)).total
        (gradient,) = torch.autograd.grad(total, x)
        reached[implicit] = total.detach(), gradient
    torch.testing.assert_close(reached[False][0], reached[True][0])
    assert not torch.allclose(reached[False][1], reached[True][1], rtol=1e-2)


def test_vrex_reports_the_last_domain_and_the_mean() -> None:
    method, batch = make("vrex", 5, 3), batches(5, 3, 6)[0]
    method.before_step(0)
    terms = method.loss(batch).terms
    logits = method.predict(batch.x)
    torch.testing.assert_close(terms["nll"], cross_entropy(logits[12:], batch.y[12:]))
    torch.testing.assert_close(terms["mean_nll"], cross_entropy(logits, batch.y))


def test_rdm_takes_one_sample_a_domain() -> None:
    method, given = make("rdm", 5, 3, anneal=1, variance_weight=0.5), batches(5, 3, 1)
    train(method, given)
    terms = method.loss(given[0]).terms
    risks = cross_entropy(method.predict(given[0].x), given[0].y, reduction="none")
    torch.testing.assert_close(terms["variance_penalty"], risks.var())
    train(make("rdm", 5, 1, anneal=1), batches(5, 1, 1))


def test_groupdro_survives_a_huge_risk() -> None:
    method, batch = make("groupdro", 5, 3, eta=0.1), batches(5, 3, 6)[0]
    train(method, [Batch(1e5 * batch.x, batch.y, batch.d, 3)])


@pytest.mark.parametrize(
    ("context", "expected"),
    [("", (5.0, "U(0.1, 10)", 0.004)), ("PACS", (5.0, "U(1, 10)", 0.004)), ("DomainNet", (0.5, "U(0.1, 1)", 0.0))],
)
def test_rdm_ranges_depend_on_the_benchmark(context: str, expected: tuple[float, str, float]) -> None:
    config = get_method("rdm").Config
    default, space = config.hyper_parameters()["rdm_lambda"].resolve((context,))
    variance, _ = config.hyper_parameters()["variance_weight"].resolve((context,))
    assert (default, space.describe(), variance) == expected
