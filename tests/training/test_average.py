"""Weight averaging (SWA, EMA) against the plain formulas, and its effect on a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from longshift.inference import evaluate
from longshift.inference.loading import load_model
from longshift.io import read_json
from longshift.training.average import Averager, ema_decay
from longshift.training.interrupt import Interrupted
from longshift.training.run_folder import RunFolder, read_metrics
from longshift.training.task import Task
from longshift.training.trainer import Trainer
from tests.training.runs import CPU, digits_config, train


def snapshots(task: Task, tmp_path: Path, **changes: Any) -> tuple[Trainer, list[dict[str, torch.Tensor]]]:
    """Run a few steps by hand and keep the prediction weights after each."""
    trainer = Trainer(digits_config(**changes), task, tmp_path / "run", CPU)
    assert trainer.averager is not None
    trainer.method.train()
    kept = []
    for index in range(trainer.config.steps):
        trainer.stepper.run(index)
        trainer.averager.update(index)
        kept.append({name: tensor.clone() for name, tensor in trainer.averager.live.items()})
    return trainer, kept


@pytest.mark.parametrize("method", ["erm", "tcri", "fish"])
def test_swa_is_the_mean_from_its_start_on(digits_task: Task, tmp_path: Path, method: str) -> None:
    trainer, kept = snapshots(digits_task, tmp_path, average="swa", average_from=3, steps=6, method=method)
    assert trainer.averager is not None
    for name, value in trainer.averager.average.items():
        torch.testing.assert_close(value, torch.stack([step[name] for step in kept[2:]]).mean(0))


def test_ema_is_the_recursion(digits_task: Task, tmp_path: Path) -> None:
    trainer, kept = snapshots(digits_task, tmp_path, average="ema", steps=6)
    assert trainer.averager is not None
    for name, value in trainer.averager.average.items():
        expected = kept[0][name]
        for updates, step in enumerate(kept[1:], start=1):
            decay = min(0.999, (1 + updates) / (10 + updates))
            expected = decay * expected + (1 - decay) * step[name]
        torch.testing.assert_close(value, expected)
    assert ema_decay(1) < 0.2
    assert ema_decay(10**6) == 0.999


def test_it_covers_what_predicts_and_nothing_else(digits_task: Task, tmp_path: Path) -> None:
    trainer = Trainer(digits_config(method="dann", hparams={}), digits_task, tmp_path / "run", CPU)
    averager = Averager(trainer.method, "ema")
    assert {name.split(".")[0] for name in averager.live} == {"network"}
    assert set(averager.live) == {f"network.{name}" for name in trainer.method.network.state_dict()}


def test_swapping_leaves_no_trace(digits_task: Task, tmp_path: Path) -> None:
    trainer, kept = snapshots(digits_task, tmp_path, average="ema", steps=3)
    averager = trainer.averager
    assert averager is not None
    addresses = [tensor.data_ptr() for tensor in averager.live.values()]
    x = torch.rand(4, 3, 32, 32)
    trainer.method.eval()
    before = trainer.method.predict(x)
    with averager.swapped():
        assert not torch.equal(trainer.method.predict(x), before)
        for name, tensor in averager.live.items():
            assert torch.equal(tensor, averager.average[name])
    assert torch.equal(trainer.method.predict(x), before)
    assert all(torch.equal(tensor, kept[-1][name]) for name, tensor in averager.live.items())
    assert [tensor.data_ptr() for tensor in averager.live.values()] == addresses


@pytest.mark.slow
def test_training_notices_nothing(digits_run: Path, digits_task: Task, tmp_path: Path) -> None:
    with_average = train(tmp_path / "run", digits_task, average="ema")
    without = read_json(digits_run / "result.json")
    assert with_average["selected"] == without["selected"]
    assert with_average["last"] == without["last"]
    assert without["averaged"] is None
    assert set(with_average["averaged"]) == {"step", "validation", "test", "target", "posterior", "calibrated"}
    assert with_average["fingerprint"] != without["fingerprint"]


@pytest.mark.slow
def test_it_is_selected_on_its_own_and_kept(digits_task: Task, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = train(folder, digits_task, average="swa", average_from=10, eval_every=5, evaluate="full", steps=30)
    rows = read_metrics(RunFolder(folder))
    assert "averaged_validation" not in rows[0]  # at step 5 there is no average yet
    scores = {row["step"]: row["averaged_validation"]["accuracy"] for row in rows if "averaged_validation" in row}
    assert result["averaged"]["step"] == max(scores, key=lambda step: scores[step])
    chosen = next(row for row in rows if row["step"] == result["averaged"]["step"])
    for name in ("validation", "test", "target"):
        assert chosen[f"averaged_{name}"]["accuracy"] == result["averaged"][name]["accuracy"]
    found = evaluate(folder, weights="averaged", runtime=CPU)
    assert found["agrees"]
    assert found["target"] == result["averaged"]["target"]
    model = load_model(folder, "averaged", device="cpu")
    assert model.temperature == read_json(folder / "model.json")["averaged_temperature"] != 1.0


@pytest.mark.slow
def test_the_average_alone_is_the_model(digits_task: Task, tmp_path: Path) -> None:
    options: dict[str, Any] = {"average": "swa", "average_from": 1, "eval_every": 10, "steps": 10}
    both = train(tmp_path / "both", digits_task, **options)
    alone = train(tmp_path / "alone", digits_task, **options, average_only=True)
    assert alone["averaged"] is None
    assert alone["last"] == both["last"]
    assert alone["selected"] == both["averaged"] != both["selected"]
    one, other = (load_file(tmp_path / file) for file in ("alone/model.safetensors", "both/averaged.safetensors"))
    assert all(torch.equal(one[name], other[name]) for name in other)
    assert evaluate(tmp_path / "alone", runtime=CPU)["agrees"]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "only"), [("ema", False), ("swa", True)])
def test_a_resumed_run_equals_an_unbroken_one(digits_task: Task, tmp_path: Path, kind: str, only: bool) -> None:
    options: dict[str, Any] = {
        "average": kind, "average_from": 6, "average_only": only, "steps": 20, "eval_every": 5, "method": "ndcl",
    }  # fmt: skip
    whole = train(tmp_path / "whole", digits_task, **options)
    config = digits_config(**options)
    asked = iter([False] * 12)  # once a step: stops in the thirteenth, between two evaluations
    broken = Trainer(config, digits_task, tmp_path / "broken", CPU, stop=lambda: next(asked, True))
    with pytest.raises(Interrupted):
        broken.run()
    assert 5 < broken.progress.step < 20
    resumed = Trainer(config, digits_task, tmp_path / "broken", CPU).run()
    for part in ("selected", "averaged", "last"):
        assert resumed[part] == whole[part]
    for file in ("model.safetensors", "averaged.safetensors")[: 1 if only else 2]:
        one, other = load_file(tmp_path / "whole" / file), load_file(tmp_path / "broken" / file)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.gpu
def test_captured_steps_average_as_plain_ones(digits_task: Task, tmp_path: Path) -> None:
    from longshift.training.run_config import Runtime

    results = []
    for graphs in ("on", "off"):
        runtime = Runtime(device="cuda", precision="fp32", graphs="on" if graphs == "on" else "off")
        results.append(train(tmp_path / graphs, digits_task, runtime, average="ema", steps=20))
    assert results[0]["averaged"]["validation"]["nll"] == pytest.approx(
        results[1]["averaged"]["validation"]["nll"], rel=1e-3
    )
