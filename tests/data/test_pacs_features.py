"""The embedded features of PACS: all images with their published counts, small, and by one name."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from longshift.data import PACS_FEATURES, holds_vectors, load_dataset, open_store, ordered_vectors, read_vector_source
from longshift.data.benchmarks import compare_counts
from longshift.data.vectors import vector_file
from longshift.errors import UsageError
from longshift.settings import published, setting_for
from longshift.training import RunConfig, resolve


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
