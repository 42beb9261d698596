"""Replays the reference numbers of tests/fixtures/oracles (or of `$LONGSHIFT_ORACLES`) on a method.

A fixture gives weights, three batches and drawn values; the method must report the same losses, predict the
same probe logits after each step, and end with the same weights.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from longshift.methods import get_method
from longshift.methods.base import Batch, Method, Problem
from longshift.nn.network import Network
from tests.given_draws import GivenDraws

TOLERANCE = 1e-8
FIXTURES = Path(__file__).parents[1] / "fixtures" / "oracles"


def load(name: str) -> Any:
    """One fixture file."""
    folder = Path(os.environ.get("LONGSHIFT_ORACLES", FIXTURES))
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def tensor(values: Any, dtype: torch.dtype = torch.float64) -> Tensor:
    """Float64 by default."""
    return torch.tensor(values, dtype=dtype)


def set_linear(layer: nn.Module, given: dict[str, Any]) -> None:
    """Overwrite a linear layer with the weight and bias of a fixture."""
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        layer.weight.copy_(tensor(given["weight"]))
        layer.bias.copy_(tensor(given["bias"]))


def check_linear(layer: nn.Module, expected: dict[str, Any], what: str) -> None:
    """Compare a linear layer with a fixture."""
    assert isinstance(layer, nn.Linear)
    close(layer.weight, expected["weight"], f"{what}.weight")
    close(layer.bias, expected["bias"], f"{what}.bias")


def close(actual: Tensor, expected: Any, what: str) -> None:
    """Equal to the tolerance, or fail naming the quantity."""
    torch.testing.assert_close(
        actual.detach(), tensor(expected).reshape(actual.shape), rtol=0, atol=TOLERANCE, msg=lambda m: f"{what}: {m}"
    )


def network(problem: dict[str, Any]) -> Network:
    """The tiny network of the fixtures: linear + ReLU features, linear head, in float64."""
    inputs, features, classes = problem["input_dim"], problem["feature_dim"], problem["n_classes"]
    body = nn.Linear(inputs, features)
    result = Network(nn.Sequential(body, nn.ReLU()), nn.Linear(features, classes)).double()
    set_linear(body, problem["featurizer"])
    set_linear(result.classifier, problem["classifier"])
    return result


def batch(problem: dict[str, Any], step: int) -> Batch:
    """Batch number `step`, all domains concatenated in order."""
    parts = problem["batches"][step]
    y = torch.cat([tensor(part["y"], torch.int64) for part in parts])
    d = torch.arange(len(parts)).repeat_interleave(len(parts[0]["y"]))
    return Batch(torch.cat([tensor(part["x"]) for part in parts]), y, d, len(parts))


@dataclass(frozen=True)
class Replay:
    """How one method's fixtures map to its code."""

    method: str
    fixture: str
    names: dict[str, str]  # fixture hyper-parameter -> config field; "" leaves it out
    draws: Callable[[dict[str, Any]], dict[str, list[Any]]] = lambda given: {}
    init: Callable[[Method, dict[str, Any]], None] = lambda method, extra: None
    final: Callable[[Method, dict[str, Any]], None] = lambda method, final: None
    after_step: Callable[[Method, dict[str, Any]], None] = lambda method, expected: None
    extra_config: Callable[[dict[str, Any]], dict[str, Any]] = lambda case: {}


def cases(replay: Replay) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(problem, case) for each case of a fixture file."""
    document = load(replay.fixture)
    problem = load(document["problem"].removesuffix(".json"))
    assert document["cases"], f"{replay.fixture} has no cases"
    for case in document["cases"]:
        yield problem, case


def make_method(replay: Replay, problem: dict[str, Any], case: dict[str, Any]) -> Method:
    """The method with the fixture's weights and hyper-parameters, not yet started."""
    values: dict[str, Any] = {"batch_size": problem["batch_per_domain"]}
    for name, value in case["hparams"].items():
        field = replay.names.get(name, name)
        if field:
            values[field] = value
    values |= replay.extra_config(case)
    cls = get_method(replay.method)
    counts = tuple(tuple(row) for row in problem["env_labels"])
    steps = case["hparams"].get("n_steps", problem["n_steps"])
    task = Problem(problem["n_classes"], problem["n_domains"], counts, steps)
    previous = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        method = cls(network(problem), task, cls.Config.make(values)).double()
    finally:
        torch.set_default_dtype(previous)
    replay.init(method, case.get("extra_init", {}))
    return method


def run(replay: Replay) -> None:
    """Replay every case of the fixture."""
    for problem, case in cases(replay):
        method = make_method(replay, problem, case)
        draws = GivenDraws(replay.draws(case.get("given", {})))
        method.start(draws)
        method.train()
        probe, expected = tensor(problem["probe"]), case["expected"]
        close(method.predict(probe), expected["initial_probe_logits"], f"{case['name']}: initial logits")
        for index, step in enumerate(expected["steps"]):
            where = f"{case['name']}, step {index}"
            method.before_step(index)
            if method.wants_features(index):
                sets = problem["feature_set"]
                x = torch.cat([tensor(part["x"]) for part in sets])
                y = torch.cat([tensor(part["y"], torch.int64) for part in sets])
                d = torch.cat([torch.full((len(part["y"]),), i) for i, part in enumerate(sets)])
                with torch.no_grad():
                    method.receive_features(method.network.features(x), y, d)
            terms = method.step(batch(problem, index))
            for name, value in step["returned"].items():
                assert name in terms, f"{where}: the method reports no {name!r}, only {sorted(terms)}"
                close(terms[name], value, f"{where}: {name}")
            close(method.predict(probe), step["probe_logits"], f"{where}: logits")
            replay.after_step(method, step)
        assert not any(draws.left.values()), f"{case['name']}: unused draws {draws.left}"
        final = expected["final"]
        featurizer = method.network.featurizer
        assert isinstance(featurizer, nn.Sequential)
        check_linear(featurizer[0], final["featurizer"], f"{case['name']}: final featurizer")
        check_linear(method.network.classifier, final["classifier"], f"{case['name']}: final classifier")
        replay.final(method, final)
