"""Bad input of every kind ends in one error that names the file, the key or the option; never in a traceback.

Each case is a function that makes the input and returns the words of a command. `CASES` names each with a regular
expression for the name that the error must contain, or None where the command must accept the input.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError
from tests.faults.tools import outcome, tiny_sites

INSPECT, VERIFY = ("data", "inspect"), ("data", "verify", "-q")
TRAIN = ("train", "--data", "digits", "--target", "ink", "--method", "erm", "--steps", "2", "--device", "cpu", "-q")
IMAGES, VECTORS = "{images}", "{vectors}"  # folders of finished models
Words = tuple[object, ...]
Case = Callable[[Path], Words]


def picture(format: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (16, 16)) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, 1).save(buffer, format)
    return buffer.getvalue()


def sites_with(name: str, content: bytes) -> Case:
    """A folder of two sites and one file more."""

    def make(tmp: Path) -> Words:
        (tiny_sites(tmp / "sites") / name).write_bytes(content)
        return (*VERIFY, tmp / "sites")

    return make


def linked(target: str) -> Case:
    """A link among the images."""

    def make(tmp: Path) -> Words:
        (tiny_sites(tmp / "sites") / "north" / "red" / "link.png").symlink_to(target)
        return (*VERIFY, tmp / "sites")

    return make


def piped(tmp: Path) -> Words:
    """Without a writer, reading it would wait forever."""
    os.mkfifo(tiny_sites(tmp / "sites") / "north" / "red" / "pipe.png")
    return (*VERIFY, tmp / "sites")


def twice(tmp: Path) -> Words:
    shutil.copy(tiny_sites(tmp / "s") / "north/red/0.png", tmp / "s/north/blue/copy.png")
    return (*VERIFY, tmp / "s")


def given(name: str, content: str | bytes, *words: object) -> Case:
    """One file `name`; the words of the command, of which `{file}` is the file (at the end if there is none)."""

    def make(tmp: Path) -> Words:
        (tmp / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tuple(tmp / name if word == FILE else word for word in (words if FILE in words else (*words, FILE)))

    return make


FILE = "{file}"


def tree(*files: str) -> Case:
    """A folder with a good image under each name."""

    def make(tmp: Path) -> Words:
        (tmp / "d").mkdir()
        for name in files:
            (tmp / "d" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp / "d" / name).write_bytes(picture())
        return (*INSPECT, tmp / "d")

    return make


def vectors(**arrays: object) -> Case:
    """A file of vectors; every array can be replaced, None leaves it out."""

    def make(tmp: Path) -> Words:
        good = {"x": np.eye(8, 4, dtype=np.float32), "label": np.arange(8) % 2, "domain": np.arange(8) // 4}
        kept = {name: value for name, value in {**good, **arrays}.items() if value is not None}
        np.savez(tmp / "v.npz", **kept)  # type: ignore[arg-type]
        return (*INSPECT, tmp / "v.npz")

    return make


def parquet(cut: bool = False, **columns: object) -> Case:
    """A Parquet file, whole or with its end cut off."""

    def make(tmp: Path) -> Words:
        pd.DataFrame(columns).to_parquet(tmp / "t.parquet")
        raw = (tmp / "t.parquet").read_bytes()
        (tmp / "t.parquet").write_bytes(raw[: len(raw) // 2] if cut else raw)
        return (*INSPECT, tmp / "t.parquet")

    return make


def archive(entries: dict[str, bytes], change: Callable[[bytes], bytes] = bytes) -> Case:
    """A zip with these entries, then changed as bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return given("a.zip", change(buffer.getvalue()), *VERIFY)


def encrypted(raw: bytes) -> bytes:
    """The flag of encryption set in every entry."""
    found = bytearray(raw)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = found.find(mark)
        while place >= 0:
            found[place + offset] |= 1
            place = found.find(mark, place + 4)
    return bytes(found)


def table(text: str, encoding: str = "utf-8") -> Case:
    return given("t.csv", text.encode(encoding), *INSPECT)


def counts(text: str, suffix: str = ".csv") -> Case:
    return given(f"counts{suffix}", text, "split", "show", "digits", "--target", "ink", "--setting", FILE)


def config(text: str | bytes) -> Case:
    return given("run.toml", text, "train", "--out", "run", "--device", "cpu", "-q", "--config", FILE)


def options(*words: str) -> Case:
    return lambda tmp: (*TRAIN, "--out", "run", *words)


def weights(content: bytes) -> Case:
    return given("w.safetensors", content, *TRAIN, "--out", "run", "--weights", FILE)


def without(name: str, *words: str, content: str | None = None) -> Case:
    """The folder of a finished run without a file, or with another content of it."""

    def make(tmp: Path) -> Words:
        (tmp / "x.png").write_bytes(picture())
        (tmp / "model" / name).unlink()
        if content is not None:
            (tmp / "model" / name).write_text(content)
        return words or ("predict", "model", "x.png", "-q")

    return make


def predicted(name: str, content: bytes) -> Case:
    return given(name, content, "predict", IMAGES, FILE, "--device", "cpu", "-q")


def labels(text: str | bytes) -> Case:
    return given("labels.csv", text, "adapt", VECTORS, FILE, "--out", "out")


def runs(name: str, content: bytes) -> Case:
    return given(name, content, "report")


def called(*words: object) -> Case:
    return lambda tmp: words


PLACES = [f"{site}/{label}/{k}.png" for site in "ab" for label in "xy" for k in range(2)]
SITES = {name: picture(size=(8 + k, 8)) for k, name in enumerate(PLACES)}
HEAD = "path,label,domain\n"
LINE = "north/red/0.png,red,north\nsouth/blue/0.png,blue,south\n"
PNG, BIG = picture(), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\0\0\0"
Z = "north/red/z.png"

CASES: dict[str, tuple[Case, str | None]] = {
    # folders and images
    "no such folder": (called("data", "inspect", "none"), "none"),
    "empty folder": (tree(), "/d"),
    "folder of texts": (given("notes.txt", b"text", *INSPECT), "notes.txt"),
    "images without folders": (tree("1.png", "2.png"), "/d"),
    "one class": (tree("a/x/1.png", "b/x/1.png"), None),
    "images too deep": (tree("a/x/deep/er/1.png", "b/x/deep/er/1.png"), "/d"),
    "image without bytes": (sites_with(Z, b""), Z),
    "text called .png": (sites_with(Z, b"hello"), Z),
    "half a JPEG": (sites_with("north/red/z.jpg", picture("JPEG", size=(64, 64))[:500]), "z.jpg"),
    "half a PNG": (sites_with(Z, PNG[:50]), Z),
    "PNG of 2 billion pixels a side": (sites_with(Z, BIG), Z),
    "CMYK JPEG": (sites_with("north/red/z.jpg", picture("JPEG", "CMYK")), None),
    "palette GIF": (sites_with("north/red/z.gif", picture("GIF", "P")), None),
    "link to itself": (linked("link.png"), "link.png"),
    "link to nothing": (linked("nowhere.png"), "link.png"),
    "link to an endless device": (linked("/dev/zero"), "link.png"),
    "pipe": (piped, "pipe.png"),
    "same image under two labels": (twice, "copy.png"),
    # tables
    "empty table": (table(""), "t.csv"),
    "table without rows": (table(HEAD), "t.csv"),
    "table without a column": (table("path,label\nnorth/red/0.png,red\n"), "domain"),
    "table with an empty label": (table(f"{HEAD}north/red/0.png,,north\n"), "label"),
    "table with a path twice": (table(f"{HEAD}{LINE}{LINE}"), "0.png"),
    "table with a path outside": (table(f"{HEAD}../../x.png,a,b\n"), "x.png"),
    "table with a path to a text": (given("t.csv", f"{HEAD}/etc/passwd,a,b\n", *VERIFY), "/etc/passwd"),
    "table with a column twice": (table(f"path,label,domain,Label\n{LINE}"), "label"),
    "table that is not UTF-8": (table(f"{HEAD}é.png,é,b\n", encoding="latin-1"), "t.csv"),
    "table with an open quote": (table(f'{HEAD}"north/red/0.png,red,north\n'), "t.csv"),
    "table with ragged rows": (table(f"{HEAD}{LINE}a,b,c,d,e\n"), "t.csv"),
    "text called .parquet": (given("t.parquet", b"path,label", *INSPECT), "t.parquet"),
    "half a Parquet file": (parquet(cut=True, path=["a"], label=["x"], domain=["y"]), "t.parquet"),
    "Parquet of numbers": (parquet(a=[1.0], b=[2.0]), "t.parquet"),
    # vectors
    "text called .npz": (given("v.npz", b"text", *INSPECT), "v.npz"),
    "vectors without x": (vectors(x=None), r"v\.npz.*\bx\b"),
    "vectors without labels": (vectors(label=None), "label"),
    "too few labels": (vectors(label=np.arange(3)), "label"),
    "NaN in a vector": (vectors(x=np.full((8, 4), np.nan, np.float32)), "NaN"),
    "vectors of text": (vectors(x=np.full((8, 4), "a")), "v.npz"),
    "cubes for vectors": (vectors(x=np.zeros((8, 2, 2), np.float32)), r"\(8, 2, 2\)"),
    "labels that are objects": (vectors(label=np.array([{}] * 8, dtype=object)), "v.npz"),
    # archives
    "text called .zip": (given("a.zip", b"text", *INSPECT), "a.zip"),
    "half a zip": (archive(SITES, lambda raw: raw[: len(raw) // 2]), "a.zip"),
    "zip without entries": (archive({}), "a.zip"),
    "encrypted zip": (archive(SITES, encrypted), "encrypted|password"),
    "zip with a damaged entry": (archive(SITES, lambda raw: raw[:60] + b"\xff\xff\xff" + raw[63:]), "0.png"),
    "zip with texts after it": (archive(SITES, lambda raw: raw + b"trailing" * 100), None),
    # settings, splits, configurations
    "counts that are negative": (counts("domain,class,count\npaper,0,-5\n"), "counts.csv"),
    "counts that are words": (counts("domain,class,count\npaper,0,many\n"), "counts.csv"),
    "counts of an unknown class": (counts("domain,class,count\npaper,cat,5\n"), "cat"),
    "counts nested too deep": (counts("[" * 100_000, ".json"), "counts.json"),
    "split that is empty": (given("split.json", "{}", "split", "show"), "split.json"),
    "configuration that is not TOML": (config("= = ="), "run.toml"),
    "configuration with an unknown key": (config('data = "digits"\ntarget = "ink"\nstep = 3\n'), "'step'"),
    "configuration that is not UTF-8": (config(b"data = '\xff\xfe'"), "run.toml"),
    "device that is not there": (options("--device", "cuda:99"), "cuda:99"),
    # weights and models
    "text as weights": (weights(b"hello"), "w.safetensors"),
    "pickle as weights": (weights(pickle.dumps({"w": 1})), "w.safetensors"),
    "weights with a header of 2^60 bytes": (weights((2**60).to_bytes(8, "little")), "w.safetensors"),
    "model folder without files": (called("predict", ".", "x.png"), "model|result"),
    "model without description": (without("model.json"), "model.json"),
    "model without weights": (without("model.safetensors"), "model.safetensors"),
    "run without configuration": (without("config.json", "evaluate", "model", "-q"), "config.json"),
    "run with a list as result": (without("result.json", "evaluate", "model", "-q", content="[]"), "result.json"),
    "export to a folder": (called("export", IMAGES, "--format", "torch", "--out", "."), "pt2"),
    "export to an unknown format": (called("export", IMAGES, "--format", "tflite"), "tflite"),
    # what is predicted, labels, tables of runs
    "missing file to predict": (called("predict", IMAGES, "none.png", "-q"), "none.png"),
    "broken image to predict": (predicted("a.png", b"\x89PNG"), "a.png"),
    "vectors for a model of images": (predicted("v.npz", b"PK"), "v.npz"),
    "labels without a column": (labels("path\na.npz\n"), "label"),
    "labels that are not UTF-8": (labels(b"path,label\n\xff\xfe,1\n"), "labels.csv"),
    "table of runs of noise": (runs("runs.parquet", bytes(range(256))), "runs.parquet"),
    "half a table of runs": (runs("runs.parquet", b"PAR1" + bytes(30)), "runs.parquet"),
}  # fmt: skip


@pytest.fixture(scope="module")
def vectors_fit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fit")
    x = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    np.savez(folder / "v.npz", x=x, label=np.arange(40) % 2, domain=np.arange(40) // 20)
    flags = ("--method", "erm", "--steps", "3", "--set", "batch_size=4", "--device", "cpu", "--quiet")
    assert outcome("fit", folder / "v.npz", *flags, "--out", folder / "fit") is None
    return folder / "fit"


@pytest.mark.parametrize("name", CASES)
def test_bad_input(
    name: str, digits_run: Path, vectors_fit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(digits_run, "model")
    make, expected = CASES[name]
    folders: dict[object, Path] = {IMAGES: digits_run, VECTORS: vectors_fit}
    found = CliRunner().invoke(app, [str(folders.get(word, word)) for word in make(tmp_path)])
    assert found.exception is None or isinstance(found.exception, (LongshiftError, SystemExit)), repr(found.exception)
    said = f"{found.output}\n{found.exception}"
    if expected is None:
        assert found.exit_code == 0, said
    else:
        assert found.exit_code != 0, said
        assert re.search(expected, said.replace("\n", " ")), said
    assert not (tmp_path / "run" / "result.json").exists()
