"""Inputs that are wrong in many ways: each function makes one and names the command that reads it.

A case returns the words of a command. `CASES` names each with what the answer must say: a regular expression for the
error, or None where the command must accept the input (with a warning, or by skipping a part).
"""

from __future__ import annotations

import io
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from tests.faults.tools import tiny_sites
from tests.sweep.small import write_sweep

INSPECT, VERIFY = ("data", "inspect"), ("data", "verify", "-q")
TRAIN = ("train", "--data", "digits", "--target", "ink", "--method", "erm", "--steps", "2", "--device", "cpu", "-q")


class Models(NamedTuple):
    """Finished models: the folder of a run on images and of a fit on vectors."""

    images: Path
    vectors: Path


Case = Callable[[Path, Models], tuple[object, ...]]


def picture(format: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (16, 16)) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, 1).save(buffer, format)
    return buffer.getvalue()


def sites_with(name: str, content: bytes | None, verb: tuple[str, ...] = VERIFY) -> Case:
    """A folder of two sites and one file more; without content, a folder of that name."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        place = tiny_sites(tmp / "sites") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.mkdir()
        else:
            place.write_bytes(content)
        return (*verb, tmp / "sites")

    return make


def linked(target: str) -> Case:
    """A link among the images."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tiny_sites(tmp / "sites") / "north" / "red" / "link.png").symlink_to(target)
        return (*VERIFY, tmp / "sites")

    return make


def only(name: str, content: bytes, verb: tuple[str, ...] = INSPECT) -> Case:
    """One file and nothing else."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tmp / name).write_bytes(content)
        return (*verb, tmp / name)

    return make


def tree(*files: str, verb: tuple[str, ...] = INSPECT) -> Case:
    """A folder with a good image under each name."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tmp / "d").mkdir()
        for name in files:
            (tmp / "d" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp / "d" / name).write_bytes(picture())
        return (*verb, tmp / "d")

    return make


def table(text: str, verb: tuple[str, ...] = INSPECT, encoding: str = "utf-8") -> Case:
    """A table next to the images of two sites."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tiny_sites(tmp / "sites") / "t.csv").write_bytes(text.encode(encoding))
        return (*verb, tmp / "sites" / "t.csv")

    return make


def vectors(verb: tuple[str, ...] = INSPECT, **arrays: object) -> Case:
    """A file of vectors; every array can be replaced, None leaves it out."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        good = {"x": np.eye(8, 4, dtype=np.float32), "label": np.arange(8) % 2, "domain": np.arange(8) // 4}
        kept = {name: value for name, value in {**good, **arrays}.items() if value is not None}
        np.savez(tmp / "v.npz", **kept)  # type: ignore[arg-type]
        return (*verb, tmp / "v.npz")

    return make


def parquet(frame: pd.DataFrame, cut: bool = False) -> Case:
    """A Parquet file, whole or with its end cut off."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        frame.to_parquet(tmp / "t.parquet")
        if cut:
            raw = (tmp / "t.parquet").read_bytes()
            (tmp / "t.parquet").write_bytes(raw[: len(raw) // 2])
        return (*INSPECT, tmp / "t.parquet")

    return make


def archive(entries: dict[str, bytes], change: Callable[[bytes], bytes] = bytes) -> Case:
    """A zip with these entries, then changed as bytes."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            for name, content in entries.items():
                file.writestr(name, content)
        (tmp / "a.zip").write_bytes(change(buffer.getvalue()))
        return (*VERIFY, tmp / "a.zip")

    return make


PLACES = [f"{site}/{label}/{k}.png" for site in "ab" for label in "xy" for k in range(2)]
SITES = {name: picture(size=(8 + k, 8)) for k, name in enumerate(PLACES)}


def encrypted(raw: bytes) -> bytes:
    """The flag of encryption set in every entry."""
    found = bytearray(raw)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = found.find(mark)
        while place >= 0:
            found[place + offset] |= 1
            place = found.find(mark, place + 4)
    return bytes(found)


def setting(text: str, suffix: str = ".csv") -> Case:
    """A file of counts."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tmp / f"counts{suffix}").write_text(text)
        return ("split", "show", "digits", "--setting", tmp / f"counts{suffix}", "--target", "ink")

    return make


def config(text: str | bytes) -> Case:
    """`train --config`."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tmp / "run.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return ("train", "--config", tmp / "run.toml", "--out", tmp / "run", "--device", "cpu", "-q")

    return make


def options(*words: str) -> Case:
    """`train` with an option that is wrong."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        return (*TRAIN, "--out", tmp / "run", *words)

    return make


def sweep(text: str | None = None, **changes: object) -> Case:
    """A sweep file."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        folder = write_sweep(tmp / "s", **changes)
        if text is not None:
            (folder / "sweep.toml").write_text(text)
        return ("sweep", "plan", folder, "--no-measure")

    return make


def weights(content: Callable[[Path], bytes]) -> Case:
    """Weights to start from, made from those of a finished run."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tmp / "w.safetensors").write_bytes(content(models.images / "model.safetensors"))
        return (*TRAIN, "--out", tmp / "run", "--weights", tmp / "w.safetensors")

    return make


def empty(path: Path) -> None:
    path.write_text("[]")


def model(change: Callable[[Path], None], *words: str) -> Case:
    """A folder of a finished run, changed."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        copy = Path(shutil.copytree(models.images, tmp / "model"))
        change(copy)
        (tmp / "x.png").write_bytes(picture())
        return (words[0], copy, *words[1:]) if words else ("predict", copy, tmp / "x.png", "-q")

    return make


def predicted(name: str, content: bytes | None) -> Case:
    """An input of `predict` for a model of images; without content, there is none."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        if content is not None:
            (tmp / name).write_bytes(content)
        return ("predict", models.images, tmp / name, "--device", "cpu", "-q")

    return make


def predicted_vectors(**arrays: object) -> Case:
    """An input of `predict` for a model of vectors."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        np.savez(tmp / "v.npz", **arrays)  # type: ignore[arg-type]
        return ("predict", models.vectors, tmp / "v.npz", "--device", "cpu", "-q")

    return make


def labels(text: str | bytes) -> Case:
    """Labels of a new site."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tmp / "labels.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        return ("adapt", models.vectors, tmp / "labels.csv", "--out", tmp / "out")

    return make


def runs(name: str, content: bytes) -> Case:
    """A table of runs."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tmp / name).write_bytes(content)
        return ("report", tmp / name)

    return make


def split_file(text: str) -> Case:
    """A saved split."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        (tmp / "split.json").write_text(text)
        return ("split", "show", tmp / "split.json")

    return make


def called(*words: object) -> Case:
    """A command without a file of its own; `{tmp}`, `{images}` and `{vectors}` are folders."""

    def make(tmp: Path, models: Models) -> tuple[object, ...]:
        return tuple(str(word).format(tmp=tmp, images=models.images, vectors=models.vectors) for word in words)

    return make


HEAD = "path,label,domain\n"
LINE = "north/red/0.png,red,north\nsouth/blue/0.png,blue,south\n"
PNG, BIG = picture(), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\0\0\0"
FRAME = pd.DataFrame({"path": ["a"], "label": ["x"], "domain": ["y"]})

CASES: dict[str, tuple[Case, str | None]] = {
    # folders and images
    "no such folder": (called("data", "inspect", "{tmp}/none"), "no file or folder 'none'"),
    "empty folder": (tree(), "no images in"),
    "folder of texts": (only("notes.txt", b"text"), r"got .*notes\.txt"),
    "images without folders": (tree("1.png", "2.png"), "domain/class"),
    "one domain": (tree("a/x/1.png", "a/y/1.png"), None),
    "one class": (tree("a/x/1.png", "b/x/1.png"), None),
    "images too deep": (tree("a/x/deep/er/1.png", "b/x/deep/er/1.png"), "too many levels"),
    "image without bytes": (sites_with("north/red/z.png", b""), "zero-byte"),
    "text called .png": (sites_with("north/red/z.png", b"hello"), "not an image"),
    "page called .jpg": (sites_with("north/red/z.jpg", b"<!DOCTYPE html><html></html>"), "not an image"),
    "half a JPEG": (sites_with("north/red/z.jpg", picture("JPEG", size=(64, 64))[:500]), "truncated"),
    "half a PNG": (sites_with("north/red/z.png", PNG[:50]), "truncated|unreadable|not an image"),
    "PNG with a wrong chunk": (sites_with("north/red/z.png", PNG[:40] + b"\xff\xff" + PNG[42:]), r"truncated.*z\.png"),
    "PNG of 2 billion pixels a side": (sites_with("north/red/z.png", BIG), r"truncated.*z\.png"),
    "CMYK JPEG": (sites_with("north/red/z.jpg", picture("JPEG", "CMYK")), None),
    "picture of one pixel": (sites_with("north/red/z.png", picture(size=(1, 1))), None),
    "palette GIF": (sites_with("north/red/z.gif", picture("GIF", "P")), None),
    "TIFF in the folder": (sites_with("north/red/z.tiff", picture("TIFF", "I;16")), "16-bit values"),
    "folder called .png": (sites_with("north/red/z.png", None), None),
    "link to itself": (linked("link.png"), "links to itself"),
    "link to nothing": (linked("nowhere.png"), r"unreadable.*link\.png"),
    "link to a folder": (linked("."), "symlink loop"),
    "same image under two labels": (
        lambda tmp, models: (
            shutil.copy(tiny_sites(tmp / "s") / "north/red/0.png", tmp / "s/north/blue/copy.png"), (*VERIFY, tmp / "s"),
        )[1],
        "two labels",
    ),
    # tables
    "empty table": (table(""), "cannot read|lacks"),
    "table without rows": (table(HEAD), "no rows"),
    "table without a column": (table("path,label\nnorth/red/0.png,red\n"), "lacks the column domain"),
    "table with an empty label": (table(f"{HEAD}north/red/0.png,,north\n"), "empty path, label or domain"),
    "table with a path twice": (table(f"{HEAD}{LINE}{LINE}"), "more than once"),
    "table with a path outside": (table(f"{HEAD}../../x.png,a,b\n"), "outside"),
    "table with an absolute path": (table(f"{HEAD}/etc/passwd,a,b\n"), "outside"),
    "table that is not UTF-8": (table(f"{HEAD}é.png,é,b\n", encoding="latin-1"), "not UTF-8"),
    "table in UTF-16": (table(f"{HEAD}{LINE}", encoding="utf-16"), r"t\.csv is not UTF-8"),
    "table with zero bytes": (table(f"{HEAD}north/red/0.png,r\0d,north\n"), None),
    "table with an open quote": (table(f'{HEAD}"north/red/0.png,red,north\n'), r"t\.csv: .*EOF inside string"),
    "table with ragged rows": (table(f"{HEAD}{LINE}a,b,c,d,e\n"), r"t\.csv: .*3 fields in line 4, saw 5"),
    "table of missing images": (table(f"{HEAD}no/1.png,a,b\nno/2.png,b,c\n", VERIFY), "no/1.png"),
    "table of one huge cell": (table(f"{HEAD}{'x' * 300_000},a,b\n"), None),
    "text called .parquet": (only("t.parquet", b"path,label"), r"cannot read the table .*t\.parquet"),
    "half a Parquet file": (parquet(FRAME, cut=True), r"cannot read the table .*t\.parquet"),
    "Parquet without rows": (parquet(FRAME.iloc[:0]), r"t\.parquet has no rows"),
    "Parquet of lists": (
        parquet(pd.DataFrame({"path": [["a"]], "label": ["x"], "domain": ["y"]})), r"t\.parquet lacks the column path",
    ),
    "Parquet of numbers": (parquet(pd.DataFrame({"a": [1.0], "b": [2.0]})), r"t\.parquet lacks the columns path"),
    # vectors
    "text called .npz": (only("v.npz", b"text"), "not an .npz file"),
    "array called .npz": (only("v.npz", b"\x93NUMPY\x01\x00v\x00{'descr'"), "not an .npz file"),
    "vectors without x": (vectors(x=None), "lacks the array x"),
    "vectors without labels": (vectors(label=None), "lacks the array label"),
    "vectors without domains": (vectors(domain=None), "lacks the array domain"),
    "too few labels": (vectors(label=np.arange(3)), "expected 8 values in `label`"),
    "NaN in a vector": (vectors(x=np.full((8, 4), np.nan, np.float32)), "NaN|finite"),
    "infinite vector": (vectors(x=np.full((8, 4), np.inf, np.float32)), "NaN|finite"),
    "vectors of text": (vectors(x=np.full((8, 4), "a")), r"got shape \(8, 4\) of <U1"),
    "vectors of complex numbers": (vectors(x=np.full((8, 4), 1j)), r"got shape \(8, 4\) of complex128"),
    "cubes for vectors": (vectors(x=np.zeros((8, 2, 2), np.float32)), r"got shape \(8, 2, 2\)"),
    "no vectors": (vectors(x=np.zeros((0, 4), np.float32), label=np.arange(0), domain=np.arange(0)), r"shape \(0, 4"),
    "vectors without length": (vectors(x=np.zeros((8, 0), np.float32)), r"got shape \(8, 0\)"),
    "labels of two dimensions": (vectors(label=np.zeros((8, 2))), "expected 8 values in `label`"),
    "labels that are objects": (vectors(label=np.array([{}] * 8, dtype=object)), "can run code"),
    "labels that are NaN": (vectors(label=np.full(8, np.nan)), "empty label"),
    # archives
    "text called .zip": (only("a.zip", b"text"), r"cannot read the archive .*a\.zip"),
    "half a zip": (archive(SITES, lambda raw: raw[: len(raw) // 2]), r"cannot read the archive .*a\.zip"),
    "zip without entries": (archive({}), r"no images in .*a\.zip"),
    "encrypted zip": (archive(SITES, encrypted), "encrypted|password"),
    "zip with a damaged entry": (archive(SITES, lambda raw: raw[:60] + b"\xff\xff\xff" + raw[63:]), r"CRC-32.*0\.png"),
    "zip of a zip": (archive({"inner.zip": b"PK\x05\x06" + bytes(18)}), r"no images in .*a\.zip"),
    "zip with a path outside": (archive({**SITES, "../../evil.png": PNG}), r"point outside it: \.\./\.\./evil"),
    "zip with an absolute path": (archive({**SITES, "/etc/evil.png": PNG}), "point outside it: /etc/evil"),
    "zip with texts after it": (archive(SITES, lambda raw: raw + b"trailing" * 100), None),
    # settings, splits, configurations
    "counts that are negative": (setting("domain,class,count\npaper,0,-5\n"), "counts.csv"),
    "counts that are words": (setting("domain,class,count\npaper,0,many\n"), "counts.csv"),
    "counts of an unknown class": (setting("domain,class,count\npaper,cat,5\n"), "cat"),
    "counts of 5000 digits": (setting(f"domain,class,count\npaper,0,{'9' * 5000}\n"), "counts.csv"),
    "counts as a list": (setting("[1, 2]", ".json"), "counts.json"),
    "counts nested too deep": (setting("[" * 100_000, ".json"), "counts.json"),
    "counts of 10^400": (setting('{"counts": {"paper": {"0": 1' + "0" * 400 + "}}}", ".json"), "counts.json"),
    "split that is empty": (split_file("{}"), "split.json"),
    "split that is a list": (split_file("[]"), "split.json"),
    "split with NaN": (split_file('{"dataset": NaN}'), "split.json"),
    "configuration that is not TOML": (config("= = ="), "run.toml"),
    "configuration with an unknown key": (config('data = "digits"\ntarget = "ink"\nstep = 3\n'), "unknown key 'step'"),
    "configuration with wrong types": (config('data = 3\ntarget = []\nsteps = "x"\n'), "3 mistakes|mistakes"),
    "configuration that is not UTF-8": (config(b"data = '\xff\xfe'"), "run.toml"),
    "configuration of zero bytes": (config(bytes(1000)), "run.toml"),
    "sweep that is empty": (sweep(""), "mistake|sweep.toml"),
    "sweep with an unknown key": (sweep(metods=["erm"]), "metods"),
    "sweep with an unknown method": (sweep(methods=["erm2"]), "erm2"),
    "sweep with an unknown target": (sweep(targets=["nowhere"]), "nowhere"),
    "sweep with too many draws": (sweep(draws=100_000), "draws: expected at most 1000"),
    "sweep with negative trials": (sweep(trials=-1), "trials: expected a number of trials"),
    "sweep with a dataset that is gone": (sweep(datasets=[{"path": "/nowhere"}]), "no file or folder 'nowhere' in /"),
    "sweep with text for a table": (sweep('datasets = "digits"\nmethods = ["erm"]\n'), "datasets: expected a valid"),
    # options
    "no steps": (options("--steps", "0"), "steps: expected at least 1, got 0"),
    "unknown method": (options("--method", "ermm"), "ermm"),
    "unknown target": (options("--target", "west"), "west"),
    "unknown setting": (options("--setting", "Heavy"), "Heavy"),
    "unknown hyper-parameter": (options("--set", "lrr=1"), "lrr"),
    "hyper-parameter that is NaN": (options("--set", "lr=nan"), r"hparams\.lr: expected a finite number"),
    "hyper-parameter without value": (options("--set", "lr"), "expected NAME=VALUE, got 'lr'"),
    "batch of nothing": (options("--set", "batch_size=0"), "batch_size: expected at least 2"),
    "device that is not there": (options("--device", "cuda:99"), "usable CUDA GPU for device 'cuda:99'"),
    "image size of -1": (options("--image-size", "-1"), "image.size"),
    # weights and models
    "text as weights": (weights(lambda file: b"hello"), "w.safetensors"),
    "half of the weights": (weights(lambda file: file.read_bytes()[:2000]), "w.safetensors"),
    "pickle as weights": (weights(lambda file: pickle.dumps({"w": 1})), "w.safetensors"),
    "weights with a header of 2^60 bytes": (weights(lambda file: (2**60).to_bytes(8, "little")), "w.safetensors"),
    "weights of no network": (
        weights(lambda file: (2).to_bytes(8, "little") + b"{}"), "w.safetensors",
    ),
    "model folder without files": (called("predict", "{tmp}", "{tmp}/x.png"), "model|result"),
    "model without description": (model(lambda run: (run / "model.json").unlink()), "model.json"),
    "model without weights": (model(lambda run: (run / "model.safetensors").unlink()), "model.safetensors"),
    "run without configuration": (model(lambda run: (run / "config.json").unlink(), "evaluate", "-q"), "config.json"),
    "run with a list as result": (model(lambda run: empty(run / "result.json"), "evaluate", "-q"), "result.json"),
    "ONNX file in place of a model": (called("predict", "{images}/model.safetensors", "{tmp}/x.png"), "folder|model"),
    "export to a folder": (called("export", "{images}", "--format", "torch", "--out", "{tmp}"), "a file that ends"),
    "export to an unknown format": (called("export", "{images}", "--format", "tflite"), "tflite"),
    # what is predicted, labels, tables of runs
    "archive to predict": (predicted("a.zip", b"PK\x05\x06" + bytes(18)), "0 of 1"),
    "table to predict": (predicted("a.csv", b"path\n"), "0 of 1"),
    "missing file to predict": (predicted("none.png", None), "no file or folder 'none.png' in "),
    "broken image to predict": (predicted("a.png", b"\x89PNG"), "0 of 1"),
    "vectors for a model of images": (predicted("v.npz", b"PK"), "0 of 1"),
    "vectors of another length": (predicted_vectors(x=np.eye(5, dtype=np.float32)), "vectors of length 4, got 5"),
    "vectors of another kind": (predicted_vectors(y=np.eye(4)), "lacks the array x"),
    "labels without a column": (labels("path\na.npz\n"), "expected the columns path and label, got path"),
    "labels that are empty": (labels("path,label\n"), "at least 10 labeled samples"),
    "labels of an unknown class": (labels("path,label\nv.npz,cat\n"), "labels.csv|cat|class"),
    "labels that are not UTF-8": (labels(b"path,label\n\xff\xfe,1\n"), "not UTF-8"),
    "labels with a cell of a megabyte": (labels(f"path,label\n{'x' * 10**6},1\n"), "labels.csv"),
    "table of runs of noise": (runs("runs.csv", bytes(range(256))), "runs.csv"),
    "table of runs without columns": (runs("runs.csv", b"a,b\n1,2\n"), "runs.csv"),
    "half a table of runs": (runs("runs.parquet", b"PAR1" + bytes(30)), "runs.parquet"),
    "report on an empty folder": (called("report", "{tmp}"), "got none"),
}  # fmt: skip
