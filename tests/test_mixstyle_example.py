"""The example of MixStyle: its formula, its random numbers and a run with it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.methods import Batch, Problem, get_method
from longshift.nn import Network, make_backbone, make_network
from longshift.rng import HostDraws
from tests.registries import restore_registries

ROOT = Path(__file__).parents[1]
FILE = ROOT / "examples" / "mixstyle_method.py"
PROBLEM = Problem(classes=3, domains=3, counts=((9, 5, 2), (2, 9, 5), (5, 2, 9)))
PER_DOMAIN = 4


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, imported anew; its method is registered until the test ends."""
    restore_registries(monkeypatch)
    spec = importlib.util.spec_from_file_location("mixstyle_method", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mixstyle_method", module)
    spec.loader.exec_module(module)
    return module


def network() -> Network:
    torch.manual_seed(0)
    return make_network(make_backbone("small_conv"), PROBLEM.classes)


def make(name: str = "mixstyle", **values: Any) -> Any:
    cls = get_method(name)
    return cls(network(), PROBLEM, cls.Config.make({"lr": 1e-3, **values}, ("small",))).train()


def batch(step: int = 0, device: str = "cpu") -> Batch:
    generator = torch.Generator().manual_seed(step)
    d = torch.arange(PROBLEM.domains).repeat_interleave(PER_DOMAIN)
    x = torch.randn(len(d), 3, 16, 16, generator=generator) * (1 + d[:, None, None, None])
    y = torch.randint(0, PROBLEM.classes, (len(d),), generator=generator)
    return Batch(x.to(device), y.to(device), d.to(device), PROBLEM.domains)


def started(name: str = "mixstyle", **values: Any) -> Any:
    method = make(name, **values)
    method.start(HostDraws(0))
    return method


def drawn(plugin: Any, partners: list[int], weight: list[float], used: bool = True) -> Any:
    return plugin.Drawn(torch.tensor(partners), torch.tensor(weight, dtype=torch.float64), torch.tensor([used]))


def mixed_by_a_loop(maps: Tensor, partners: list[int], weight: list[float]) -> Tensor:
    result = torch.zeros_like(maps)
    for i, channels in enumerate(maps):
        for c, values in enumerate(channels):
            other = maps[partners[i], c].flatten().tolist()
            own = values.flatten().tolist()
            means = [sum(numbers) / len(numbers) for numbers in (own, other)]
            spreads = [
                (sum((x - m) ** 2 for x in numbers) / len(numbers) + 1e-6) ** 0.5
                for numbers, m in zip((own, other), means, strict=True)
            ]
            mean, spread = (weight[i] * a + (1 - weight[i]) * b for a, b in (means, spreads))
            mixed = [(x - means[0]) / spreads[0] * spread + mean for x in own]
            result[i, c] = torch.tensor(mixed, dtype=maps.dtype).reshape(values.shape)
    return result


def test_a_mixed_map_is_that_of_a_plain_loop(plugin: Any) -> None:
    maps = torch.randn(4, 3, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    partners, weight = [2, 3, 1, 0], [0.0, 0.25, 0.9, 1.0]
    found = plugin.mix_style(maps, drawn(plugin, partners, weight))
    torch.testing.assert_close(found, mixed_by_a_loop(maps, partners, weight), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[3], maps[3])  # all of its own style
    assert torch.equal(plugin.mix_style(maps, drawn(plugin, partners, weight, used=False)), maps)


def test_a_training_pass_is_mixed_after_the_first_stages_only(plugin: Any) -> None:
    method, plain = started(mix_probability=1.0), network()
    found = float(method.loss(batch()).total.detach())
    again = started(mix_probability=1.0)
    drawings = [again.draw(batch()) for _ in range(2)]
    maps = batch().x
    for i, layer in enumerate(plain.featurizer.children()):
        maps = layer(maps)
        if i in (2, 5):  # the ReLU of the first and of the second convolution
            maps = plugin.mix_style(maps, drawings[i // 3])
    expected = method.criterion(plain.classifier(maps), batch().y, batch().d)
    assert found == pytest.approx(float(expected.detach()), rel=1e-6)


def test_it_is_off_in_evaluation_and_outside_of_the_loss(plugin: Any) -> None:
    method, plain = started(mix_probability=1.0), started("bsoftmax")
    x = batch().x
    assert torch.equal(method.network(x), plain.network(x))  # nothing was drawn for this pass
    assert not torch.equal(method.loss(batch()).total, plain.loss(batch()).total)
    method.eval()
    assert torch.equal(method.predict(x), plain.predict(x))
    assert torch.equal(method.loss(batch()).total, plain.loss(batch()).total)
    assert list(method.network.state_dict()) == list(plain.network.state_dict())


@pytest.mark.slow
def test_a_run_on_digits_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restore_registries(monkeypatch)
    mine = Path(shutil.copy(FILE, tmp_path / "mixstyle_method.py"))  # a path of its own: a file is loaded once
    monkeypatch.chdir(tmp_path)
    values = ["--steps", "120", "--eval-every", "60", "--image-size", "16", "--device", "cpu", "--out", "run"]
    command = ["--plugin", str(mine), "train", "--data", "digits", "--target", "ink", "--method", "mixstyle", *values]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    predictions = CliRunner().invoke(app, ["--plugin", str(mine), "evaluate", "run"])
    assert predictions.exit_code == 0, predictions.output
    rows = pd.read_json(tmp_path / "run" / "metrics.jsonl", lines=True)
    assert rows["validation"].iloc[-1]["accuracy"] > 0.3  # ten classes
