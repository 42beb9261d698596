"""A folder at the wrong level gets an answer that names the right one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.data import load_dataset
from longshift.data.folder_layout import no_shared_class_warning, split_names_warning
from longshift.errors import LongshiftError
from longshift.fitting.data_summary import summarize_data
from tests.data.trees import encoded, make_tree, picture, zip_tree


def message(path: Path | str) -> str:
    with pytest.raises(LongshiftError) as caught:
        load_dataset(path)
    return str(caught.value)


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(picture(len(os.fspath(path)))))


@pytest.fixture
def hospitals(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "hospitals", ("north", "south", "west"), ("melanoma", "naevus"), 2)


def test_one_site_names_the_folder_above(hospitals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = message(hospitals / "north")
    assert "looks like one site, with the classes melanoma, naevus" in text
    assert f"give the folder above it, {str(hospitals)!r}, which also has south, west." in text
    monkeypatch.chdir(hospitals / "north")
    assert "give the folder above it, '..', which also has south, west." in message(".")
    monkeypatch.chdir(hospitals)
    assert "give the folder above it, '.', which also has south, west." in message("north")


def test_one_class_names_the_folder_of_all_sites(hospitals: Path) -> None:
    text = message(hospitals / "south" / "naevus")
    assert f"one class (naevus) of one site (south): give the folder of all sites, {str(hospitals)!r}" in text
    assert "which also has north, west." in text


def test_images_without_any_folder(tmp_path: Path) -> None:
    put(tmp_path / "all" / "1.png")
    assert "a folder for each site and, in it, each class" in message(tmp_path / "all")


def test_sites_without_classes_are_not_taken_for_one_site_of_the_dataset_beside(hospitals: Path) -> None:
    for site in ("north", "south"):
        put(hospitals.parent / "flat" / site / "1.png")
    text = message(hospitals.parent / "flat")
    assert "one level of folders too few. If the folders (north, south) are classes" in text
    assert "looks like one site" not in text


def test_a_level_too_many(tmp_path: Path) -> None:
    for site in ("north", "south"):
        put(tmp_path / "deep" / site / "naevus" / "patient1" / "1.png")
    text = message(tmp_path / "deep")
    assert "too many levels of folders" in text
    assert f"(such as {tmp_path / 'deep' / 'north'})" in text
    assert "the innermost folders (patient1) are not classes" in text
    zipped = message(zip_tree(tmp_path / "deep", tmp_path / "deep.zip"))
    assert "(such as north, unpacked)" in zipped


def test_parts_of_a_split(tmp_path: Path) -> None:
    for part in ("Train", "val"):
        make_tree(tmp_path / "data" / part)
    text = message(tmp_path / "data")
    assert (
        f"Train, val look like parts of a split, not like sites: give one of them ({tmp_path / 'data' / 'Train'})"
        in text
    )


def test_classes_that_look_like_sites(tmp_path: Path) -> None:
    for site in ("north", "south"):
        for label in ("melanoma", "naevus"):
            put(tmp_path / "deep" / site / label / f"{site}-{label}-patient" / "1.png")
    said = no_shared_class_warning(load_dataset(tmp_path / "deep" / "north"))
    assert "no class is in two of the domains melanoma, naevus (classes: north-melanoma-patient" in said
    assert f"give the folder above it, {str(tmp_path / 'deep')!r}, which also has south" in said
    alone = tmp_path / "alone"
    (tmp_path / "deep" / "north").rename(alone)
    assert f"then {alone} is one site" in no_shared_class_warning(load_dataset(alone))


def test_tables_and_vectors_whose_labels_are_domains(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("path,label,domain\n1.png,a,x\n2.png,b,y\n")
    assert no_shared_class_warning(load_dataset(tmp_path / "t.csv")).endswith("are labels and domains mixed up?")
    np.savez(tmp_path / "v.npz", x=np.eye(2), label=["a", "b"], domain=["x", "y"])
    assert no_shared_class_warning(load_dataset(tmp_path / "v.npz")).endswith("are labels and domains mixed up?")


def test_a_good_dataset_says_nothing(hospitals: Path) -> None:
    assert no_shared_class_warning(load_dataset(hospitals)) == ""
    assert no_shared_class_warning(load_dataset("digits")) == ""


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("train", "val"), True),
        (("Test", "Training", "dev"), True),
        (("train", "north"), False),
        (("train",), False),
        (("art", "photo"), False),
    ],
)
def test_parts_of_a_split_are_no_domains(names: tuple[str, ...], told: bool, tmp_path: Path) -> None:
    assert bool(split_names_warning(names)) == told
    make_tree(tmp_path / "data", names, ("a", "b"), 3)
    shown = CliRunner().invoke(app, ["data", "inspect", str(tmp_path / "data")])
    assert ("look like parts of a split" in shown.stderr) == told
    if len(names) > 1:
        warnings = summarize_data(load_dataset(tmp_path / "data")).warnings()
        assert any("look like parts of a split" in text for text in warnings) == told


def test_classes_in_two_spellings_are_not_taken_for_a_wrong_level(tmp_path: Path) -> None:
    make_tree(tmp_path / "data", ("north",), ("Benign", "basal cell"), 1)
    make_tree(tmp_path / "data", ("south",), ("benign", "Basal-cell"), 1)
    said = no_shared_class_warning(load_dataset(tmp_path / "data"))
    assert "; some differ only by spaces, dashes or underscores: 'Basal-cell', 'basal cell'. Spell each class" in said
    assert "one level too many" not in said
    make_tree(tmp_path / "other", ("east",), ("Benign", "benign"), 1)  # alike at one site only: no reason
    make_tree(tmp_path / "other", ("west",), ("naevus",), 1)
    assert "one level too many" in no_shared_class_warning(load_dataset(tmp_path / "other"))
