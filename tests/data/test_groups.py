"""Groups of samples (patients, lesions): columns of tables and vectors, CSV files beside the domains."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.data import load_dataset
from longshift.data.groups import GROUPS_FILE, find_groups
from longshift.errors import LongshiftError
from tests.data.trees import ham10000, make_tree, zip_tree

PATHS = ("a/cat/1.png", "a/cat/2.png", "a/dog/3.png", "b/dog/3.png")


def test_a_table_and_vectors_have_a_group_column(tmp_path: Path) -> None:
    text = "path,label,domain,Group\nb.png,dog,n,p2\na.png,cat,n,p1\nc.png,dog,n,\n"
    (tmp_path / "t.csv").write_text(text)
    assert load_dataset(tmp_path / "t.csv").groups == ("p1", "p2", "")
    arrays: dict[str, Any] = {"x": np.eye(3), "label": ["cat", "dog", "dog"], "domain": ["n"] * 3}
    np.savez(tmp_path / "v.npz", **arrays, group=["p1", "p2", ""])
    assert load_dataset(tmp_path / "v.npz").groups == ("p1", "p2", "")
    np.savez(tmp_path / "plain.npz", **arrays)
    assert load_dataset(tmp_path / "plain.npz").groups is None


def test_groups_are_a_part_of_the_version(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    before = load_dataset(root).fingerprint()
    found = set()
    for group in ("p1", "p2"):
        (root / GROUPS_FILE).write_text(f"image,group\npaint/cat/0.png,{group}\n")
        found.add(load_dataset(root).fingerprint())
    assert len(found | {before}) == 3


@pytest.mark.parametrize("prefix", ["", "wrap/"])
def test_a_folder_and_its_zip_have_the_groups_of_the_file_beside_the_domains(tmp_path: Path, prefix: str) -> None:
    root = make_tree(tmp_path / "data")
    (root / "scans_metadata.csv").write_text("lesion_id;x;image\nL1;9;paint/cat/0.png\nL1;9;photo/dog/2.png\n")
    (root / "other.csv").write_text("image,price\npaint/cat/0.png,9\n")
    folder, archive = load_dataset(root), load_dataset(zip_tree(root, tmp_path / "data.zip", prefix))
    assert folder.groups == archive.groups == ("L1", *[""] * 10, "L1")
    assert folder.fingerprint() == archive.fingerprint()


def test_an_image_is_named_by_path_name_or_stem_if_only_one_has_it() -> None:
    rows = {"a/cat/1.png": "p", "2.png": "q", "1": "r", "3": "not one image", "b/dog/3.png": "s"}
    text = "\n".join(["group,file", *(f"{group},{name}" for name, group in rows.items())])
    # Of two rows about one image the last counts.
    assert find_groups({"x.csv": text.encode()}, PATHS) == ["r", "q", "", "s"]


def test_groups_csv_goes_first_and_patients_before_lesions() -> None:
    lesions = b"name,lesion_id,patient_id\n1,l1,p1\n2,l2,p1\n"
    assert find_groups({"a.csv": lesions}, PATHS) == ["p1", "p1", "", ""]
    assert find_groups({"a.csv": lesions, GROUPS_FILE: b"name,group\n1,own\n"}, PATHS) == ["own", "", "", ""]


def test_cells_with_line_breaks_and_tables_of_another_kind() -> None:
    assert find_groups({"a.csv": b'note,image,group\n"two\nlines",1,p\n,2,q\n'}, PATHS) == ["p", "q", "", ""]
    before = csv.field_size_limit(1000)
    try:
        assert find_groups({"a.csv": b"image,group\n1," + b"x" * 2000 + b"\n"}, PATHS) is None
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize("text", ["", "image,group\n", "image,owner\n1,x\n", "image,group\nnone,x\n"])
def test_groups_csv_that_names_no_image_or_group_is_refused_and_another_csv_is_not(text: str) -> None:
    assert find_groups({"notes.csv": text.encode()}, PATHS) is None
    with pytest.raises(LongshiftError, match=GROUPS_FILE):
        find_groups({GROUPS_FILE: text.encode()}, PATHS)


def test_the_lesions_of_ham10000() -> None:
    found = load_dataset(ham10000())
    assert found.groups is not None
    assert (len(found), len(set(found.groups)), max(Counter(found.groups).values())) == (10_015, 7_470, 6)
