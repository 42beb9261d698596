"""Whatever is in a file: it is read as what it says, or refused in words. `make fuzz` looks for new examples."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, reject, settings, strategies as st

from longshift.data import Manifest, load_dataset
from longshift.errors import LongshiftError
from longshift.inference import load_model
from longshift.training import RunConfig
from tests.faults.tools import outcome
from tests.sweep.small import write_sweep

FEW = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
NAMES = st.text(max_size=8)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | NAMES
    | st.sampled_from(["all", "digits", "erm", "ndcl", "ink", "Cross", "-", "x.csv", "x.json", "f.py:X", "\0", "/"])
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


def read(file: Path) -> Manifest | None:
    """None if it is refused; any other exception is a failure of the test."""
    with contextlib.suppress(LongshiftError):
        return load_dataset(file)
    return None


@FEW
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_as_a_table(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    read(file)


@FEW
@given(st.lists(st.tuples(st.text(max_size=6), st.text(max_size=4), st.text(max_size=4), NAMES), max_size=6))
def test_any_values_in_a_table(tmp_path: Path, rows: list[tuple[str, str, str, str]]) -> None:
    file, text = tmp_path / "t.csv", io.StringIO()
    try:
        csv.writer(text).writerows([("path", "label", "domain", "split"), *rows])
    except csv.Error:  # Python 3.10 writes no NUL
        reject()
    file.write_bytes(text.getvalue().encode("utf-8", "surrogatepass"))
    found = read(file)
    if found is not None:
        assert 0 < len(found) <= len(rows)
        assert int(found.count_table().sum()) == len(found)
        assert not any(Path(path).is_absolute() or path.startswith("..") for path in found.paths)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    np.savez(folder / "t.npz", x=np.eye(4), label=np.arange(4) % 2, domain=np.arange(4) // 2)
    pd.DataFrame({"f0": [0.0, 1.0], "label": ["a", "b"], "domain": ["c", "d"]}).to_parquet(folder / "t.parquet")
    with zipfile.ZipFile(folder / "t.zip", "w") as archive:
        for name in ("a/b/c.png", "d/b/c.png"):
            archive.writestr(name, b"x")
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@FEW
@given(st.binary(max_size=100), st.sampled_from(["t.npz", "t.parquet", "t.zip"]), st.integers(0, 10**6))
def test_any_bytes_as_a_dataset(
    tmp_path: Path, datasets: dict[str, bytes], noise: bytes, name: str, place: int
) -> None:
    raw = datasets[name]
    place %= len(raw)
    (tmp_path / name).write_bytes(raw[:place] + noise + raw[place + len(noise) :])
    read(tmp_path / name)


SWEEP_KEYS = ["datasets", "settings", "targets", "methods", "trials", "draws", "store", "run", "overrides", "runtime"]


@pytest.mark.slow
@FEW
@given(
    st.dictionaries(st.sampled_from(SWEEP_KEYS) | NAMES, VALUES, max_size=3),
    st.dictionaries(st.sampled_from(sorted(RunConfig.model_fields)) | NAMES, VALUES, max_size=2),
)
def test_any_sweep_file(tmp_path: Path, values: dict[str, Any], run: dict[str, Any]) -> None:
    good = {"datasets": [{"path": "digits"}], "settings": ["Cross"], "methods": ["erm"], "run": {"steps": 3}}
    for wanted in ({**good, **values}, {**good, "run": run}):
        text = "".join(f"{_text(name)} = {_toml(value)}\n" for name, value in wanted.items())
        (tmp_path / "sweep.toml").write_bytes(text.encode("utf-8", "replace"))
        outcome("sweep", "status", tmp_path)


def _toml(value: Any) -> str:
    """TOML has no null, and other names for numbers that are not finite."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if value is None or isinstance(value, str):
        return _text(value or "")
    return json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@FEW
@given(st.text(max_size=100) | st.binary(max_size=100))
def test_any_text_as_a_sweep_file(tmp_path: Path, content: str | bytes) -> None:
    write_sweep(tmp_path)
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    (tmp_path / "sweep.toml").write_bytes(raw)
    assert outcome("sweep", "status", tmp_path) is not None


@pytest.mark.slow
@FEW
@given(st.data())
def test_any_model_description(tmp_path: Path, digits_run: Path, data: st.DataObject) -> None:
    run = Path(shutil.copytree(digits_run, tmp_path / "run", dirs_exist_ok=True))
    document = json.loads((digits_run / "model.json").read_text())
    key = data.draw(st.sampled_from(sorted(document)))
    (run / "model.json").write_text(json.dumps({**document, key: data.draw(VALUES)}))
    with contextlib.suppress(LongshiftError):
        load_model(run, device="cpu")
