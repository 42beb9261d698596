"""`longshift embed`: the vectors are those of the network, with the samples they belong to."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.data import load_dataset
from longshift.data.image_cache import open_store
from longshift.data.vectors import read_unlabeled
from longshift.nn.backbones import make_backbone

RUN = CliRunner()


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    file = tmp_path_factory.mktemp("weights") / "small_conv.safetensors"
    save_file(make_backbone("small_conv").module.state_dict(), file)
    return file


def test_vectors_of_all_images_with_their_class_domain_and_name(tmp_path: Path, weights: Path) -> None:
    table = tmp_path / "digits.npz"
    options = ["--backbone", "small_conv", "--weights", str(weights), "--image-size", "32", "--device", "cpu"]
    done = RUN.invoke(app, ["embed", "digits", *options, "--out", str(table), "--quiet", "--json"])
    assert done.exit_code == 0, done.output
    images, vectors = load_dataset("digits"), load_dataset(table)
    assert json.loads(done.stdout)["samples"] == len(images)
    where = {path: i for i, path in enumerate(images.paths)}
    match = np.array([where[path] for path in vectors.paths])
    assert [vectors.classes[k] for k in vectors.labels] == [images.classes[k] for k in images.labels[match]]
    names = [images.domain_names[d] for d in images.domains[match]]
    assert [vectors.domain_names[d] for d in vectors.domains] == names

    network = make_backbone("small_conv", weights=weights)
    some = match[:: len(match) // 20]
    pixels = torch.from_numpy(np.stack([open_store(images, 32).inputs[i] for i in some])).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (network.mean, network.std))
    with torch.no_grad():
        expected = network.module.eval()((pixels - mean) / std)
    found = open_store(vectors, 0).inputs[:: len(match) // 20]
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_a_random_network_is_refused(tmp_path: Path) -> None:
    done = RUN.invoke(app, ["embed", "digits", "--out", str(tmp_path / "x.npz")])
    assert done.exit_code != 0
    assert "--weights" in str(done.exception)


def test_the_network_is_that_of_the_weights(tmp_path: Path, weights: Path) -> None:
    table = tmp_path / "digits.parquet"
    done = RUN.invoke(
        app, ["embed", "digits", "--weights", str(weights), "--image-size", "32", "--out", str(table), "-q"]
    )
    assert done.exit_code == 0, done.output
    assert len(load_dataset(table)) == 1797
    unknown = weights.rename(tmp_path / "weights.safetensors")
    done = RUN.invoke(app, ["embed", "digits", "--weights", str(unknown), "--out", str(table)])
    unknown.rename(weights)
    assert "--backbone" in str(done.exception)


def test_images_that_cannot_be_read_are_skipped(tmp_path: Path, weights: Path) -> None:
    (tmp_path / "new").mkdir()
    Image.new("RGB", (16, 16)).save(tmp_path / "new" / "a.png")
    (tmp_path / "new" / "b.png").write_bytes(b"nothing")
    command = [
        "embed",
        str(tmp_path / "new"),
        "--weights",
        str(weights),
        "--image-size",
        "16",
        "--unlabeled",
        "--json",
    ]
    done = RUN.invoke(app, [*command, "--out", str(tmp_path / "new.npz"), "-q"])
    assert done.exit_code == 0, done.output
    (skipped,) = json.loads(done.stdout)["skipped"]
    assert skipped["path"] == "b.png"
    assert read_unlabeled(tmp_path / "new.npz")[1] == ["a.png"]


def test_images_of_no_known_class_become_vectors_for_predict(tmp_path: Path, weights: Path) -> None:
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)
    for name, picture in zip(("b.png", "a.png", "deeper/c.png"), pictures, strict=True):
        file = tmp_path / "new_site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(file)
    table = tmp_path / "new.npz"
    options = ["--backbone", "small_conv", "--weights", str(weights), "--image-size", "16", "--device", "cpu", "-q"]
    command = ["embed", str(tmp_path / "new_site"), *options, "--out", str(table)]
    assert "new_site" in str(RUN.invoke(app, command).exception)  # without the option
    done = RUN.invoke(app, [*command, "--unlabeled"])
    assert done.exit_code == 0, done.output
    assert set(np.load(table).files) == {"x", "id", "source"}  # no made-up class that somebody might train on
    x, ids, _ = read_unlabeled(table)
    assert ids == ["a.png", "b.png", "deeper/c.png"]
    assert len(x) == 3
