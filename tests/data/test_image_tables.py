"""Images inside tables: each format of the same images is the same dataset, can be verified and fitted."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from torch.utils.data import Dataset

import longshift
from longshift.data import images, load_dataset, open_source, open_store, verify
from longshift.errors import LongshiftError, UsageError
from longshift.fitting import FitRequest
from longshift.fitting.adaptation import adapt
from longshift.inference import evaluate_site, load_model, predict
from longshift.inference.prediction import SeenInputs
from longshift.sweep.sweep_file import DatasetTable
from longshift.training import Runtime
from tests.data.trees import encoded, picture
from tests.faults.tools import FIT, outcome, tiny_sites

IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
CLASSES = ["red", "blue"]  # not sorted, as the numbers of a ClassLabel
COUNTS = {"north": {"blue": 3, "red": 3}, "south": {"blue": 3, "red": 3}}


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str, str]]:
    """Two sites with two classes: file, class and site of each image."""
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    files = sorted(tiny_sites(tmp_path / "sites").rglob("*.png"))
    return [(file, file.parts[-2], file.parts[-3]) for file in files]


Samples = Sequence[tuple[Path, str, str]]


def hugging_face(samples: Samples, site: str = "domain") -> pa.Table:
    """As `datasets` writes it: images with their bytes, labels as numbers, their names in the metadata."""
    features = {
        "image": {"_type": "Image"},
        "label": {"names": CLASSES, "_type": "ClassLabel"},
        site: {"dtype": "string", "_type": "Value"},
    }
    rows = [
        {"image": {"bytes": file.read_bytes(), "path": file.name}, "label": CLASSES.index(label), site: domain}
        for file, label, domain in samples
    ]
    schema = pa.schema({"image": IMAGE, "label": pa.int64(), site: pa.string()})
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.Table.from_pylist(rows, schema.with_metadata(about))


def save_to_disk(table: pa.Table, folder: Path, shards: int = 2) -> Path:
    """The files of `Dataset.save_to_disk`, and one that a later `map` leaves there."""
    folder.mkdir(parents=True)
    names = [f"data-{k:05d}-of-{shards:05d}.arrow" for k in range(shards)]
    size = -(-len(table) // shards)
    for k, name in enumerate([*names, "cache-1234.arrow"]):
        part = table.slice(k * size, size) if k < shards else table
        with pa.ipc.new_stream(folder / name, table.schema) as writer:
            for batch in part.to_batches(max_chunksize=2):
                writer.write_batch(batch)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def saved(samples: Samples, tmp: Path) -> str:
    return str(save_to_disk(hugging_face(samples), tmp / "saved"))


def parts(samples: Samples, tmp: Path) -> str:
    """A DatasetDict with one part per site, and no column of sites."""
    for site in ("north", "south"):
        chosen = [sample for sample in samples if sample[2] == site]
        save_to_disk(hugging_face(chosen).drop_columns("domain"), tmp / "dict" / site)
    (tmp / "dict" / "dataset_dict.json").write_text('{"splits": ["north", "south"]}')
    return f"{tmp / 'dict'}#site=split"


def repository(samples: Samples, tmp: Path) -> str:
    """A clone of a dataset on the hub."""
    (tmp / "hub" / "data").mkdir(parents=True)
    for k in range(2):
        parquet.write_table(hugging_face(samples[k::2]), tmp / "hub" / "data" / f"train-{k:05d}-of-00002.parquet")
    return str(tmp / "hub")


def structs(samples: Samples, tmp: Path) -> str:
    parquet.write_table(hugging_face(samples, site="hospital"), tmp / "t.parquet", row_group_size=5)
    return f"{tmp / 't.parquet'}#site=hospital"


def plain_bytes(samples: Samples, tmp: Path) -> str:
    columns: dict[str, list[Any]] = {"scan": [], "label": [], "site": [], "path": []}
    for file, label, site in samples:
        for name, value in zip(columns, (file.read_bytes(), label, site, file.name), strict=True):
            columns[name].append(value)
    parquet.write_table(pa.table(columns), tmp / "b.parquet")
    return f"{tmp / 'b.parquet'}#image=scan"


def absolute(samples: Samples, tmp: Path) -> str:
    (tmp / "elsewhere").mkdir()
    with (tmp / "elsewhere" / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "dx", "site"), *samples])
    return f"{tmp / 'elsewhere' / 't.csv'}#path=file,label=dx"


@pytest.mark.parametrize("write", [saved, parts, repository, structs, plain_bytes, absolute])
def test_each_format_is_the_same_dataset(sites: Samples, tmp_path: Path, write: Callable[[Samples, Path], str]) -> None:
    given = write(sites, tmp_path)
    found = load_dataset(given)
    assert found.counts() == COUNTS
    assert verify(found) == []
    with open_source(found) as source:
        contents = {
            (source.read(path), found.classes[label], found.domain_names[domain])
            for path, label, domain in zip(found.paths, found.labels, found.domains, strict=True)
        }
    assert contents == {(file.read_bytes(), label, site) for file, label, site in sites}
    assert outcome("data", "verify", given, "-q") is None


@pytest.mark.slow
@pytest.mark.parametrize("write", [saved, repository, structs, plain_bytes, absolute])
def test_each_format_can_be_fitted_and_evaluated(
    sites: Samples, tmp_path: Path, write: Callable[[Samples, Path], str]
) -> None:
    given = write(sites, tmp_path)
    assert outcome("fit", given, *FIT, "--out", tmp_path / "fit") is None
    assert outcome("fit", given, *FIT, "--out", tmp_path / "fit") is None  # again: nothing changed
    assert outcome("evaluate", tmp_path / "fit", given, "--device", "cpu", "-q") is None
    assert outcome("evaluate", tmp_path / "fit", "--device", "cpu", "-q") is None


def only_bytes(samples: Samples, tmp: Path) -> str:
    parquet.write_table(pa.table({"scan": [file.read_bytes() for file, _, _ in samples]}), tmp / "new.parquet")
    return str(tmp / "new.parquet")


def only_paths(samples: Samples, tmp: Path) -> str:
    (tmp / "new.csv").write_text("\n".join(["image", *(str(file) for file, _, _ in samples)]))
    return str(tmp / "new.csv")


def archive(samples: Samples, tmp: Path) -> str:
    with zipfile.ZipFile(tmp / "new.zip", "w") as made:
        for number, (file, _, _) in enumerate(samples):
            made.write(file, f"new/{number}#{file.name}")
    return str(tmp / "new.zip")


def unlabeled(samples: Samples, tmp: Path) -> str:
    return str(save_to_disk(hugging_face(samples).drop_columns(["label", "domain"]), tmp / "new"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("model")
    assert outcome("fit", tiny_sites(root / "sites"), *FIT, "--out", root / "fit", "--cache", root / "cache") is None
    return root / "fit"


@pytest.mark.parametrize(
    "write", [saved, repository, structs, plain_bytes, absolute, only_bytes, only_paths, archive, unlabeled]
)
def test_each_format_can_be_predicted(
    model: Path, sites: Samples, tmp_path: Path, write: Callable[[Samples, Path], str]
) -> None:
    found, expected = (predict(model, [given]) for given in (write(sites, tmp_path), sites[0][0].parents[2]))
    assert not found.skipped
    values = [sorted((row.label, round(row.probability, 4)) for row in each.rows) for each in (found, expected)]
    assert values[0] == values[1]
    again = predict(model, [row.path for row in found.rows])  # a sample has the name that it is given
    assert again.rows == found.rows


@pytest.mark.parametrize("write", [structs, only_bytes, archive])
def test_suggested_rows_can_be_labeled(
    model: Path, sites: Samples, tmp_path: Path, write: Callable[[Samples, Path], str]
) -> None:
    out, page = tmp_path / "labels.csv", tmp_path / "page.html"
    given = write(sites, tmp_path)
    assert outcome("suggest", model, given, "--n", "12", "--out", out, "--page", page, "--device", "cpu", "-q") is None
    assert page.read_text().count("data:image/png") >= 12
    rows = list(csv.reader(out.open()))
    out.write_text("\n".join(["path;label", *(f"{row[0]};{row[2]}" for row in rows[1:])]))
    assert outcome("adapt", model, out, "--out", tmp_path / "new", "--device", "cpu", "-q") is None
    assert load_model(tmp_path / "new").info.adapted


def test_a_table_adapts_and_measures_where_it_has_labels(model: Path, sites: Samples, tmp_path: Path) -> None:
    rows = [{"scan": file.read_bytes(), "dx": label} for file, label, _ in sites]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "site.parquet")
    (result,) = evaluate_site(model, f"{tmp_path / 'site.parquet'}#label=dx")
    assert (result.site, result.found.n) == ("site", 12)
    rows[0]["dx"] = ""
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "part.parquet")
    done = adapt(model, f"{tmp_path / 'part.parquet'}#label=dx", tmp_path / "new")
    assert done.labels == {"blue": 5, "red": 6}
    assert outcome("evaluate", model, f"{tmp_path / 'part.parquet'}#label=dx") is not None


def test_rows_of_the_training_table_are_known(sites: Samples, tmp_path: Path) -> None:
    given = structs(sites, tmp_path)
    assert outcome("fit", given, *FIT, "--out", tmp_path / "fit") is None
    seen = predict(tmp_path / "fit", [given]).seen
    assert seen == SeenInputs(("north", "south"), 12, 12)
    assert predict(tmp_path / "fit", [only_bytes(sites, tmp_path)]).seen is None


def test_a_name_on_the_hub(sites: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str | None]] = []
    empty = tmp_path / "empty"
    empty.mkdir()
    for config in ("a", "b"):
        (tmp_path / "converted" / config / "test").mkdir(parents=True)
        parquet.write_table(hugging_face(sites), tmp_path / "converted" / config / "test" / "0000.parquet")

    def snapshot(repository: str, repo_type: str, revision: str | None, allow_patterns: str) -> str:
        assert (repo_type, allow_patterns) == ("dataset", "*.parquet")  # and no code
        calls.append((repository, revision))
        return str(tmp_path / "converted" if revision else empty)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    found = load_dataset("hf://me/pets#config=b")
    assert (found.name, found.counts(), found.given) == ("pets", COUNTS, "hf://me/pets#config=b")
    assert found.splits == ("test",) * 12
    assert calls == [("me/pets", None), ("me/pets", "refs/convert/parquet")]
    assert FitRequest(data="hf://me/pets").data == "hf://me/pets"
    assert DatasetTable.model_validate({"path": "hf://me/pets"}, context={"base": tmp_path}).path == "hf://me/pets"
    with pytest.raises(LongshiftError, match="a, b"):
        load_dataset("hf://me/pets")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(empty))
    with pytest.raises(LongshiftError, match="hf://me/pets"):
        load_dataset("hf://me/pets")


class Colors(Dataset[tuple[Any, Any, str]]):
    """Samples as users write them: the label a number, each kind of image."""

    classes = CLASSES

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any, str]:
        file, label, site = self.samples[index]
        image, number = Image.open(file), CLASSES.index(label)
        tensor = torch.from_numpy(np.array(image).transpose(2, 0, 1))
        return (image, np.asarray(image), tensor, tensor / 255)[index % 4], torch.tensor(number), site


def test_a_pytorch_dataset_is_the_same_dataset(sites: Samples) -> None:
    found = load_dataset(Colors(sites))
    assert (found.name, found.counts()) == ("Colors", COUNTS)
    expected = load_dataset(sites[0][0].parents[2])
    np.testing.assert_array_equal(open_store(found, 16).inputs, open_store(expected, 16).inputs)


@pytest.mark.slow
def test_a_pytorch_dataset_can_be_fitted(sites: Samples, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "out": tmp_path / "fit", "method": "erm", "steps": 2, "hparams": {"batch_size": 4}, "network": "small_conv",
        "image_size": 16, "runtime": Runtime(device="cpu"),
    }  # fmt: skip
    done = longshift.fit(Colors(sites), **options)
    assert done.plan.sites == ("north", "south")
    assert longshift.fit(Colors(sites), **options).summary.accuracy == done.summary.accuracy  # resumed
    assert len(list((tmp_path / "fit").glob("*.parquet"))) == 1


@pytest.mark.parametrize(
    ("sample", "error", "named"),
    [
        ((1, 2), TypeError, "tuple"),
        ((np.full((4, 4, 3), -1.5), "a", "b"), UsageError, r"\(4, 4, 3\)"),
        ((np.zeros((4, 4, 4), np.uint8), "a", "b"), UsageError, r"\(4, 4, 4\)"),
    ],
)
def test_a_sample_of_another_kind(sites: Samples, sample: tuple[Any, ...], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        load_dataset([sample])


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ("#label=dx", r"dx.*image, label, domain"),
        ("#site=hospital", r"hospital.*image, label, domain"),
        ("#image=scan", r"scan.*image, label, domain"),
        ("#config=x", "config"),
        ("#lable=x", "label"),
    ],
)
def test_a_missing_column_is_named_with_those_that_exist(
    sites: Samples, tmp_path: Path, choice: str, named: str
) -> None:
    parquet.write_table(hugging_face(sites), tmp_path / "t.parquet")
    with pytest.raises(LongshiftError, match=named):
        load_dataset(f"{tmp_path / 't.parquet'}{choice}")
    with pytest.raises(UsageError, match="sites"):
        load_dataset(f"{tmp_path / 'sites'}#label=x")


def test_rows_without_image_or_label(tmp_path: Path, sites: Samples) -> None:
    """A path in place of the bytes is not followed."""
    table = hugging_face(sites).to_pylist()
    schema = hugging_face(sites).schema
    table[3]["image"] = {"bytes": None, "path": str(sites[3][0])}
    table[4]["image"] = {"bytes": b"text", "path": None}
    parquet.write_table(pa.Table.from_pylist(table, schema), tmp_path / "t.parquet")
    found = verify(load_dataset(tmp_path / "t.parquet"))
    assert {(problem.path, problem.kind) for problem in found} == {("000003", "unreadable"), ("000004", "not an image")}
    table[1]["label"], table[2]["label"] = -1, None
    parquet.write_table(pa.Table.from_pylist(table, schema), tmp_path / "t.parquet")
    with pytest.raises(LongshiftError, match="rows 2, 3"):
        load_dataset(tmp_path / "t.parquet")


def test_blocks_of_a_large_table_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = [encoded(picture(k)) for k in range(40)]
    columns = {"image": content, "label": ["a", "b"] * 20, "domain": ["x", "x", "y", "y"] * 10}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=7)
    monkeypatch.setattr(images, "KEPT_BYTES", 3000)  # about one block
    found = load_dataset(tmp_path / "t.parquet")
    with open_source(found) as source:
        assert [source.read(path) for path in found.paths] == [content[int(path)] for path in found.paths]
