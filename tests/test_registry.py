"""Registries and plugins: names belong to one entry, files are loaded on request only, mistakes are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch import Tensor, nn

from longshift import registry
from longshift.data.readers import READERS
from longshift.errors import LongshiftError, UsageError
from longshift.methods import get_method
from longshift.nn.sources import SOURCES, Backbone, register_backbones
from longshift.registry import VARIABLE, Registry, load_plugins, plugin_files, use_plugin
from longshift.training.augment import AUGMENTATIONS, register_augmentation
from tests.docs.extend_page import blocks
from tests.registries import restore_registries

READER = """
from longshift.data import Manifest, register_reader

@register_reader(".mine")
def read(path, name):
    return Manifest.from_rows(name, path.parent, [])
"""


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    restore_registries(monkeypatch)
    monkeypatch.setattr(registry, "_loaded", set(registry._loaded))


def test_a_registry_is_a_mapping_in_order_of_registration() -> None:
    registry = Registry[int]("number")
    registry.add("two", 2)
    registry.add("One", 1)
    assert dict(registry) == {"two": 2, "One": 1}
    assert list(registry) == ["two", "One"]
    assert registry.find("ONE") == registry["One"] == registry.peek("One") == 1
    assert len(registry) == 2
    assert "one" not in registry


def test_a_name_belongs_to_one_entry() -> None:
    registry = Registry[int]("number", "longshift numbers")
    registry.add("two", 2)
    registry.add("two", 2)  # a module that is imported again
    for name, value in (("two", 3), ("Two", 2)):
        with pytest.raises(LongshiftError, match="two"):
            registry.add(name, value)
    with pytest.raises(UsageError, match="longshift numbers"):
        registry.find("twoo")
    with pytest.raises(UsageError, match="--plugin"):
        registry.find("zzz")


def test_a_cell_that_is_run_again_replaces_its_augmentation_and_its_backbones() -> None:
    def cell(factor: int) -> None:
        @register_augmentation("scaled", uniforms=factor)
        def scaled(images: Tensor, u: Tensor) -> Tensor:
            return images * factor

        def make(name: str, pretrained: bool) -> Backbone:
            return Backbone(nn.Flatten(), factor, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

        register_backbones("lab", make, names=lambda: ["flat"])

    cell(1)
    cell(2)
    assert AUGMENTATIONS["scaled"].uniforms == 2
    assert SOURCES["lab"].make("flat", False).feature_dim == 2
    with pytest.raises(LongshiftError, match="domainbed"):
        register_augmentation("domainbed", uniforms=1)(lambda images, u: images)

    def other(images: Tensor, u: Tensor) -> Tensor:
        return images

    with pytest.raises(LongshiftError, match="scaled"):
        register_augmentation("scaled", uniforms=2)(other)


def test_a_file_is_loaded_once_and_in_worker_processes(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(READER + "print('loaded')\n")
    assert ".mine" not in READERS
    use_plugin(file)
    use_plugin(file)
    assert ".mine" in READERS
    assert plugin_files() == [file]
    code = "from longshift.data.readers import READERS; print('.mine' in READERS)"
    worker = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert worker.stdout == "loaded\nTrue\n"


def test_the_variable_names_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / "one.py", tmp_path / "two.py"]
    for number, file in enumerate(files):
        file.write_text(READER.replace(".mine", f".mine{number}"))
    monkeypatch.setenv(VARIABLE, os.pathsep.join(map(str, files)))
    assert {".mine0", ".mine1"} <= set(READERS)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (None, r"mine\.py"),
        ("import no_such_thing", r"mine\.py.*no_such_thing"),
        ("def", r"mine\.py.*SyntaxError"),
        ("1 / 0", r"mine\.py.*ZeroDivisionError"),
        ("from longshift.methods import register\nregister('x', title='X', family='dg', paper='-', idea='-')(3)",
         "Method"),
        ("from longshift.data import register_reader\nregister_reader('csv')", "csv"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path: Path, text: str | None, named: str) -> None:
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(LongshiftError, match=named):
        use_plugin(path)
    assert plugin_files() == []


def test_a_plugin_cannot_take_a_built_in_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(blocks("python")["method"].replace('"tilted"', '"erm"'))
    with pytest.raises(LongshiftError, match="erm"):
        use_plugin(path)
    assert get_method("erm").__module__ == "longshift.methods.erm"


def test_the_documented_entry_point_is_found_and_a_broken_one_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_lab.py").write_text(blocks("python")["method"])
    declared = blocks("toml")["entry point"].splitlines()
    assert declared[0] == '[project.entry-points."longshift.plugins"]'
    name, value = (part.strip().strip('"') for part in declared[1].split("="))
    info = tmp_path / "my_lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-lab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[longshift.plugins]\n{name} = {value}\nbroken = no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match="no_such_module"):
        load_plugins()
    assert get_method("Tilted").info.name == "tilted"
    sys.modules.pop("my_lab")
