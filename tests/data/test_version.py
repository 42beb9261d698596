"""The version of a dataset follows from the content of its files, and from nothing else."""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest

from longshift.data import data_version, load_dataset, what_changed
from longshift.progress import Tick
from longshift.training import OpenDataset
from tests.data.trees import encoded, make_tree, picture, zip_tree


def version(path: Path, cache: Path) -> str:
    return data_version(load_dataset(path), cache)


def test_a_copy_and_an_archive_are_the_same_version(tmp_path: Path) -> None:
    cache, data = tmp_path / "cache", make_tree(tmp_path / "data")
    found = version(data, cache)
    copy = shutil.copytree(data, tmp_path / "copy")
    assert version(copy, cache) == found
    assert version(zip_tree(data, tmp_path / "data.zip", "data/"), cache) == found
    assert data_version(load_dataset("digits"), cache) == ""


def test_a_changed_split_column_is_another_version(tmp_path: Path) -> None:
    table, cache, found = make_tree(tmp_path / "data") / "t.csv", tmp_path / "cache", []
    for marks in (("", ""), ("train", "test"), ("test", "train")):
        rows = [f"{site}/cat/0.png,cat,{site},{mark}" for site, mark in zip(("paint", "photo"), marks, strict=True)]
        table.write_text("\n".join(["path,label,domain,split", *rows]))
        found.append((load_dataset(table).fingerprint(), version(table, cache)))
    assert len({fingerprint for fingerprint, _ in found}) == len({version for _, version in found}) == 3
    table.write_text("path,label,domain\npaint/cat/0.png,cat,paint\nphoto/cat/0.png,cat,photo\n")
    assert (load_dataset(table).fingerprint(), version(table, cache)) == found[0]  # data without the column keep theirs
    known = "ae15b2b973ba8d5d"
    assert load_dataset("digits").fingerprint().startswith(known)


ON_WINDOWS = pytest.mark.skipif(os.name == "nt", reason="Windows keeps no time of the last change that cannot be set")


@pytest.mark.parametrize("keep_time", [False, pytest.param(True, marks=ON_WINDOWS)])
def test_a_change_of_one_byte_is_another_version(tmp_path: Path, keep_time: bool) -> None:
    """Also if the file keeps its size and its time, as some copying programs do."""
    cache, data = tmp_path / "cache", make_tree(tmp_path / "data")
    before = version(data, cache)
    file = data / "paint" / "cat" / "0.png"
    status, raw = file.stat(), bytearray(file.read_bytes())
    raw[-20] ^= 1
    file.write_bytes(raw)
    if keep_time:
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = version(data, cache)
    assert after != before
    assert "paint/cat/0.png" in what_changed(before, after, cache)


def test_what_changed_is_told(tmp_path: Path) -> None:
    cache, data = tmp_path / "cache", make_tree(tmp_path / "data")
    before = version(data, cache)
    (data / "paint" / "cat" / "0.png").unlink()
    (data / "paint" / "dog" / "new.png").write_bytes(encoded(picture(99)))
    after = version(data, cache)
    said = what_changed(before, after, cache)
    assert "paint/cat/0.png" in said
    assert "paint/dog/new.png" in said
    shutil.rmtree(cache)
    said = what_changed(before, after, cache)
    assert before[:12] in said
    assert after[:12] in said


def test_progress_is_shown_while_many_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int]] = []
    ticks: list[int] = []

    def bar(label: str, total: int) -> AbstractContextManager[Tick]:
        shown.append((label, total))
        return nullcontext(lambda done=1, note="": ticks.append(done))

    data, cache = OpenDataset(str(make_tree(tmp_path / "data"))), tmp_path / "own"
    monkeypatch.setattr("longshift.data.version.MANY", 5)
    for _ in range(2):
        assert OpenDataset(data.data, cache=cache, bar=bar).version == data.version
    assert (shown, sum(ticks)) == ([("hashing data", 12)], 12)  # once: the hashes are kept
    assert len(list((cache / "versions").iterdir())) == 1


def test_vectors_have_a_version(tmp_path: Path) -> None:
    file, cache = tmp_path / "v.npz", tmp_path / "cache"
    versions = []
    for value in (1.0, 2.0):
        np.savez(file, x=np.eye(4) * value, label=np.arange(4) % 2, domain=np.arange(4) // 2)
        versions.append(version(file, cache))
        assert versions[-1] == version(file, tmp_path / f"cache {value}")
    assert versions[0] != versions[1]


def test_a_read_only_cache_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    data = make_tree(tmp_path / "data")
    assert version(data, tmp_path / "cache") == version(data, tmp_path / "other")
