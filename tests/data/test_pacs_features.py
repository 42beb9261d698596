"""The embedded features of PACS: all images with their published counts, small, and those of the network."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from longshift.data import PACS_FEATURES, holds_vectors, load_dataset, open_store, ordered_vectors, read_vector_source
from longshift.data.benchmarks import compare_counts
from longshift.data.digits import vector_file
from longshift.data.images import decode, resize
from longshift.errors import UsageError
from longshift.settings import published, setting_for
from longshift.training import RunConfig, resolve
from tests.data.trees import pacs


def test_all_images_of_pacs_are_there_with_the_published_counts() -> None:
    manifest = load_dataset("pacs-features")
    assert (len(manifest), manifest.name, manifest.argument) == (9991, "pacs-features", "pacs-features")
    assert compare_counts(manifest, "PACS") == []
    assert open_store(manifest, 224).inputs.shape == (9991, 192)


def test_the_file_is_small_and_says_where_it_comes_from() -> None:
    file = vector_file(PACS_FEATURES)
    assert file.stat().st_size <= 1_500_000
    assert file.with_suffix(".md").exists()
    source = read_vector_source(PACS_FEATURES)
    assert source is not None
    assert source.network.startswith("mobilenetv2_100")
    assert source.image_size == 224


@pytest.mark.parametrize("setting", ["TotalHeavyTail", "Duality"])
def test_settings_are_those_of_the_benchmark(setting: str) -> None:
    run = resolve({"data": "pacs-features", "target": "A", "setting": setting, "method": "erm"})
    assert (run.config.benchmark, run.config.target, run.config.vectors) == ("PACS", "art_painting", True)
    made = setting_for(run.manifest, setting, "A").counts
    assert made["sketch"] == published("PACS", setting, "A").counts["S"]


def test_a_run_is_the_same_by_name_and_by_file(tmp_path: Path) -> None:
    copy = tmp_path / "copy.npz"
    shutil.copy(vector_file(PACS_FEATURES), copy)
    one, other = (RunConfig(data=data, target="photo", benchmark="PACS") for data in (PACS_FEATURES, str(copy)))
    assert one.fingerprint() == other.fingerprint()
    x = ordered_vectors(load_dataset(copy))[0] + np.float32(1)
    with np.load(copy) as old:
        np.savez(copy, x=x, **{name: old[name] for name in ("label", "domain", "id")})
    assert RunConfig(data=str(copy), target="photo", benchmark="PACS").fingerprint() != one.fingerprint()


def test_the_word_is_found_from_a_similar_one_and_only_the_word_counts(tmp_path: Path) -> None:
    assert holds_vectors("pacs-features")
    assert not holds_vectors(tmp_path / "pacs-features")
    with pytest.raises(UsageError, match="pacs-features"):
        load_dataset("pacs-feature")


def test_the_nearest_class_mean_of_other_domains_is_far_better_than_guessing() -> None:
    manifest = load_dataset("pacs-features")
    x, _ = ordered_vectors(manifest)
    centers = np.stack([x[manifest.domains == domain].mean(axis=0) for domain in range(4)])
    x = x - centers[manifest.domains]  # the domains differ more than the classes
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for domain in range(4):
        here = manifest.domains == domain
        means = np.stack([x[~here & (manifest.labels == k)].mean(axis=0) for k in range(7)])
        right = (x[here] @ means.T).argmax(axis=1) == manifest.labels[here]
        assert right.mean() > 3 / 7


@pytest.mark.slow
def test_distances_are_those_of_the_network() -> None:
    archive = pacs()
    weights = archive.parent / "weights" / "mobilenetv2_100_in1k.safetensors"
    if not weights.exists():
        pytest.skip(f"no weights at {weights}")
    import timm
    from safetensors.torch import load_file

    network = timm.create_model("mobilenetv2_100", pad_type="same", num_classes=0)
    network.load_state_dict({name: value.float() for name, value in load_file(weights).items()}, strict=False)
    manifest = load_dataset("pacs-features")
    chosen = np.linspace(0, len(manifest) - 1, 40).astype(int)
    with zipfile.ZipFile(archive) as images, torch.no_grad():
        files = {name.removeprefix("PACS/").rsplit(".", 1)[0]: name for name in images.namelist()}
        pixels = [resize(decode(images.read(files[manifest.paths[i]])), 224) for i in chosen]
        inputs = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2) / 127.5 - 1
        expected = network.eval()(inputs).numpy()
    found = ordered_vectors(manifest)[0][chosen]
    pairs = np.triu_indices(len(chosen), 1)
    distances = [np.linalg.norm(v[:, None] - v[None], axis=-1)[pairs] for v in (expected, found)]
    assert np.corrcoef(distances)[0, 1] > 0.95
