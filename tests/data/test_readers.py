"""Readers of folders, archives and tables: the same rows from each, and errors that name the file."""

from __future__ import annotations

import csv
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from longshift.data import load_dataset, open_source, open_store, ordered_map
from longshift.errors import LongshiftError, UsageError
from tests.data.trees import encoded, make_tree, picture, zip_tree

EXPECTED = {"paint": {"cat": 3, "dog": 3}, "photo": {"cat": 3, "dog": 3}}


def write_csv(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_folder_is_read_in_the_order_of_domain_class_path(tmp_path: Path) -> None:
    make_tree(tmp_path / "data", domains=("photo", "paint"), classes=("dog", "cat"))
    manifest = load_dataset(tmp_path / "data")
    assert manifest.name == "data"
    assert manifest.counts() == EXPECTED
    assert manifest.paths == tuple(sorted(manifest.paths))
    folders = [
        f"{manifest.domain_names[domain]}/{manifest.classes[label]}"
        for domain, label in zip(manifest.domains, manifest.labels, strict=True)
    ]
    assert folders == [path.rsplit("/", 1)[0] for path in manifest.paths]
    assert load_dataset(str(tmp_path / "data"), name="mine").name == "mine"


def test_suffixes_of_images_in_any_case_count_and_others_do_not(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "d" / "c"
    folder.mkdir(parents=True)
    names = ["a.jpg", "b.JPEG", "c.Png", "d.webp", "e.bmp", "f.tif", "g.TIFF", "h.gif", "i.ppm"]
    for name in [*names, "notes.txt", "Thumbs.db", ".hidden.jpg", "jpg"]:
        (folder / name).touch()
    assert sorted(path.rsplit("/", 1)[1] for path in load_dataset(tmp_path / "data").paths) == sorted(names)


@pytest.mark.parametrize("prefix", ["", "PACS/", "a/b/"])
def test_a_zip_is_the_same_dataset_as_the_folder_it_unpacks_to(tmp_path: Path, prefix: str) -> None:
    folder = make_tree(tmp_path / "data")
    archive = zip_tree(folder, tmp_path / "data.zip", prefix)
    manifest = load_dataset(archive)
    assert manifest.counts() == EXPECTED
    assert manifest.fingerprint() == load_dataset(folder).fingerprint()
    assert manifest.prefix == prefix


def test_threads_read_one_archive_with_extra_fields(tmp_path: Path) -> None:
    """As the command `zip` writes them; on Python 3.12 and 3.13, readers in several threads move each other."""
    path, expected = tmp_path / "data.zip", {}
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(800):
            entry = zipfile.ZipInfo(f"north/cat/{number}.png")
            entry.extra = b"UT\x05\x00\x03" + number.to_bytes(4, "little")  # time stamps
            expected[entry.filename] = number.to_bytes(2, "little") * 500
            archive.writestr(entry, expected[entry.filename])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with open_source(load_dataset(path)) as source:
            found = list(ordered_map(source.read, [*expected] * 5, threads=16))
    finally:
        sys.setswitchinterval(interval)
    assert found == [*expected.values()] * 5


ODD_NAMES = (
    "a b",
    "\u00e9t\u00e9",
    "e\u0301",
    "\u540d",
    "x" * 90,
    "=1+1",
    "-rf",
    "a,b;c",
    "'\"",
    "{{7}}",
    "%s",
    "\x1b[2J",
    "line\nbreak",
)


def test_any_name_comes_back_unchanged(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data", ODD_NAMES[:3], ODD_NAMES, each=1)
    assert load_dataset(root).counts() == {d: dict.fromkeys(sorted(ODD_NAMES), 1) for d in sorted(ODD_NAMES[:3])}
    zipped = load_dataset(zip_tree(root, tmp_path / "data.zip", "wrap/"))
    assert zipped.fingerprint() == load_dataset(root).fingerprint()


def test_a_wrapping_folder_is_skipped_also_on_disk(tmp_path: Path) -> None:
    make_tree(tmp_path / "download" / "PACS")
    (tmp_path / "download" / "PACS" / "overview.png").touch()
    manifest = load_dataset(tmp_path / "download")
    assert manifest.counts() == EXPECTED
    assert manifest.root == tmp_path / "download" / "PACS"
    assert manifest.misplaced == ("overview.png",)


@pytest.mark.parametrize("place", ["{site}/images/{name}/{i}.png", "{site}/{name}/images/raw/{i}.png"])
@pytest.mark.parametrize("zipped", [False, True])
def test_a_level_with_one_folder_everywhere_is_skipped(tmp_path: Path, place: str, zipped: bool) -> None:
    root = tmp_path / "data"
    for site in ("north", "south"):
        for name in ("cat", "dog"):
            for i in range(2):
                file = root / place.format(site=site, name=name, i=i)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(encoded(picture(i)))
    (root / place.format(site="south", name="owl", i=0)).parent.mkdir(parents=True)
    found = load_dataset(zip_tree(root, tmp_path / "data.zip") if zipped else root)
    assert found.counts() == {"north": {"cat": 2, "dog": 2}, "south": {"cat": 2, "dog": 2}}
    assert found.paths[0] == place.format(site="north", name="cat", i=0)
    if not zipped:
        assert found.empty_folders == ("south/owl",)
    assert len(open_store(found, 8, tmp_path / "cache")) == 8


def test_a_level_that_differs_is_not_skipped(tmp_path: Path) -> None:
    for path in ("north/images/cat/1.png", "south/pictures/cat/1.png", "south/pictures/dog/2.png"):
        file = tmp_path / "data" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(picture(1)))
    with pytest.raises(LongshiftError, match="levels"):
        load_dataset(tmp_path / "data")


def test_one_domain_is_not_taken_for_a_wrapping_folder(tmp_path: Path) -> None:
    make_tree(tmp_path / "data", domains=("only",))
    assert load_dataset(tmp_path / "data").counts() == {"only": {"cat": 3, "dog": 3}}


def test_one_class_loads(tmp_path: Path) -> None:
    make_tree(tmp_path / "data", classes=("cat",))
    assert load_dataset(tmp_path / "data").classes == ("cat",)


def test_empty_folders_and_misplaced_images_are_remembered(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    (root / "paint" / "bird").mkdir()
    (root / "photo" / "stray.png").touch()
    (root / "photo" / "cat" / "more").mkdir()
    (root / "photo" / "cat" / "more" / "deep.png").touch()
    manifest = load_dataset(root)
    assert manifest.counts() == EXPECTED
    assert manifest.empty_folders == ("paint/bird",)
    assert manifest.misplaced == ("photo/cat/more/deep.png", "photo/stray.png")


def test_tables_read_the_same_rows(tmp_path: Path) -> None:
    rows = [("b.jpg", "NA", "x", "train"), ("a.jpg", "007", "y", ""), ("sub/../c.jpg", "NA", "y", "test")]
    with (tmp_path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label", "domain", "split"), *rows])
    pd.DataFrame(rows, columns=["path", "label", "domain", "split"]).to_parquet(tmp_path / "data.parquet")
    for name in ("data.csv", "data.parquet"):
        manifest = load_dataset(tmp_path / name)
        assert manifest.classes == ("007", "NA")  # texts, not numbers or missing values
        assert manifest.paths == ("b.jpg", "a.jpg", "c.jpg")
        assert manifest.splits == ("train", "", "test")
        assert manifest.root == tmp_path
        assert manifest.counts() == {"x": {"007": 0, "NA": 1}, "y": {"007": 1, "NA": 1}}


def test_a_table_without_split_has_none_and_numbers_become_texts(tmp_path: Path) -> None:
    pd.DataFrame({"path": ["1.png", "2.png"], "label": [3, 4], "domain": [0, 0]}).to_parquet(tmp_path / "t.parquet")
    manifest = load_dataset(tmp_path / "t.parquet")
    assert (manifest.classes, manifest.domain_names, manifest.splits) == (("3", "4"), ("0",), None)


def test_a_table_may_have_other_columns_of_any_kind(tmp_path: Path) -> None:
    columns = {"path": ["1.png", "2.png"], "label": ["a", "b"], "domain": ["x", "x"]}
    others = {"tags": [["new"], ["old", "dark"]], "camera": [{"name": "c", "iso": 100}] * 2, "box": [[1.5, 2.0]] * 2}
    pd.DataFrame({**columns, **others}).to_parquet(tmp_path / "t.parquet")
    manifest = load_dataset(tmp_path / "t.parquet")
    assert (manifest.paths, manifest.classes, manifest.domain_names) == (("1.png", "2.png"), ("a", "b"), ("x",))


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_tables_of_spreadsheets(tmp_path: Path, mark: str) -> None:
    """Semicolons and tabs, a byte order mark, capital letters, and paths as Windows writes them."""
    lines = ["Path,Label,DOMAIN", "a\\b 1.png,x,one", "a\\2.png,y,two"]
    text = "\r\n".join(line.replace(",", mark) for line in lines)
    (tmp_path / "t.csv").write_text(text, encoding="utf-8-sig", newline="")
    manifest = load_dataset(tmp_path / "t.csv")
    assert manifest.paths == ("a/b 1.png", "a/2.png")
    assert (manifest.classes, manifest.domain_names) == (("x", "y"), ("one", "two"))


def test_a_backslash_in_a_name_that_exists_stays(tmp_path: Path) -> None:
    (tmp_path / "a\\b.png").write_bytes(b"")
    (tmp_path / "t.csv").write_text("path,label,domain\na\\b.png,x,one\n..\\c.png,x,one\n")
    with pytest.raises(LongshiftError, match=r"c\.png"):  # no way around the check
        load_dataset(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("path,label,domain\na\\b.png,x,one\n")
    assert load_dataset(tmp_path / "t.csv").paths == ("a\\b.png",)


def test_what_was_given_is_kept_for_messages(tmp_path: Path) -> None:
    make_tree(tmp_path / "my data")
    assert load_dataset(tmp_path / "my data").argument == f"'{tmp_path / 'my data'}'"
    (tmp_path / "t.csv").write_text("path,label,domain\n1.png,x,one\n")
    assert load_dataset(tmp_path / "t.csv").argument == str(tmp_path / "t.csv")
    assert load_dataset("digits").argument == "digits"


def test_absolute_paths_inside_the_folder_of_a_table_become_relative(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "t.csv", "path,label,domain", f"{tmp_path}/x/1.png,a,d", "x/2.png,b,d")
    assert load_dataset(table).paths == ("x/1.png", "x/2.png")


def test_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    make_tree(tmp_path / "data")
    odd = os.fsencode(tmp_path / "data" / "paint" / "cat") + b"/caf\xe9.png"
    try:
        Path(os.fsdecode(odd)).touch()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    with pytest.raises(LongshiftError, match="UTF-8"):
        load_dataset(tmp_path / "data")


def test_a_link_to_a_parent_is_a_loop(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    (root / "paint" / "again").symlink_to(root)
    with pytest.raises(LongshiftError, match="symlink loop"):
        load_dataset(root)


def test_links_to_other_folders_and_files_are_followed(tmp_path: Path) -> None:
    make_tree(tmp_path / "real")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one").symlink_to(tmp_path / "real" / "paint")
    (tmp_path / "data" / "two").symlink_to(tmp_path / "real" / "paint")
    assert load_dataset(tmp_path / "data").counts() == {"one": EXPECTED["paint"], "two": EXPECTED["paint"]}


@pytest.mark.parametrize("name", ["../x.png", "/etc/d/c/x.png", "a/../../x.png", "..\\x.png", "C:/d/c/x.png"])
def test_zip_entries_that_point_outside_are_refused(tmp_path: Path, name: str) -> None:
    archive = zip_tree(make_tree(tmp_path / "data"), tmp_path / "data.zip")
    with zipfile.ZipFile(archive, "a") as out:
        out.writestr(name, b"x")
    with pytest.raises(LongshiftError, match=r"data\.zip"):
        load_dataset(archive)


def test_zip_entries_given_twice_are_refused(tmp_path: Path) -> None:
    archive = zip_tree(make_tree(tmp_path / "data"), tmp_path / "data.zip")
    with zipfile.ZipFile(archive, "a") as out, pytest.warns(UserWarning, match="Duplicate name"):
        out.writestr("paint/cat/0.png", b"x")
    with pytest.raises(LongshiftError, match=r"paint/cat/0\.png"):
        load_dataset(archive)


def test_hidden_and_macos_entries_of_a_zip_are_skipped(tmp_path: Path) -> None:
    archive = zip_tree(make_tree(tmp_path / "data"), tmp_path / "data.zip", "PACS/")
    with zipfile.ZipFile(archive, "a") as out:
        out.writestr("__MACOSX/PACS/paint/cat/._0.png", b"x")
        out.writestr("PACS/paint/cat/.0.png", b"x")
    assert load_dataset(archive).counts() == EXPECTED


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("hopsitals", "hospitals"),
        ("digit", "digits"),
        ("pacs", "pacs-features"),
        ("nowhere/pacs", "nowhere"),
        ("hospitals/pacs", "'pacs'"),
    ],
)
def test_a_path_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, named: str) -> None:
    make_tree(tmp_path / "hospitals")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=named):
        load_dataset(given)


def test_indices_and_counts_agree_with_a_plain_loop(tmp_path: Path) -> None:
    manifest = load_dataset(make_tree(tmp_path / "data"))
    for domain in manifest.domain_names:
        for label in manifest.classes:
            expected = [i for i, path in enumerate(manifest.paths) if path.startswith(f"{domain}/{label}/")]
            np.testing.assert_array_equal(manifest.indices(domain, label), expected)
