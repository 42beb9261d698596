"""`verify` finds duplicates, damaged files and names that differ only in spelling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from longshift.data import load_dataset
from longshift.data.folder_layout import similar
from longshift.data.manifest import Manifest, Row
from longshift.data.verification import DataProblem, layout_problems, verify
from longshift.errors import LongshiftError
from tests.data.test_images import bomb
from tests.data.trees import encoded, make_tree, pacs, picture, zip_tree


def kinds(problems: list[DataProblem]) -> dict[str, str]:
    return {problem.path: problem.kind for problem in problems}


def test_a_good_dataset_has_none(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    ticks: list[int] = []
    assert verify(load_dataset(root), lambda done=1, note="": ticks.append(done)) == []
    assert sum(ticks) == 12
    assert verify(load_dataset(zip_tree(root, tmp_path / "data.zip", "x/"))) == []
    assert verify(load_dataset("digits")) == []


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data", classes=("cat", "dog", "Dog"))
    (root / "paint" / "cat" / "0.png").write_bytes(b"")
    (root / "paint" / "cat" / "1.jpg").write_bytes(b"some text")
    (root / "paint" / "dog" / "0.png").write_bytes(encoded(picture(50, 64, 64), "JPEG")[:-300])
    (root / "paint" / "dog" / "1.png").write_bytes(bomb(50_000, 50_000))
    (root / "photo" / "cat" / "0.png").write_bytes((root / "paint" / "cat" / "1.png").read_bytes())
    (root / "photo" / "cat" / "1.png").unlink()
    (root / "photo" / "cat" / "1.png").symlink_to(tmp_path / "nowhere.png")
    (root / "paint" / "bird").mkdir()
    (root / "photo" / "fish").mkdir()
    (root / "photo" / "fish" / "0.png").write_bytes(encoded(picture(51)))
    (root / "stray.png").write_bytes(encoded(picture(52)))
    problems = verify(load_dataset(root))
    assert kinds(problems) == {
        "paint/cat/0.png": "zero-byte",
        "paint/cat/1.jpg": "not an image",
        "paint/dog/0.png": "truncated",
        "paint/dog/1.png": "decompression bomb",
        "photo/cat/0.png": "duplicate",
        "photo/cat/1.png": "unreadable",
        "paint/bird": "empty class",
        "paint/fish": "empty class",
        "Dog": "similar labels",
        "stray.png": "misplaced",
    }
    assert len(problems) == 10


def test_copies_inside_a_domain_and_two_labels_are_told_apart_from_duplicates(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    original = (root / "paint" / "cat" / "0.png").read_bytes()
    for copy in ("paint/cat/1.png", "paint/dog/1.png", "photo/dog/1.png"):
        (root / copy).write_bytes(original)
    for domain in ("paint", "photo"):  # two empty files are not copies of each other
        (root / domain / "dog" / "0.png").write_bytes(b"")
    found = [(p.kind, p.path) for p in verify(load_dataset(root)) if p.kind != "zero-byte"]
    assert found == [
        ("copy", "paint/cat/1.png"), ("two labels", "paint/dog/1.png"), ("two labels", "photo/dog/1.png"),
        ("duplicate", "photo/dog/1.png"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [("Photo", "photo"), ("Gro\u0308\u00dfe", "Gr\u00f6\u00dfe"), ("basal cell", "basal-cell", "Basal_Cell ")],
)
def test_names_in_two_spellings(names: tuple[str, ...]) -> None:
    rows = [Row(name, name, f"{i}.png") for i, name in enumerate(names)]
    problems = list(layout_problems(Manifest.from_rows("x", None, rows)))
    for kind in ("similar labels", "similar domains"):
        (found,) = [problem for problem in problems if problem.kind == kind]
        assert all(repr(name) in found.detail for name in names)


def test_a_minus_is_no_other_spelling() -> None:
    assert similar(["grade 1", "grade -1", "1-2", "12", "a-1", "a 1"]) == []


def test_vectors(tmp_path: Path) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    np.savez(tmp_path / "v.npz", x=x, label=["a", "b", "a"], domain=["n", "n", "s"])
    found = verify(load_dataset(tmp_path / "v.npz"))
    assert [(problem.kind, problem.path) for problem in found] == [("empty class", "s/b"), ("duplicate", "2")]


def test_twelve_bits_in_sixteen_are_nearly_black(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    for name, brightest in (("scanner", 4095), ("stretched", 65535)):
        values = np.linspace(0, brightest, 64).astype(np.uint16).reshape(8, 8)
        Image.fromarray(values).save(root / "paint" / "cat" / f"{name}.png")
    (problem,) = verify(load_dataset(root))
    assert (problem.kind, problem.path) == ("dark", "paint/cat/scanner.png")


@pytest.mark.parametrize("zipped", [False, True])
def test_pictures_of_formats_that_are_not_read(tmp_path: Path, zipped: bool) -> None:
    root = make_tree(tmp_path / "data")
    (root / "paint" / "cat" / "phone.HEIC").write_bytes(b"x")
    (root / "paint" / "cat" / "notes.txt").write_bytes(b"x")
    (root / "photo" / "dog" / ".hidden.dcm").write_bytes(b"x")
    manifest = load_dataset(zip_tree(root, tmp_path / "d.zip", "around/") if zipped else root)
    assert len(manifest) == 12
    assert [(p.kind, p.path) for p in verify(manifest)] == [("other format", "paint/cat/phone.HEIC")]


def test_only_pictures_of_formats_that_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "data" / "a" / "b").mkdir(parents=True)
    (tmp_path / "data" / "a" / "b" / "1.dcm").write_bytes(b"x")
    with pytest.raises(LongshiftError, match=r"1\.dcm"):
        load_dataset(tmp_path / "data")


@pytest.mark.slow
def test_pacs_has_no_problem() -> None:
    assert verify(load_dataset(pacs())) == []
