"""The cache of decoded images: contents, reuse, interruptions, full and read-only disks."""

from __future__ import annotations

import csv
import errno
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from longshift.data import load_dataset, open_store
from longshift.data.images import decode, resize
from longshift.errors import LongshiftError, UsageError
from tests.data.trees import ROOT, encoded, make_tree, picture, zip_tree

# Opens a store, telling of each image; after the fifth it waits until the parent makes the file "gate".
BUILDER = """
import sys, time
from pathlib import Path
from longshift.data import load_dataset, open_store
ticks = 0
def tick(done=1, note=""):
    global ticks
    ticks += done
    print("tick", done, note, flush=True)
    while ticks == 5 and not Path(sys.argv[3]).exists():
        time.sleep(0.01)
store = open_store(load_dataset(sys.argv[1]), 8, Path(sys.argv[2]), tick)
print("done", store.fingerprint, int(store.inputs.sum()), flush=True)
"""


def builder(data: Path, cache: Path, gate: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(data), str(cache), str(gate)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def builder_in_the_middle(data: Path, cache: Path, gate: Path) -> subprocess.Popen[str]:
    process = builder(data, cache, gate)
    assert process.stdout is not None
    for _ in range(5):
        assert process.stdout.readline() == "tick 1 \n"
    return process


def stores(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.name.startswith("v3-"))


def leftovers(cache: Path) -> list[Path]:
    return list(cache.glob(".*.part"))


@pytest.mark.parametrize("packed", [False, True])
def test_rows_are_the_resized_images_in_the_order_of_the_manifest(tmp_path: Path, packed: bool) -> None:
    folder = make_tree(tmp_path / "data")
    source = zip_tree(folder, tmp_path / "data.zip", "wrap/") if packed else folder
    manifest = load_dataset(source)
    ticks: list[int] = []
    store = open_store(manifest, 6, tmp_path / "cache", lambda done=1, note="": ticks.append(done))
    assert sum(ticks) == len(manifest) == 12
    assert (store.inputs.shape, store.inputs.dtype.name, store.size) == ((12, 6, 6, 3), "uint8", 6)
    for row, path in zip(store.inputs, manifest.paths, strict=True):
        expected = Image.open(folder / path).resize((6, 6), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(row, np.asarray(expected))
    assert isinstance(store.inputs, np.memmap)
    assert store.inputs.flags.c_contiguous
    assert not store.inputs.flags.writeable


def test_a_warm_store_is_not_built_again(tmp_path: Path) -> None:
    manifest = load_dataset(make_tree(tmp_path / "data"))
    first = open_store(manifest, 8, tmp_path / "cache")
    ticks: list[int] = []
    second = open_store(manifest, 8, tmp_path / "cache", lambda done=1, note="": ticks.append(done))
    assert ticks == []
    assert second.fingerprint == first.fingerprint
    np.testing.assert_array_equal(second.inputs, first.inputs)


def test_fingerprint_tells_size_and_pixels_and_not_the_place(tmp_path: Path) -> None:
    one, two = (load_dataset(make_tree(tmp_path / name / "data")) for name in "ab")
    cache = tmp_path / "cache"
    assert open_store(one, 8, cache).fingerprint == open_store(two, 8, cache).fingerprint
    assert open_store(one, 8, cache).fingerprint != open_store(one, 9, cache).fingerprint
    (tmp_path / "b" / "data" / "paint" / "cat" / "0.png").write_bytes(encoded(picture(99)))
    assert open_store(one, 8, cache).fingerprint != open_store(two, 8, cache).fingerprint


def test_the_index_lists_the_rows(tmp_path: Path) -> None:
    manifest = load_dataset(make_tree(tmp_path / "data"))
    open_store(manifest, 8, tmp_path / "cache")
    (name,) = stores(tmp_path / "cache")
    with (tmp_path / "cache" / name / "manifest.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(row["path"] for row in rows) == manifest.paths
    assert all(row["path"].startswith(f"{row['domain']}/{row['label']}/") for row in rows)


def test_default_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "elsewhere"))
    open_store(load_dataset(make_tree(tmp_path / "data")), 8)
    assert len(stores(tmp_path / "elsewhere")) == 1


def test_changed_images_are_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root, cache = make_tree(tmp_path / "data"), tmp_path / "cache"
    before = open_store(load_dataset(root), 8, cache)
    old = np.array(before.inputs)
    (root / "photo" / "dog" / "2.png").write_bytes(encoded(picture(1234)))
    with caplog.at_level(logging.WARNING, "longshift"):
        after = open_store(load_dataset(root), 8, cache)
    assert len(caplog.records) == 1
    assert after.fingerprint != before.fingerprint
    np.testing.assert_array_equal(after.inputs[-1], resize(decode(encoded(picture(1234))), 8))
    np.testing.assert_array_equal(before.inputs, old)  # who has the old one open keeps it
    assert len(stores(cache)) == 1


def test_images_that_change_while_building_stop_it(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")

    def tick(done: int = 1, note: str = "") -> None:
        (root / "paint" / "cat" / "0.png").write_bytes(encoded(picture(7, 30, 30)))

    with pytest.raises(LongshiftError, match="changed"):
        open_store(load_dataset(root), 8, tmp_path / "cache", tick)
    assert stores(tmp_path / "cache") == []
    assert leftovers(tmp_path / "cache") == []


def test_all_unreadable_images_are_named(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "data")
    (root / "paint" / "cat" / "1.png").write_bytes(b"")
    (root / "photo" / "dog" / "0.png").write_bytes(b"text")
    # Of the first, with the reason.
    with pytest.raises(LongshiftError, match=r"cat/1\.png.*photo/dog/0\.png"):
        open_store(load_dataset(root), 8, tmp_path / "cache")
    assert leftovers(tmp_path / "cache") == []


def test_killed_in_the_middle_then_run_again(tmp_path: Path) -> None:
    data, cache = make_tree(tmp_path / "data"), tmp_path / "cache"
    process = builder_in_the_middle(data, cache, tmp_path / "gate")
    process.kill()  # SIGKILL
    process.communicate()
    assert process.returncode == -9
    assert stores(cache) == []
    assert len(leftovers(cache)) == 1, "the kill was meant to hit the middle of the work"

    store = open_store(load_dataset(data), 8, cache)
    assert leftovers(cache) == []
    assert store.fingerprint == open_store(load_dataset(data), 8, tmp_path / "other").fingerprint


def test_two_processes_one_builds_both_open(tmp_path: Path) -> None:
    data, cache = make_tree(tmp_path / "data"), tmp_path / "cache"
    first = builder_in_the_middle(data, cache, tmp_path / "gate")
    second = builder(data, cache, tmp_path / "gate")
    assert second.stdout is not None
    assert second.stdout.readline().startswith("tick 0 ")
    (tmp_path / "gate").touch()
    out_first, _ = first.communicate(timeout=600)
    out_second, _ = second.communicate(timeout=600)
    assert out_first.count("tick 1") == 12 - 5
    assert out_second.count("tick") == 0
    assert out_first.splitlines()[-1] == out_second.splitlines()[-1]
    assert out_second.startswith("done")


def test_too_little_space_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=500_000_000))
    ticks: list[int] = []
    manifest = load_dataset(make_tree(tmp_path / "data", each=6))
    with pytest.raises(LongshiftError, match="LONGSHIFT_CACHE"):
        open_store(manifest, 4096, tmp_path / "cache", lambda done=1, note="": ticks.append(done))
    assert ticks == []


def test_a_disk_that_fills_up_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    manifest = load_dataset(make_tree(tmp_path / "data"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LongshiftError, match="full"):
            open_store(manifest, 8, tmp_path / "cache")
    assert leftovers(tmp_path / "cache") == []
    assert len(open_store(manifest, 8, tmp_path / "cache")) == 12


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that this process can't write to; a superuser becomes somebody else for a while."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(user)
        folder.chmod(stat.S_IRWXU)
        shutil.rmtree(folder)


def test_a_read_only_cache_is_told(read_only: Path) -> None:
    with tempfile.TemporaryDirectory() as data:
        manifest = load_dataset(make_tree(Path(data) / "data"))
        for cache in (read_only, read_only / "below"):
            with pytest.raises(LongshiftError, match="read-only"):
                open_store(manifest, 8, cache)


def test_a_warm_store_opens_from_a_read_only_cache(read_only: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        manifest = load_dataset(make_tree(Path(folder) / "data"))
        fingerprint = open_store(manifest, 8, cache).fingerprint
        cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
        try:
            assert open_store(manifest, 8, cache).fingerprint == fingerprint
            with pytest.raises(LongshiftError, match="read-only"):
                open_store(manifest, 9, cache)
        finally:
            cache.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(("name", "content"), [("pixels.npy", b""), ("index.json", b"{}")])
def test_a_store_that_cannot_be_opened_is_built_again(tmp_path: Path, name: str, content: bytes) -> None:
    manifest, cache = load_dataset(make_tree(tmp_path / "data")), tmp_path / "cache"
    before = np.array(open_store(manifest, 8, cache).inputs)
    (folder,) = stores(cache)
    (cache / folder / name).write_bytes(content)
    np.testing.assert_array_equal(open_store(manifest, 8, cache).inputs, before)


@pytest.mark.parametrize("size", [0, -1, 5000])
def test_sizes_out_of_range(size: int) -> None:
    with pytest.raises(UsageError, match="4096"):
        open_store(load_dataset("digits"), size)
