"""Small images are not blown up to 224 pixels unless somebody asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from longshift.data import Manifest, data_version, load_dataset
from longshift.data.images import fitting_size, typical_side
from longshift.errors import ConfigError, LongshiftError, UsageError
from longshift.fitting.network_choice import choose_network
from longshift.io import lock_folder
from longshift.training import Runtime, resolve_run, task, train
from longshift.training.resolve_run import Request, describe_network, resolve
from longshift.training.run_config import RunConfig, parse_run_config
from longshift.training.run_folder import RunFolder, write_config
from longshift.training.task import make_task


def tree(root: Path, width: int, height: int, domains: tuple[str, ...] = ("north", "south", "west")) -> Path:
    rng = np.random.default_rng(0)
    for domain in domains:
        for label in ("cat", "dog"):
            (root / domain / label).mkdir(parents=True)
            for i in range(4):
                pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / domain / label / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tree(tmp_path_factory.mktemp("small") / "data", 28, 20))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tree(tmp_path_factory.mktemp("large") / "data", 120, 100))


def config(data: str, **values: Any) -> RunConfig:
    return resolve({"data": data, "target": "west", "setting": "Natural", **values}).config


def test_the_typical_side_is_the_median_of_the_shorter_ones(small: str, large: str, tmp_path: Path) -> None:
    assert (typical_side(load_dataset(small)), typical_side(load_dataset(large))) == (20, 100)
    assert typical_side(load_dataset("digits")) == 32
    assert [fitting_size(load_dataset(large), most) for most in (64, 224)] == [64, 100]
    tiny = load_dataset(tree(tmp_path / "tiny", 9, 9))
    assert fitting_size(tiny, 64) == 16
    for path in (tmp_path / "tiny").rglob("*.png"):
        path.write_bytes(b"no image")
    assert typical_side(tiny) == 0
    assert fitting_size(tiny, 64) == 64


def test_small_images_stay_small_as_in_a_fit(small: str) -> None:
    chosen = config(small)
    assert (chosen.image_size, chosen.backbone_name) == (20, "small_conv")
    assert "20x20" in describe_network(chosen)
    values, _ = choose_network(load_dataset(small), gpu=True)
    assert (chosen.size, chosen.backbone_name) == (values["image_size"], values["backbone"])
    assert config(small, backbone="small_conv").size == 20


@pytest.mark.parametrize(
    "stated",
    [
        {"image_size": 64}, {"image_size": 224}, {"backbone": "resnet18"}, {"pretrained": True},
        {"weights": "w.safetensors", "backbone": "resnet18"},
    ],
)  # fmt: skip
def test_what_is_stated_stays(small: str, stated: dict[str, Any]) -> None:
    version = data_version(load_dataset(small))
    expected = RunConfig(data=small, data_version=version, target="west", setting="Natural", validation=0.2, **stated)
    assert config(small, **stated) == expected


def test_weights_name_their_network(large: str, tmp_path: Path) -> None:
    for file, network in (("resnet50_v1_in1k", "resnet50_v1"), ("resnet18", "resnet18"), ("mine", "resnet50")):
        path = tmp_path / f"{file}.safetensors"
        save_file({"a": torch.zeros(1)}, path)
        assert config(large, weights=str(path)).backbone_name == network
        assert config(large, weights=str(path), backbone="resnet34").backbone_name == "resnet34"
    with pytest.raises(LongshiftError, match=r"absent\.safetensors"):
        config(large, weights="absent.safetensors")


def test_other_images_keep_the_protocol(large: str) -> None:
    assert config(large).image_size == config("digits", target="ink").image_size == 0
    assert config(large).size == 224
    assert config(large, backbone="small_conv").size == 100


def test_a_target_in_any_spelling_is_one_run() -> None:
    found = [config("digits", target=name, method="erm") for name in ("ink", "INK", "Ink")]
    assert {one.target for one in found} == {"ink"}
    assert len({one.fingerprint() for one in found}) == 1
    with pytest.raises(UsageError, match="inc"):
        config("digits", target="inc", method="erm")
    assert config("digits", target="", method="erm").target == ""


def test_every_mistake_is_reported_at_once(small: str) -> None:
    """Those in the keys, those that only the data show, and those in the network."""
    wrong = {"data": small, "target": "wets", "stepz": 3, "method": "ndlc", "backbone": "resnet81"}
    with pytest.raises(ConfigError) as caught:
        resolve(wrong)
    told = caught.value.mistakes
    assert len(told) == 4
    for word in ("steps", "ndcl", "west", "resnet"):
        assert len([line for line in told if word in line]) == 1, word
    with pytest.raises(ConfigError) as caught:
        resolve({"data": "nowhere", "target": "west", "steps": 0})
    assert len(caught.value.mistakes) == 2
    with pytest.raises(UsageError, match="Balanced"):
        resolve({"target": "ink", "setting": "Balanced", "ratio": 10})


def test_resolving_twice_changes_nothing(small: str) -> None:
    assert config(small) == resolve(config(small)).config


def test_the_data_are_read_once(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def note(data: str) -> Manifest:
        read.append(data)
        return load_dataset(data)

    monkeypatch.setattr(resolve_run, "load_dataset", note)
    monkeypatch.setattr(task, "load_dataset", note)
    make_task(resolve({"data": small, "target": "west", "setting": "Natural", "shrink": True, "validation": 1}))
    assert read == [small]


def test_python_is_told_what_was_chosen_too(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    asked: dict[str, Any] = {
        "data": small, "target": "west", "setting": "Natural", "shrink": True, "validation": 1, "method": "erm",
        "steps": 1, "hparams": {"batch_size": 2},
    }  # fmt: skip
    said: dict[str, list[str]] = {"keys": [], "config": [], "all": []}
    stated = {**asked, "image_size": 20, "backbone": "small_conv"}
    requests: dict[str, Request] = {"keys": asked, "config": RunConfig(**asked), "all": RunConfig(**stated)}
    for name, request in requests.items():
        train(request, out=tmp_path / name, runtime=Runtime(device="cpu", keep_model=False), say=said[name].append)
    assert said["config"] == said["keys"]
    assert any("20x20" in text for text in said["config"])
    assert not any("small_conv" in text for text in said["all"])


def test_a_folder_that_is_taken_is_refused_before_anything_is_decoded(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_decoding(*args: object, **options: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(task, "open_store", no_decoding)
    asked = {"data": small, "target": "west", "setting": "Natural", "shrink": True, "validation": 1, "method": "erm"}
    folder = RunFolder(tmp_path / "run")
    write_config(folder, resolve(asked).config)
    folder.result.touch()
    for options in ({"request": asked, "out": folder.path}, {"resume": folder.path}):
        with pytest.raises(LongshiftError, match="finished"):
            train(**options)
    folder.result.unlink()
    folder.resume.touch()
    with pytest.raises(LongshiftError, match="steps"):  # another run
        train({**asked, "steps": 7}, out=folder.path)
    with lock_folder(folder.path), pytest.raises(LongshiftError, match="another command"):
        train(resume=folder.path)


def test_a_natural_run_validates_on_a_share(small: str) -> None:
    natural = resolve({"data": small, "target": "west", "setting": "Natural", "method": "erm"})
    assert make_task(natural).split.share == natural.config.validation == 0.2
    whole, exact = (parse_run_config({"target": "", "validation": number}) for number in (5, 5.0))
    assert whole.fingerprint() == exact.fingerprint()
    for wrong in (0, -1, 2.5):
        with pytest.raises(ConfigError, match="validation"):
            parse_run_config({"target": "", "validation": wrong})
