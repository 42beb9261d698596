"""Files that are larger than they look, never end or never begin: refused in words before memory is taken."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from longshift.data import load_dataset, verify
from longshift.data.image_decoding import BRIGHTEST, BadImage, decode
from longshift.data.parquet_file import read_parquet
from longshift.errors import LongshiftError
from longshift.files import read_json, read_limited, read_sealed, write_sealed
from longshift.inference import load_model, predict
from longshift.results import read_runs
from longshift.toml import read_toml
from tests.commands import Command
from tests.faults.tools import outcome, tiny_sites
from tests.sweep.small import write_sweep

MIB = 1 << 20


def kinds(path: Path) -> dict[str, str]:
    return {problem.path: f"{problem.kind}: {problem.detail}" for problem in verify(load_dataset(path))}


@pytest.mark.slow
def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for site in ("a", "b"):
            archive.writestr(f"{site}/cat/1.png", b"x")
        with archive.open("a/cat/bomb.png", "w", force_zip64=True) as entry:
            for _ in range(300):
                entry.write(bytes(MIB))
    assert file.stat().st_size < MIB
    tracemalloc.start()
    try:
        found = kinds(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found["a/cat/bomb.png"] == "decompression bomb: 300 MiB when unpacked, at most 256 MiB are read"
    assert peak < 50 * MIB


@pytest.mark.parametrize("what", ["device", "pipe", "pipe behind a link"])
def test_what_is_not_a_file_is_refused_at_once(tmp_path: Path, what: str) -> None:
    """An endless device would fill the memory, and a pipe without a writer would wait forever."""
    data = tiny_sites(tmp_path / "sites")
    odd = data / "north" / "red" / "odd.png"
    if what == "device":
        odd.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "pipe.png" if "link" in what else odd)
        if "link" in what:
            odd.symlink_to(tmp_path / "pipe.png")
    assert "expected a file, got a pipe, device or socket" in kinds(data)["north/red/odd.png"]
    assert "got a pipe, device or socket" in str(outcome("fit", str(data), "--out", str(tmp_path / "f"), "-q"))
    os.mkfifo(tmp_path / "vectors.npz")
    assert "expected a file, got a pipe" in str(outcome("data", "inspect", str(tmp_path / "vectors.npz")))


def test_predict_skips_pipes(digits_run: Path, tmp_path: Path) -> None:
    Image.new("RGB", (32, 32)).save(tmp_path / "good.png")
    os.mkfifo(tmp_path / "pipe.png")
    found = predict(digits_run, [tmp_path], device="cpu")
    assert [Path(row.path).name for row in found.rows] == ["good.png"]
    assert [(Path(path).name, reason) for path, reason in found.skipped] == [
        ("pipe.png", "unreadable: expected a file, got a pipe, device or socket")
    ]


def test_configurations_are_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (read_json, read_toml):
        with pytest.raises(LongshiftError, match="expected a file, got a pipe"):
            read(tmp_path / "pipe")
    with pytest.raises(OSError, match="larger than"):
        read_limited(__file__, 10)
    assert read_limited(__file__, 10**6) == Path(__file__).read_bytes()


def sixteen_bits(width: int, height: int) -> bytes:
    """A small file with a large 16-bit picture, all black but for its last row."""
    buffer = io.BytesIO()
    pixels = np.zeros((height, width), dtype=np.uint16)
    pixels[-1] = 4095
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_sixteen_bits_cost_no_wider_copies() -> None:
    data = sixteen_bits(3000, 3000)
    tracemalloc.start()
    try:
        picture = decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert picture.info[BRIGHTEST] == 4095
    assert (picture.getpixel((0, 0)), picture.getpixel((0, 2999))) == ((0, 0, 0), (15, 15, 15))
    assert peak < 3 * 9_000_000  # NumPy's part: the picture in 8 bits and a band; it was 18 bytes per pixel


def test_large_pictures_are_decoded_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshift.data.image_decoding.LARGE", 100)
    inside, most, load = [0], [0], Image.Image.load

    def slow(image: Image.Image) -> object:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.02)
        inside[0] -= 1
        return load(image)

    from PIL import PngImagePlugin

    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", lambda image: slow(image))
    data = sixteen_bits(20, 20)
    threads = [threading.Thread(target=lambda: slow_decode(data)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1


def slow_decode(data: bytes) -> None:
    with contextlib.suppress(BadImage):
        decode(data)


@pytest.mark.slow
def test_a_picture_over_the_limit_is_refused_without_a_warning(tmp_path: Path) -> None:
    """Pillow would warn on standard error, in the middle of the progress."""
    chunk = zlib.compress(bytes(100))

    def part(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    header = (10_000).to_bytes(4, "big") + (10_000).to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    data = tiny_sites(tmp_path / "sites")
    (data / "north" / "red" / "big.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", chunk) + part(b"IEND", b"")
    )
    out, said = Command("data", "verify", data, "--quiet").communicate()
    assert "decompression bomb" in out
    assert "Warning" not in said


def test_packed_vectors_are_refused_before_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshift.data.packing_limit.UNPACKED_LIMIT", 10**5)
    np.savez_compressed(tmp_path / "b.npz", x=np.zeros((10_000, 50), np.float32), label=[0], domain=[0])
    with pytest.raises(LongshiftError, match="when unpacked"):
        load_dataset(tmp_path / "b.npz")
    pd.DataFrame({"f": np.zeros(10**6), "label": "a", "domain": "b"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(LongshiftError, match="when unpacked"):
        load_dataset(tmp_path / "b.parquet")


@pytest.mark.parametrize("kind", ["vectors", "table of images", "table of runs"])
def test_texts_of_a_table_are_not_multiplied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Parquet stores a text that all rows have in common once: a file of a kilobyte took 6 GB."""
    monkeypatch.setattr("longshift.data.packing_limit.UNPACKED_LIMIT", 10**6)
    rows, file = 1000, tmp_path / "runs.parquet"
    columns: dict[str, Any] = {"label": ["x" * 10**5] * rows, "domain": ["a"] * rows}
    others: dict[str, Any] = {"vectors": np.zeros(rows), "table of images": [f"{i}.png" for i in range(rows)]}
    columns["path" if kind == "table of images" else "f"] = others.get(kind, "erm")
    pd.DataFrame(columns).to_parquet(file, compression="zstd")
    assert file.stat().st_size < 10**5
    tracemalloc.start()
    try:
        with pytest.raises(LongshiftError, match="when unpacked"):
            read_runs(file) if kind == "table of runs" else load_dataset(file)
        assert tracemalloc.get_traced_memory()[1] < 20 * MIB
    finally:
        tracemalloc.stop()


def test_lists_of_texts_in_a_table_are_refused(tmp_path: Path) -> None:
    """How long they are is not known before they are read. Those that are not needed are not read."""
    names = {"label": ["a"], "domain": ["b"]}
    pd.DataFrame({"embedding": [["a"]], **names}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(LongshiftError, match="expected texts, numbers or lists of numbers, got list"):
        load_dataset(tmp_path / "b.parquet")
    pd.DataFrame({"f": [["a"]], **names}).to_parquet(tmp_path / "b.parquet")
    assert read_parquet(tmp_path / "b.parquet", needed=("embedding",)).column_names == ["label", "domain"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.safetensors", "metrics.jsonl", "predictions.npz", "split.json", "resume.pt"])
def test_a_pipe_in_the_folder_of_a_run_is_not_waited_for(digits_run: Path, tmp_path: Path, name: str) -> None:
    run = shutil.copytree(digits_run, tmp_path / "run")
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    if name == "resume.pt":
        (run / "result.json").unlink()
        assert "expected a file, got a pipe" in str(outcome("train", "--resume", str(run), "--device", "cpu", "-q"))
        return
    Image.new("RGB", (32, 32)).save(tmp_path / "x.png")
    for words in (("evaluate", run), ("report", run), ("predict", run, tmp_path / "x.png")):
        process = Command(*words, cwd=tmp_path)
        _, said = process.communicate(timeout=100)
        assert "Traceback" not in said
        assert process.returncode in (0, 1), said


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sweep.toml", "plan.jsonl", "index.tsv", "runs.csv"])
def test_a_pipe_in_the_folder_of_a_sweep_is_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = write_sweep(tmp_path / "s", draws=1, targets=["ink"])
    if name == "sweep.toml":
        assert outcome("sweep", "plan", str(folder), "--no-measure") is None
        (folder / name).unlink()
    os.mkfifo(folder / name)
    for words in (("sweep", "status", folder), ("report", folder), ("sweep", "plan", folder, "--no-measure")):
        process = Command(*words, cwd=tmp_path)
        _, said = process.communicate(timeout=100)
        assert "Traceback" not in said
        assert process.returncode in (0, 1, 2), said
    for words in (("report", folder / name), ("data", "inspect", folder / name)):
        assert outcome(*map(str, words)) is not None


@pytest.mark.slow
def test_more_classes_than_weights_are_refused(digits_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(digits_run, tmp_path / "run")
    info = read_sealed(run / "model.json")
    write_sealed(run / "model.json", {**info, "classes": [str(i) for i in range(10**6)], "counts": []})
    with pytest.raises(LongshiftError, match="names 1000000 classes, for which its weights are too few"):
        load_model(run, device="cpu")


def test_a_text_called_npz_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "v.npz").write_text("x,label,domain\n")
    with pytest.raises(LongshiftError, match=r"v\.npz is not an \.npz file"):
        load_dataset(tmp_path / "v.npz")


@pytest.mark.slow
def test_two_bad_vectors_do_not_cost_the_others(tmp_path: Path) -> None:
    from tests.faults.tools import outcome as run

    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 4)).astype(np.float32)
    np.savez(tmp_path / "v.npz", x=x, label=np.arange(40) % 2, domain=np.arange(40) // 20)
    flags = ("--method", "erm", "--steps", "3", "--set", "batch_size=4", "--device", "cpu", "--quiet")
    assert run("fit", str(tmp_path / "v.npz"), *flags, "--out", str(tmp_path / "fit")) is None
    x[[3, 7], 0] = np.nan
    np.savez(tmp_path / "new.npz", x=x)
    found = predict(tmp_path / "fit", [tmp_path / "new.npz"], device="cpu")
    assert len(found.rows) == 38
    assert found.skipped[0][1] == "2 vectors with NaN, infinite or too large numbers: 03, 07"
    model = tmp_path / "fit" / "final" / "model.json"
    write_sealed(model, {**read_sealed(model), "input_dim": 16_777_216})
    with pytest.raises(LongshiftError, match="for which its weights are too few"):
        load_model(tmp_path / "fit", device="cpu")


@pytest.mark.slow
def test_few_descriptors_and_little_memory_end_in_words(tmp_path: Path) -> None:
    data = tiny_sites(tmp_path / "sites")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))

    found = subprocess.run(
        [sys.executable, "-c", "from longshift.cli.main import main; main()", "data", "verify", str(data), "-q"],
        capture_output=True, text=True, preexec_fn=limit, check=False, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in found.stderr
    assert found.returncode in (0, 1)
