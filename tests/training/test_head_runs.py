"""A run that trains only a head: the numbers of vectors, a model of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image

from longshift.data import load_dataset, open_source
from longshift.data.digits import digit_images
from longshift.errors import UsageError
from longshift.inference import evaluate, evaluate_site, export, load_model, predict
from longshift.inference.embedding import embed, write_table
from longshift.rng import HostDraws
from longshift.training import features
from longshift.training.build_parts import build_source
from longshift.training.features import FrozenNetwork
from longshift.training.inputs import Inputs
from longshift.training.resolve_run import resolve
from longshift.training.run_folder import read_predictions
from longshift.training.task import TaskCache, make_task
from longshift.training.train_run import train
from longshift.training.trainer import Trainer
from tests.training.frozen import head_config, small_weights
from tests.training.runs import CPU


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_weights(tmp_path_factory.mktemp("weights"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.getbasetemp() / "head-cache"))


@pytest.fixture(scope="module")
def run(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.getbasetemp() / "head-cache"))
        config = head_config(weights, average="ema")
        return train(config, out=tmp_path_factory.mktemp("runs") / "head", runtime=CPU).folder


@pytest.mark.parametrize("method", ["erm", "ndcl", "sagnet", "tcri"])
def test_a_head_learns_what_it_learns_on_the_vectors(method: str, weights: Path, tmp_path: Path) -> None:
    config = head_config(weights, method=method, steps=12, eval_every=6)
    images = load_dataset("digits")
    write_table(tmp_path / "digits.npz", embed(images, FrozenNetwork.of(config), 32, runtime=CPU))
    plain = {"data": str(tmp_path / "digits.npz"), "weights": None, "backbone": "auto", "trainable": "all"}
    vectors = head_config(weights, method=method, steps=12, eval_every=6, **plain)
    task, other = make_task(config, CPU), make_task(vectors, CPU)
    place = {name: i for i, name in enumerate(other.manifest.paths)}
    same = [place[name] for name in task.manifest.paths]
    assert same == list(range(len(same)))  # both in one order, so that batches are equal
    found = Trainer(config, task, tmp_path / "head", CPU).run()
    expected = Trainer(vectors, other, tmp_path / "vectors", CPU).run()
    assert found["selected"] == expected["selected"]
    assert found["hparams"] == expected["hparams"]


def test_the_model_takes_images(run: Path, tmp_path: Path) -> None:
    model = load_model(run, device="cpu")
    assert not model.info.vectors
    assert (model.info.head, model.info.backbone, model.size) == ("mlp", "small_conv", 32)
    for i in (0, 700, 1500):
        Image.fromarray(digit_images()[i]).save(tmp_path / f"{i:04d}.png")
    found = predict(model, [tmp_path])
    assert len(found.rows) == 3
    again = predict(load_model(run, "averaged", "cpu"), [tmp_path])
    assert [row.label for row in again.rows]
    assert [row.probability for row in again.rows] != [row.probability for row in found.rows]


def test_images_of_the_training_are_not_computed_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digits of the run's domains, in files of their own: `predict` finds the features that training computed."""
    files = []
    for path in load_dataset("digits").paths[::60]:
        files.append(tmp_path / path.split("/")[1] / f"{path.replace('/', '-')}.png")
        files[-1].parent.mkdir(exist_ok=True)
        with open_source(load_dataset("digits")) as source:
            files[-1].write_bytes(source.read(path))
    model = load_model(run, device="cpu")
    plain = torch.from_numpy(digit_images()[::60])
    np.testing.assert_allclose(
        np.array([row.probability for row in predict(model, files, top_k=1).rows]),
        model.probabilities(plain).max(1).values,
        atol=1e-5,
    )
    monkeypatch.setattr(features, "frozen_module", lambda *given: pytest.fail("computed again"))
    assert len(predict(model, files, keep_outputs=True).rows) == len(files)
    assert sum(result.found.n for result in evaluate_site(model, tmp_path)) == len(files)


@pytest.mark.slow
def test_a_head_on_the_features_of_several_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = timm.create_model
    monkeypatch.setattr("timm.create_model", lambda name, pretrained=False, **options: create(name, **options))
    monkeypatch.setattr("longshift.nn.backbones.require_pretrained", lambda name: None)
    names = "mobilenetv3_small_050,vit_tiny_patch16_224"
    changes = {"backbone": names, "weights": None, "pretrained": True, "steps": 4, "eval_every": 2}
    folder = train(head_config(tmp_path, **changes), out=tmp_path / "run", runtime=CPU).folder
    model = load_model(folder, device="cpu")
    assert model.network is not None
    assert model.network.feature_dim == 1024 + 192
    assert evaluate(folder, ["target"], runtime=CPU)["agrees"]
    Image.fromarray(digit_images()[0]).save(tmp_path / "0.png")
    row = predict(model, [tmp_path / "0.png"], top_k=1).rows[0]
    plain = model.probabilities(torch.from_numpy(digit_images()[:1]))
    assert row.probability == pytest.approx(float(plain.max()), abs=1e-4)


def test_predictions_are_those_of_training(run: Path, weights: Path, tmp_path: Path) -> None:
    config = head_config(weights, steps=6, eval_every=3)
    runtime = type(CPU)(device="cpu", save_predictions=True)
    folder = train(config, out=tmp_path / "run", runtime=runtime).folder
    kept = read_predictions(folder / "predictions.npz")
    pixels = torch.from_numpy(digit_images()[kept["target_indices"]])
    np.testing.assert_allclose(load_model(folder, device="cpu").logits(pixels), kept["target_logits"], atol=1e-4)


def test_it_is_measured_again_from_its_folder_alone(run: Path, weights: Path) -> None:
    assert evaluate(run, runtime=CPU)["agrees"]
    assert evaluate(run, ["target"], "averaged", runtime=CPU)["agrees"]
    moved = weights.rename(weights.with_name("gone.safetensors"))
    try:
        assert evaluate(run, ["target"], runtime=CPU)["agrees"]
    finally:
        moved.rename(weights)


@pytest.mark.slow
def test_measuring_again_computes_no_copies(weights: Path, tmp_path: Path) -> None:
    done = train(head_config(weights, views=2, augment="on"), out=tmp_path / "run", runtime=CPU)
    fresh = type(CPU)(device="cpu", cache=tmp_path / "empty")
    assert evaluate(done.folder, ["target"], runtime=fresh)["agrees"]
    (keys,) = (tmp_path / "empty" / "features").glob("*/keys.bin")
    assert keys.stat().st_size == 32 * 1797


@pytest.mark.slow
def test_it_is_exported_as_one_file_that_takes_images(run: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    done = export(run, out=tmp_path / "model.onnx")
    assert (done.noun, done.real) == ("images", 100)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    pixels = digit_images()[:5]
    logits, _ = session.run(None, {"inputs": pixels})
    expected = load_model(run, device="cpu").logits(torch.from_numpy(pixels.copy()))
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-3)


def test_a_linear_head(weights: Path, tmp_path: Path) -> None:
    done = train(head_config(weights, head="linear"), out=tmp_path / "run", runtime=CPU)
    model = load_model(done.folder, device="cpu")
    assert {name.split(".")[-2] for name, _ in model.predictor[1].named_parameters()} == {"classifier"}  # type: ignore
    assert evaluate(done.folder, ["target"], runtime=CPU)["agrees"]


@pytest.mark.slow
def test_only_training_images_give_their_style_to_copies(weights: Path) -> None:
    config = head_config(weights, views=3, style={"mix": "amplitude"}, hparams={"batch_size": 16})
    task = make_task(config, CPU)
    rows, samples = task.training_rows()
    n = len(task.manifest)
    np.testing.assert_array_equal(rows % n, samples)
    assert set(samples) == set(task.split.train)
    partners = task.store.style_samples
    assert partners is not None
    assert set(partners[rows]) <= set(task.split.train)  # neither the target nor validation nor test images
    kept = np.isin(partners[task.split.train + n], task.split.train)
    assert (rows // n == 1).sum() == kept.sum() < len(kept)
    device = torch.device("cpu")
    source = build_source(config, task, CPU, device, Inputs(torch.zeros(1), torch.ones(1), None), 16)
    batch = source.batch(HostDraws(0))
    copies = {row.tobytes() for row in np.asarray(task.store.inputs[rows])}
    assert all(row.numpy().tobytes() in copies for row in batch.x)
    originals = {row.tobytes() for row in np.asarray(task.store.inputs[:n])}
    assert not all(row.numpy().tobytes() in originals for row in batch.x)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"weights": None}, "trainable"),
        ({"style": {"mix": "both"}}, "views"),
        ({"augment": "on"}, "augment"),
        ({"views": 2, "augment": "off"}, "views"),
        ({"freeze_bn": False}, "freeze_bn"),
        ({"trainable": "all", "views": 2}, "views"),
        ({"trainable": "all", "head": "linear"}, "head"),
        ({"views": 2, "style": {"mix": "both", "views": 2}}, "style.views"),
    ],
)
def test_options_without_effect_are_errors(weights: Path, changes: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        resolve({**head_config(weights).model_dump(), **changes})


@pytest.mark.parametrize("option", [{"weights": "x.safetensors"}, {"image_size": 64}, {"trainable": "head"}])
def test_options_of_images_are_errors_on_vectors(tmp_path: Path, option: dict[str, object]) -> None:
    (name,) = option
    with pytest.raises(UsageError, match=name):
        resolve({**vectors_request(tmp_path), **option})


def vectors_request(folder: Path) -> dict[str, object]:
    x = np.random.default_rng(0).normal(size=(60, 4))
    labels, domains = np.repeat(["cat", "dog"], 30), np.tile(["north", "south", "west"], 20)
    np.savez(folder / "v.npz", x=x, label=labels, domain=domains)
    return {"data": str(folder / "v.npz"), "target": "west", "setting": "Natural", "shrink": True}


def test_a_head_that_the_backbone_overrides_is_an_error(tmp_path: Path) -> None:
    request = vectors_request(tmp_path)
    with pytest.raises(UsageError, match="head"):
        resolve({**request, "backbone": "mlp", "head": "linear"})
    for given in ({"backbone": "linear"}, {"head": "linear"}, {"backbone": "linear", "head": "linear"}):
        assert resolve({**request, **given}).config.backbone_name == "linear"


def test_runs_of_a_worker_share_features(weights: Path) -> None:
    tasks = TaskCache(CPU)
    first = tasks.get(head_config(weights))
    assert tasks.get(head_config(weights, method="ndcl", target="chalk")).store is first.store
    assert tasks.get(head_config(weights, views=2)).store is not first.store
    whole = tasks.get(head_config(weights, trainable="all"))
    assert whole.store.inputs.ndim == 4
