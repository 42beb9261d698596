"""Methods against plain loops where the fixtures do not reach.

Two to five domains, odd batches, domains without some classes, both sides of every change of schedule, unusual
hyper-parameters, and an interruption on the way.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from longshift.methods import get_method
from longshift.methods.base import Batch, Method, Problem
from longshift.nn.network import Network
from longshift.rng import HostDraws
from tests.methods.loops import LOOPS, Part

STEPS = 6
INPUTS, WIDTH = 6, 5
SIZES = [(2, 2, 3), (4, 65, 2), (5, 4, 5)]  # domains, classes, samples per domain


def dann(turns: int, penalty: float, depth: int, beta1: float) -> dict[str, Any]:
    rates = {"lr_g": 1e-2, "lr_d": 3e-3, "weight_decay_g": 2e-3, "weight_decay_d": 1e-2}
    shape = {"mlp_width": 4, "mlp_depth": depth}
    return {**rates, **shape, "dann_lambda": 3, "d_steps_per_g_step": turns, "grad_penalty": penalty, "beta1": beta1}


# Schedules change at once, on the way, on the last step, and never.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("erm", {}),
    *[("irm", {"irm_lambda": 40, "anneal": anneal}) for anneal in (0, 1, 3, STEPS - 1, STEPS)],
    *[("vrex", {"vrex_lambda": 40, "anneal": anneal}) for anneal in (0, 1, 3, STEPS - 1, STEPS)],
    *[("groupdro", {"eta": eta}) for eta in (0.0, 1e-3, 10)],
    ("mixup", {"alpha": 3}),
    *[("mldg", {"beta": beta, "n_meta_test": tests}) for beta in (0.0, 4) for tests in (1, 2, 3)],
    *[("fish", {"meta_lr": rate}) for rate in (0.05, 0.7, 1)],
    *[
        ("fishr", {"fishr_lambda": 300, "anneal": a, "ema": ema})
        for a, ema in ((0, 0.5), (1, 0.0), (3, 0.99), (9, 0.9))
    ],
    *[(name, {"gamma": gamma}) for name in ("coral", "mmd") for gamma in (0.1, 10)],
    *[("dann", dann(*values)) for values in ((0, 0.5, 3, 0.0), (1, 0.0, 2, 0.5), (2, 7.0, 4, 0.9), (4, 0.1, 5, 0.5))],
    *[("sagnet", {"w_adv": weight}) for weight in (0.01, 10)],
]


def make(name: str, values: dict[str, Any], domains: int, classes: int, seed: int = 0) -> Method:
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(INPUTS, WIDTH), nn.ReLU())
    problem = Problem(classes, domains, tuple((1,) * classes for _ in range(domains)), STEPS)
    cls = get_method(name)
    common = {} if name == "dann" else {"lr": 1e-2, "weight_decay": 3e-3}
    return (
        cls(Network(body, nn.Linear(WIDTH, classes)), problem, cls.Config.make({**common, **values})).double().train()
    )


def parts_of(step: int, domains: int, classes: int, n: int) -> list[Part]:
    """Samples of each domain; domain d lacks the last d classes, and one sample occurs in every domain."""
    generator = torch.Generator().manual_seed(step)
    same = torch.randn(INPUTS, generator=generator, dtype=torch.float64)
    parts = []
    for domain in range(domains):
        x = torch.randn(n, INPUTS, generator=generator, dtype=torch.float64) * (1 + domain / 4)
        x[domain % n] = same
        parts.append((x, torch.randint(max(classes - domain, 1), (n,), generator=generator)))
    return parts


def joined(parts: list[Part]) -> Batch:
    domains, n = len(parts), len(parts[0][1])
    x, y = torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])
    return Batch(x, y, torch.arange(domains).repeat_interleave(n), domains)


def close(actual: Tensor, expected: Tensor, what: str) -> None:
    torch.testing.assert_close(
        actual.detach(), expected.detach(), rtol=1e-10, atol=1e-10, msg=lambda text: f"{what}: {text}"
    )


# MLDG must have a domain left to train on.
SIZED = [(*case, *size) for case in CASES for size in SIZES if case[1].get("n_meta_test", 1) < size[0]]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values", "domains", "classes", "n"), SIZED, ids=str)
def test_agrees_with_plain_loops(name: str, values: dict[str, Any], domains: int, classes: int, n: int) -> None:
    method = make(name, values, domains, classes)
    loop = LOOPS[name](method)
    draws, same_draws = (HostDraws(0, dtype=torch.float64) for _ in range(2))
    method.start(draws)
    for step in range(STEPS):
        if step == 3:  # another process goes on from what was saved
            saved = copy.deepcopy(method.state())
            method = make(name, values, domains, classes, seed=1)
            method.start(draws)
            method.load_state(saved)
        parts = parts_of(step, domains, classes, n)
        method.before_step(step)
        draws.begin(step)
        same_draws.begin(step)
        terms = method.step(joined(parts))
        for key, value in loop.step(step, parts, same_draws).items():
            close(terms[key], value, f"step {step}: {key}")
        expected = dict(loop.copied.named_parameters())
        for key, weight in method.named_parameters():
            close(weight, expected[key], f"step {step}: {key}")
        if name == "groupdro":
            close(method.get_buffer("q"), loop.copied.q, f"step {step}: q")
