"""Exported graphs (ONNX, torch) give the predictions of the model they came from."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file

from longshift.errors import LongshiftError, UsageError
from longshift.fitting.run import fit
from longshift.inference import exporting
from longshift.inference.evaluating import evaluate_site
from longshift.inference.expected_accuracy import SiteKnowledge, SureRule
from longshift.inference.exporting import Deployed, Exported, compare, describe, export, random_inputs
from longshift.inference.loading import load_model
from longshift.inference.prediction import predict
from longshift.io import read_json
from longshift.training.run_config import RunConfig
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer
from tests.fitting.colored_sites import COUNTS, sites
from tests.training.runs import CPU, train


@pytest.mark.slow
def test_onnx_agrees_with_predict(digits_run: Path, digits_task: Task, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    done = export(digits_run, "onnx", tmp_path / "digits.onnx")
    assert (done.random, done.real) == (100, 100)
    assert done.difference < 1e-4
    description = read_json(tmp_path / "digits.onnx.json")
    session = onnxruntime.InferenceSession(str(done.file))
    # As somebody without longshift would use it: the JSON, an image library, onnxruntime.
    size = description["input"]["shape"][1]
    for index in digits_task.split.target_indices[:3]:
        Image.fromarray(digits_task.store.inputs[index]).resize((57, 41)).save(tmp_path / "new.png")
        pixels = np.asarray(Image.open(tmp_path / "new.png").resize((size, size), Image.Resampling.BILINEAR))
        _, probabilities = session.run(None, {"inputs": pixels[None]})
        expected = predict(digits_run, [tmp_path / "new.png"], device="cpu").rows[0]
        assert description["classes"][int(probabilities.argmax())] == expected.label
        assert float(probabilities.max()) == pytest.approx(expected.probability, abs=1e-5)


@pytest.mark.slow
def test_a_head_on_a_transformer(tmp_path: Path) -> None:
    """From a fit to onnxruntime, which sees the image as the JSON says."""
    onnxruntime = pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    save_file(timm.create_model("test_vit", num_classes=0).state_dict(), tmp_path / "test_vit.safetensors")
    data = sites(tmp_path / "sites", COUNTS)
    options: dict[str, Any] = {
        "weights": tmp_path / "test_vit.safetensors",
        "image_size": 96,
        "trainable": "head",
        "target": "west",
    }
    folder = fit(data, out=tmp_path / "fit", runtime=CPU, method="logistic", **options).folder
    done = export(folder, "onnx", tmp_path / "m.onnx")
    about = read_json(done.description)
    image, how = Image.open(data / "west" / "red" / "0.png"), about["input"]["resize"]
    assert how == {"interpolation": "bicubic", "crop": 0.95, "keep_ratio": True}
    kept = how["crop"] * min(image.size)
    (left, top), (right, bottom) = ([(length + sign * kept) / 2 for length in image.size] for sign in (-1, 1))
    pixels = np.asarray(image.resize((96, 96), Image.Resampling.BICUBIC, box=(left, top, right, bottom)))
    _, probabilities = onnxruntime.InferenceSession(done.file).run(None, {"inputs": pixels[None]})
    expected = predict(folder, [data / "west" / "red" / "0.png"], device="cpu").rows[0]
    assert about["classes"][int(probabilities.argmax())] == expected.label
    assert float(probabilities.max()) == pytest.approx(expected.probability, abs=0.01)  # the crop is not rounded here
    assert [site.found.n for site in evaluate_site(folder, data)] == [29, 21, 22]


def test_torch_file_runs_without_longshift(digits_run: Path, tmp_path: Path) -> None:
    done = export(digits_run, "torch", tmp_path / "digits.pt2")
    module = torch.export.load(tmp_path / "digits.pt2").module()
    model = load_model(digits_run, device="cpu")
    for count in (1, 7):  # the batch is free
        inputs = random_inputs(model, count)
        logits, probabilities = module(inputs)
        torch.testing.assert_close(logits, model.logits(inputs), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(probabilities, model.probabilities(inputs).float(), atol=1e-5, rtol=1e-5)
    assert done.description.name == "digits.pt2.json"


def test_the_description_has_the_threshold_of_predict(digits_run: Path) -> None:
    model = load_model(digits_run, device="cpu")
    exported = Exported(Path("m.onnx"), Path("m.onnx.json"), 0.0, 1, 0)
    kept = SiteKnowledge(held_out=(), reference=SimpleNamespace())  # type: ignore[arg-type]
    cases: list[tuple[SureRule | None, dict[str, object]]] = [
        (None, {"unsure_below": 0.5}),
        (SureRule(0.62, 0.91, 0.4), {"unsure_below": 0.62, "sure_accuracy": 0.91}),
        (SureRule(0.97, 0.3, 0.1), {"unsure_below": 1.0, "all_unsure": True}),
    ]
    for rule, expected in cases:
        found = describe(replace(model, knowledge=replace(kept, sure=rule)), exported, "onnx")
        assert {key: found[key] for key in ("unsure_below", "sure_accuracy", "all_unsure") if key in found} == expected


@pytest.mark.slow
def test_frozen_batch_norm_that_training_folded(digits_task: Task, tmp_path: Path) -> None:
    """timm's networks have their batch norms folded while they train; the exported graph must be the same function."""
    pytest.importorskip("onnxruntime")
    result = train(tmp_path / "run", digits_task, backbone="resnet10t", steps=3, eval_every=3)
    model = load_model(tmp_path / "run", device="cpu")
    target = digits_task.split.target_indices
    hits = model.logits(torch.from_numpy(digits_task.store.inputs[target])).argmax(1).numpy()
    assert (hits == digits_task.labels(target)).mean() == pytest.approx(
        result["selected"]["target"]["accuracy"], abs=0.01
    )
    assert export(tmp_path / "run", "onnx").difference < 1e-4
    assert (tmp_path / "run" / "model.json").exists()  # the run's own description is not overwritten
    assert load_model(tmp_path / "run").info == model.info


def test_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y, d = np.arange(90) % 3, np.arange(90) // 3 % 3
    np.savez(tmp_path / "e.npz", x=rng.normal(size=(90, 5)) + np.eye(5)[y], label=y, domain=d)
    config = RunConfig(data=str(tmp_path / "e.npz"), setting="Natural", target="2", steps=5, eval_every=5)
    Trainer(config, make_task(config), tmp_path / "run", CPU).run()
    done = export(tmp_path / "run", "torch")
    assert (done.real, done.difference < 1e-4) == (90, True)
    description = read_json(done.description)
    assert description["input"]["shape"] == ["batch", 5]
    assert description["preprocessing_outside"] == []


@pytest.mark.slow
def test_a_graph_that_differs_is_not_kept(digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = exporting._torch

    def wrong(deployed: Deployed, example: torch.Tensor) -> tuple[bytes, exporting.Runner]:
        payload, run = made(deployed, example)
        return payload, lambda inputs: (run(inputs)[0], run(inputs)[1] + 1e-3)

    monkeypatch.setattr(exporting, "_torch", wrong)
    with pytest.raises(LongshiftError, match="PyTorch"):
        export(digits_run, "torch", tmp_path / "m.pt2")
    assert list(tmp_path.iterdir()) == []


def test_not_a_number_is_a_difference(digits_run: Path) -> None:
    model = load_model(digits_run, device="cpu")
    deployed = Deployed(model)
    broken = compare(deployed, lambda x: (deployed(x)[0] * float("nan"), deployed(x)[1]), random_inputs(model, 2))
    assert not broken[0] <= 1e-4


def test_where_float32_is_the_weaker_side_float64_decides(digits_run: Path) -> None:
    model = load_model(digits_run, device="cpu")
    exact = Deployed(model)

    class Rounding(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            noise = 1e-2 if x.dtype == torch.float32 else 0.0
            return x.flatten(1)[:, :10] * (1 + noise)

    exact.predictor = Rounding()
    inputs = random_inputs(model, 4)

    def good(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        pixels = (x.permute(0, 3, 1, 2).float() / 255 - exact.mean) / exact.std
        logits = pixels.flatten(1)[:, :10]
        return logits, (logits / exact.temperature).softmax(1)

    difference, own = compare(exact, good, inputs)
    assert difference < 1e-6
    assert own == pytest.approx(1e-2, rel=0.05)
    assert compare(exact, lambda x: (good(x)[0] + 1e-2, good(x)[1]), inputs)[0] > 1e-3


@pytest.mark.slow
def test_without_its_data_only_random_inputs_are_checked(
    digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(source: str) -> None:
        raise LongshiftError("no dataset")

    monkeypatch.setattr(exporting, "load_dataset", gone)
    assert export(digits_run, "torch", tmp_path / "m.pt2").real == 0


def test_mistakes(digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--reference"):
        export(tmp_path, mix={"a": 0.5})
    with pytest.raises(UsageError, match=r"\.onnx"):
        export(digits_run, "onnx", tmp_path / "m.pt2")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(UsageError, match="onnxscript"):
        export(digits_run, "onnx", tmp_path / "m.onnx")
