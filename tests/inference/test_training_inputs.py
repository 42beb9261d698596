"""Images in the folder that a model was trained on are named as such, by their paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.inference import expand_inputs, load_model
from longshift.inference.loading import LoadedModel
from longshift.inference.training_inputs import training_words
from longshift.training import train
from tests.data.trees import make_tree
from tests.training.runs import CPU


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedModel, Path]:
    root = tmp_path_factory.mktemp("trained")
    make_tree(root / "data", ("north", "south", "west"), ("cat", "dog"), 6)
    request = {
        "data": str(root / "data"), "target": "west", "setting": "Natural", "backbone": "small_conv", "image_size": 16,
        "method": "erm", "steps": 1, "hparams": {"batch_size": 2},
    }  # fmt: skip
    train(request, out=root / "run", runtime=CPU)
    return load_model(root / "run", device="cpu"), root


def test_paths_tell(trained: tuple[LoadedModel, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    model, root = trained

    def said(*places: str | Path) -> str:
        return training_words(model, expand_inputs(places))

    assert said(root / "data" / "north") == (
        "north was a training site of this model, and 12 of 12 images are in the folder that it was trained on: expect "
        "less at a new site."
    )
    assert said(root / "data").startswith(
        "north, south were training sites of this model, and 24 of 36 images are in the folder"
    )
    make_tree(root / "new", ("north",), ("cat", "dog"), 1)
    make_tree(root / "data" / "later", ("cat", "dog"), ("a",), 1)
    for place in ("data/west", "new", "data/later"):  # held out, elsewhere, and a site that was added since
        assert said(root / place) == ""
    (root / "link").symlink_to(root / "data" / "south")
    monkeypatch.chdir(root)
    assert said("link").startswith("south was a training site")
    (model.folder / "config.json").unlink()
    assert said("link") == ""
