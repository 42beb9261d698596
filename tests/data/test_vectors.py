"""Datasets of vectors: the same rows from each file format, errors, training."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from longshift.data import load_dataset, open_store
from longshift.data.vectors import holds_vectors, read_vectors
from longshift.data.verification import verify
from longshift.errors import LongshiftError, UsageError
from longshift.fitting.adaptation import adapt
from longshift.inference import evaluate_site, predict
from longshift.inference.loading import load_model
from longshift.methods import all_methods
from longshift.training.run_config import RunConfig
from longshift.training.task import make_task
from longshift.training.trainer import Trainer
from tests.faults.tools import outcome
from tests.training.runs import CPU

N, D = 60, 6
CLASSES = ("cat", "dog", "eel")


def table(n: int = N, d: int = D, seed: int = 0) -> dict[str, Any]:
    """Shuffled samples of three classes on three sites; the first number of a vector is its row."""
    rng = np.random.default_rng(seed)
    label, domain = np.array(CLASSES)[np.arange(n) % 3], np.array(["a", "b", "c"])[np.arange(n) // 3 % 3]
    x = rng.normal(size=(n, d)) + 3 * (np.arange(n) % 3)[:, None] * (np.arange(d) % 3 == 1)
    x[:, 0] = np.arange(n)
    return {"x": x, "label": label, "domain": domain}


def write(path: Path, form: str, **changes: Any) -> Path:
    columns = {**table(), **changes}
    columns = {name: value for name, value in columns.items() if value is not None}
    if form == "npz":
        np.savez(path.with_suffix(".npz"), **columns)
        return path.with_suffix(".npz")
    x = columns.pop("x")
    if form == "lists":
        frame = pd.DataFrame({**columns, "embedding": list(x)})
    else:
        frame = pd.DataFrame({**columns, **{f"f{i}": x[:, i] for i in range(x.shape[1])}})
    frame.to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


FORMS = ("npz", "lists", "columns")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ids", [False, True])
def test_every_form_gives_the_same_rows(tmp_path: Path, form: str, ids: bool) -> None:
    names = np.array([f"id-{(7 * i) % N}" for i in range(N)]) if ids else None
    path = write(tmp_path / "e", form, id=names)
    manifest = load_dataset(path)
    store = open_store(manifest, 0)
    raw = table()
    assert (manifest.name, manifest.root, manifest.vectors, store.size) == ("e", path, True, 0)
    assert manifest.classes == ("cat", "dog", "eel")
    assert manifest.domain_names == ("a", "b", "c")
    assert store.inputs.shape == (N, D)
    assert store.inputs.dtype == np.float32
    assert not store.inputs.flags.writeable
    rows = store.inputs[:, 0].astype(int)
    assert sorted(rows) == list(range(N))
    np.testing.assert_array_equal(store.inputs, raw["x"][rows].astype(np.float32))
    assert [manifest.classes[k] for k in manifest.labels] == raw["label"][rows].tolist()
    assert [manifest.domain_names[k] for k in manifest.domains] == raw["domain"][rows].tolist()
    if names is not None:
        assert list(manifest.paths) == names[rows].tolist()


@pytest.mark.parametrize("form", FORMS)
def test_columns_can_be_chosen(tmp_path: Path, form: str) -> None:
    raw = table()
    wrong = np.arange(N)  # has the usual name, but another was chosen
    path = write(tmp_path / "e", form, label=wrong, domain=None, dx=raw["label"], lab=raw["domain"], name=wrong + 100)
    chosen = f"{path}#label=dx,site=lab,path=name"
    found, expected = load_dataset(chosen), load_dataset(write(tmp_path / "plain", form))
    assert holds_vectors(chosen)
    assert found.counts() == expected.counts()
    assert sorted(found.paths) == [str(row + 100) for row in range(N)]
    first = open_store(found, 0).inputs[:, 0]
    assert [f"{row + 100:.0f}" for row in first] == list(found.paths)
    with pytest.raises(LongshiftError, match="diagnosis"):
        load_dataset(f"{path}#label=diagnosis,site=lab")


@pytest.mark.slow
def test_chosen_columns_from_fit_to_adapt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    raw = table(180)
    path = write(tmp_path / "e", "lists", **{**raw, "label": None, "domain": None}, dx=raw["label"], lab=raw["domain"])
    data, fit = f"{path}#label=dx,site=lab", tmp_path / "fit"
    for _ in range(2):  # the second time, it finds that all is done
        assert outcome("fit", data, "--method", "logistic", "--device", "cpu", "-q", "--out", fit) is None
    found = predict(fit, [path], device="cpu")
    assert len(found.rows) == 180
    assert found.seen is not None
    assert [row.label for row in predict(fit, [data], device="cpu").rows] == [row.label for row in found.rows]
    assert [site.found.n for site in evaluate_site(fit, data, device="cpu")] == [60, 60, 60]
    (site,) = evaluate_site(fit, f"{path}#label=dx", device="cpu")
    assert (site.site, site.found.n) == ("e", 180)
    assert adapt(fit, f"{path}#label=dx", tmp_path / "adapted", device="cpu").labels == dict.fromkeys(CLASSES, 60)


def test_forms_have_one_fingerprint(tmp_path: Path) -> None:
    stores = [open_store(load_dataset(write(tmp_path / form, form)), 0) for form in FORMS]
    assert len({store.fingerprint for store in stores}) == 1
    changed = table()["x"]
    changed[3, 2] += 1e-3
    assert open_store(load_dataset(write(tmp_path / "o", "npz", x=changed)), 0).fingerprint != stores[0].fingerprint


def test_whole_numbers_and_half_precision(tmp_path: Path) -> None:
    raw = table()
    path = write(tmp_path / "e", "npz", x=raw["x"].astype(np.float16), label=np.arange(N) % 3, domain=np.arange(N) % 2)
    manifest = load_dataset(path)
    assert manifest.classes == ("0", "1", "2")
    assert open_store(manifest, 0).inputs.dtype == np.float32


def test_a_table_of_images_is_not_one_of_vectors(tmp_path: Path) -> None:
    frame = pd.DataFrame({"path": ["a.png"], "label": ["x"], "domain": ["d"]})
    frame.to_parquet(tmp_path / "images.parquet")
    assert not holds_vectors(tmp_path / "images.parquet")
    assert not holds_vectors(tmp_path / "absent.parquet")
    assert holds_vectors(write(tmp_path / "e", "lists"))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"label": None}, "label"),
        ({"x": np.zeros(N)}, r"\(60,\)"),
        ({"x": np.array([["a"] * D] * N)}, r"\(60, 6\)"),
        ({"label": np.array(["a"] * 7)}, r"`label`.*\(7,\)"),
        ({"label": np.array(["a"] * (N - 1) + [""])}, "row 59"),
        ({"id": np.array(["a"] * N)}, "ids"),
        ({"label": np.array(["a", None] * (N // 2), dtype=object)}, "dtype=str"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(LongshiftError, match=named):
        load_dataset(write(tmp_path / "e", "npz", **changes))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("form", FORMS)
def test_numbers_that_are_none(tmp_path: Path, value: float, form: str) -> None:
    x = table()["x"]
    x[[2, 5], 1] = value
    with pytest.raises(LongshiftError, match="rows 2, 5"):
        load_dataset(write(tmp_path / "e", form, x=x))


@pytest.mark.parametrize("form", ["lists", "columns"])
def test_columns_of_tags_and_structures_are_ignored(tmp_path: Path, form: str) -> None:
    expected = read_vectors(write(tmp_path / "e", form))
    tagged = read_vectors(
        write(tmp_path / "t", form, tags=[["new", "blue"]] * N, camera=[{"name": "c", "iso": 100}] * N)
    )
    np.testing.assert_array_equal(tagged.x, expected.x)
    assert (tagged.labels, tagged.domains, tagged.ids) == (expected.labels, expected.domains, expected.ids)


def test_mistakes_in_parquet(tmp_path: Path) -> None:
    base = {"label": ["a", "b"], "domain": ["x", "y"]}
    path = tmp_path / "e.parquet"
    for columns, message in (
        ({"embedding": [[1.0, 2.0], [1.0]]}, "1, 2"),
        ({"embedding": [[1.0, 2.0], None]}, "embedding"),
        ({"note": ["p", "q"], "f0": [1.0, 2.0]}, "note"),
        ({}, "numbers"),
        ({"embedding": [["p"], ["q"]], "f0": [1.0, 2.0]}, "column embedding"),
        ({"id": [["p"], ["q"]], "f0": [1.0, 2.0]}, "column id"),
        ({"boxes": [[1.0, 2.0], [1.0, 3.0]], "f0": [1.0, 2.0]}, "boxes"),  # perhaps the vectors
    ):
        parquet.write_table(pa.table({**base, **columns}), path)
        with pytest.raises(LongshiftError, match=message):
            load_dataset(path)


# A column of lists of which the schema says that none is null while its statistics count nulls: byte 85, the repetition
# type of `embedding`, is REQUIRED. Asked for the metadata of that column (`row_group(0).column(0)`), pyarrow 26 aborts
# the process, so we never ask.
CONTRADICTORY = base64.b64decode(
    "UEFSMRUAFSAVICwVAhUAFQYVBhwYBAAAgD8YBAAAgD8WACgEAACAPxgEAACAPxERAAAAAgAAAAIAAgAAAAIDAACAPxUEGUw1ABgGc2NoZW1hFQIANQAY"
    "CWVtYmVkZGluZxUCFQZMPAAAADUEGARsaXN0FQIAFQglAhgHZWxlbWVudAAWAhkcGRwmABwVCBklBgAZOAllbWJlZGRpbmcEbGlzdAdlbGVtZW50FQAW"
    "AhZ+Fn4mCDwYBAAAgD8YBAAAgD8WACgEAACAPxgEAACAPxERABkcFQAVABUCADwpJgIAGUYAAAACAAAAFn4WAiYIFn4AKCBwYXJxdWV0LWNwcC1hcnJv"
    "dyB2ZXJzaW9uIDI2LjAuMRkcHAAAANgAAABQQVIx"
)


def test_a_file_that_pyarrow_cannot_survive_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    path.write_bytes(CONTRADICTORY)
    with pytest.raises(LongshiftError, match=r"e\.parquet"):
        load_dataset(path)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_noise_is_refused(tmp_path: Path, suffix: str) -> None:
    path = (tmp_path / "noise").with_suffix(suffix)
    for length in (0, 1, 8, 12, 200):
        path.write_bytes(np.random.default_rng(length).bytes(length))
        with pytest.raises(LongshiftError, match="noise"):
            load_dataset(path)


def test_duplicates_across_domains(tmp_path: Path) -> None:
    x = table()["x"]
    x[4] = x[0]  # rows 0 and 4 lie in domains a and b
    problems = verify(load_dataset(write(tmp_path / "e", "npz", x=x)))
    assert [(problem.kind, problem.path) for problem in problems] == [("two labels", "04"), ("duplicate", "04")]


def test_a_file_that_changed(tmp_path: Path) -> None:
    manifest = load_dataset(write(tmp_path / "e", "npz"))
    write(tmp_path / "e", "npz", **{name: value[:-1] for name, value in table().items()})
    with pytest.raises(LongshiftError, match="changed"):
        open_store(manifest, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", all_methods())
def test_every_method_trains_on_vectors(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "e", "npz", id=None)
    config = RunConfig(
        data=str(path), setting="Natural", target="c", method=name, steps=3, eval_every=3, hparams={"batch_size": 4}
    )
    assert (config.backbone_name, config.size, config.augmentation) == (
        "linear" if name == "logistic" else "mlp",
        0,
        "",
    )
    assert config.contexts == ("small",)
    task = make_task(config)
    result = Trainer(config, task, tmp_path / "run", CPU).run()
    assert result["status"] == "done"
    model = load_model(tmp_path / "run", device="cpu")
    assert (model.info.input_dim, model.info.vectors) == (D, True)


def test_learns(tmp_path: Path) -> None:
    path = write(tmp_path / "e", "npz", **table(300, 8, 1))
    config = RunConfig(data=str(path), setting="Natural", target="c", steps=60, eval_every=20, method="ndcl")
    result = Trainer(config, make_task(config), tmp_path / "run", CPU).run()
    assert result["selected"]["target"]["accuracy"] > 0.8


def test_a_backbone_for_images_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "e", "npz")
    config = RunConfig(data=str(path), setting="Natural", target="c", backbone="small_conv")
    with pytest.raises(UsageError, match="mlp"):
        Trainer(config, make_task(config), tmp_path / "run", CPU)
