"""Vectors of images as tables that carry where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from longshift.data import load_dataset, open_store
from longshift.data.vectors import VectorSource, read_vector_source
from longshift.errors import LongshiftError
from longshift.inference import export, load_model, predict
from longshift.inference.embedding import Embedded, embed, write_table
from longshift.nn import make_backbone
from longshift.training.features import FrozenNetwork
from longshift.training.train_run import train
from tests.training.frozen import head_config, small_weights
from tests.training.runs import CPU


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.getbasetemp() / "embed-cache"))
        yield


def digits(folder: Path, seed: int = 0, size: int = 32) -> Embedded:
    network = FrozenNetwork("small_conv", make_backbone("small_conv", weights=small_weights(folder / str(seed), seed)))
    return embed(load_dataset("digits"), network, size, runtime=CPU)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_a_table_is_read_as_it_was_written(suffix: str, tmp_path: Path) -> None:
    found, file = digits(tmp_path), tmp_path / f"digits{suffix}"
    write_table(file, found)
    table = load_dataset(file)
    assert table.vectors
    assert table.counts() == load_dataset("digits").counts()
    assert table.paths == load_dataset("digits").paths
    np.testing.assert_array_equal(open_store(table, 0).inputs, found.vectors)
    source = read_vector_source(file)
    assert source == found.source
    assert source is not None
    assert (source.network, source.image_size, len(source.weights)) == ("small_conv", 32, 64)


def test_a_file_of_others_does_not_tell(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 2)))
    assert read_vector_source(tmp_path / "x.npz") is None
    np.savez(tmp_path / "y.npz", x=np.zeros((2, 2)), source=np.array("from somewhere"))
    assert read_vector_source(tmp_path / "y.npz") is None


@pytest.mark.slow
def test_vectors_of_another_network_are_an_error(tmp_path: Path) -> None:
    write_table(tmp_path / "train.npz", digits(tmp_path))
    plain = {"data": str(tmp_path / "train.npz"), "weights": None, "backbone": "auto", "trainable": "all"}
    run = train(head_config(tmp_path, **plain, steps=4, eval_every=2), out=tmp_path / "run", runtime=CPU).folder
    for name, found in {"same": digits(tmp_path), "seed": digits(tmp_path, 1), "size": digits(tmp_path, 0, 24)}.items():
        write_table(tmp_path / f"{name}.npz", found, labeled=False)
    assert len(predict(run, [tmp_path / "same.npz"], device="cpu").rows) == 1797
    for name in ("seed", "size"):
        with pytest.raises(LongshiftError, match=f"{name}.npz"):
            predict(run, [tmp_path / f"{name}.npz"], device="cpu")
    source = load_model(run, device="cpu").info.vector_source
    assert isinstance(source, VectorSource)
    exported = export(run, "torch", tmp_path / "model.pt2")
    assert source.weights in exported.description.read_text()
