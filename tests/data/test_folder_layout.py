"""A folder at the wrong level gets an answer that names the right one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from longshift.data import load_dataset
from longshift.data.folder_layout import LayoutAdvice, looks_like_split, no_shared_class
from longshift.errors import LongshiftError
from tests.data.trees import encoded, make_tree, picture, zip_tree
from tests.golden import check_golden


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


def test_one_site_or_class_names_the_folder_of_all_sites(hospitals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (hospitals / "north", hospitals / "south" / "naevus"):
        text = message(given)
        assert repr(str(hospitals)) in text
        assert "west" in text
    monkeypatch.chdir(hospitals / "north")
    assert "'..'" in message(".")
    monkeypatch.chdir(hospitals)
    assert "'.'" in message("north")


def test_sites_without_classes_are_not_taken_for_one_site_of_the_dataset_beside(hospitals: Path) -> None:
    for site in ("north", "south"):
        put(hospitals.parent / "flat" / site / "1.png")
    assert "west" not in message(hospitals.parent / "flat")


def test_a_level_too_many(tmp_path: Path) -> None:
    for site in ("north", "south"):
        put(tmp_path / "deep" / site / "naevus" / "patient1" / "1.png")
    text = message(tmp_path / "deep")
    assert str(tmp_path / "deep" / "north") in text
    assert "patient1" in text
    assert "north, unpacked" in message(zip_tree(tmp_path / "deep", tmp_path / "deep.zip"))


def test_parts_of_a_split(tmp_path: Path) -> None:
    for part in ("Train", "val"):
        make_tree(tmp_path / "data" / part)
    assert str(tmp_path / "data" / "Train") in message(tmp_path / "data")


def test_classes_that_look_like_sites(tmp_path: Path) -> None:
    for site in ("north", "south"):
        for label in ("melanoma", "naevus"):
            put(tmp_path / "deep" / site / label / f"{site}-{label}-patient" / "1.png")
    assert repr(str(tmp_path / "deep")) in str(no_shared_class(load_dataset(tmp_path / "deep" / "north")))
    alone = tmp_path / "alone"
    (tmp_path / "deep" / "north").rename(alone)
    assert str(alone) in str(no_shared_class(load_dataset(alone)))


def test_tables_and_vectors_whose_labels_are_domains(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("path,label,domain\n1.png,a,x\n2.png,b,y\n")
    assert no_shared_class(load_dataset(tmp_path / "t.csv"))
    np.savez(tmp_path / "v.npz", x=np.eye(2), label=["a", "b"], domain=["x", "y"])
    assert no_shared_class(load_dataset(tmp_path / "v.npz"))


def test_a_good_dataset_says_nothing(hospitals: Path) -> None:
    assert no_shared_class(load_dataset(hospitals)) is None
    assert no_shared_class(load_dataset("digits")) is None


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
def test_parts_of_a_split_are_no_domains(names: tuple[str, ...], told: bool) -> None:
    assert looks_like_split(names) == told


def test_classes_in_two_spellings_are_not_taken_for_a_wrong_level(tmp_path: Path) -> None:
    make_tree(tmp_path / "data", ("north",), ("Benign", "basal cell"), 1)
    make_tree(tmp_path / "data", ("south",), ("benign", "Basal-cell"), 1)
    said = str(no_shared_class(load_dataset(tmp_path / "data")))
    assert "Basal-cell" in said
    assert str(tmp_path) not in said
    make_tree(tmp_path / "other", ("east",), ("Benign", "benign"), 1)  # alike at one site only: no reason
    make_tree(tmp_path / "other", ("west",), ("naevus",), 1)
    assert str(tmp_path) in str(no_shared_class(load_dataset(tmp_path / "other")))


def test_words() -> None:
    root = Path("sites/north")
    advice = [
        LayoutAdvice("one class", root, give="sites", others=["south"]),
        LayoutAdvice("one site", root, ["cat", "dog"], "sites", ["south", "west"]),
        LayoutAdvice("no folders", root),
        LayoutAdvice("too few levels", root, ["cat", "dog"]),
        LayoutAdvice("split", root, ["test", "train"], "sites/north/test"),
        LayoutAdvice("too many levels", root, ["patient1", "patient2"], "sites/north/cat"),
        LayoutAdvice("spellings", detail="differ only by case: 'Cat', 'cat'"),
        LayoutAdvice("mixed up"),
        LayoutAdvice("site of classes", root, ["cat", "dog"]),
    ]
    check_golden("layout.txt", "\n".join(map(str, advice)) + "\n")
