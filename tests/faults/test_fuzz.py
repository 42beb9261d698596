"""Whatever is in a file: it is read as what it says, or refused in words. Nothing else is raised, nothing is run."""

from __future__ import annotations

import csv
import functools
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, reject, settings, strategies as st

from longshift.data import load_dataset
from longshift.data.manifest import Manifest
from longshift.errors import ConfigError, LongshiftError, UsageError
from longshift.files import read_json
from longshift.settings.lookup import setting_for
from longshift.settings.split import Split, load_split, make_split, save_split
from longshift.sweep.sweep_file import Sweep, read_sweep
from longshift.toml import parse_value
from longshift.training.checkpoint import digest, load_resume, load_weights, save_resume, save_weights
from longshift.training.model_file import ModelFile, read_model_file
from longshift.training.run_config import RunConfig, parse_run_config
from tests.faults.tools import loaded_or_error

QUICK = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
CPU = torch.device("cpu")
NAMES = st.text(max_size=8)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | NAMES
    | st.sampled_from(["all", "digits", "erm", "ndcl", "ink", "Cross", "-", "x.csv", "x.json", "f.py:X", "\0", "/"])
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


# -- manifests --------------------------------------------------------------------------------------------------


@QUICK
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_as_a_table(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    assert isinstance(loaded_or_error(lambda: load_dataset(file)), Manifest | LongshiftError)


@QUICK
@given(st.lists(st.tuples(st.text(max_size=6), st.text(max_size=4), st.text(max_size=4), NAMES), max_size=6))
def test_any_values_in_a_table(tmp_path: Path, rows: list[tuple[str, str, str, str]]) -> None:
    file, text = tmp_path / "t.csv", io.StringIO()
    try:
        csv.writer(text).writerows([("path", "label", "domain", "split"), *rows])
    except csv.Error:  # Python 3.10 writes no NUL
        reject()
    file.write_bytes(text.getvalue().encode("utf-8", "surrogatepass"))
    found = loaded_or_error(lambda: load_dataset(file))
    if isinstance(found, Manifest):
        assert 0 < len(found) <= len(rows)
        assert int(found.count_table().sum()) == len(found)
        assert not any(Path(path).is_absolute() or path.startswith("..") for path in found.paths)
        assert found.fingerprint() == load_dataset(file).fingerprint()
    else:
        assert "t.csv" in str(found)


@QUICK
@given(st.binary(max_size=100), st.sampled_from(["t.npz", "t.parquet", "t.zip"]), st.integers(0, 10**6))
def test_any_bytes_as_a_dataset(tmp_path: Path, noise: bytes, name: str, place: int) -> None:
    raw = _dataset(tmp_path, name)
    place %= len(raw)
    file = tmp_path / name
    file.write_bytes(raw[:place] + noise + raw[place + len(noise) :])
    assert isinstance(loaded_or_error(lambda: load_dataset(file)), Manifest | LongshiftError)


def _dataset(folder: Path, name: str) -> bytes:
    kept = folder / f"whole-{name}"
    if not kept.exists():
        if name.endswith(".npz"):
            np.savez(kept, x=np.eye(4), label=np.arange(4) % 2, domain=np.arange(4) // 2)
        elif name.endswith(".parquet"):
            import pandas as pd

            pd.DataFrame({"f0": [0.0, 1.0], "label": ["a", "b"], "domain": ["c", "d"]}).to_parquet(kept)
        else:
            with zipfile.ZipFile(kept, "w") as archive:
                archive.writestr("a/b/c.png", b"x")
                archive.writestr("d/b/c.png", b"x")
    return kept.read_bytes()


# -- configurations ---------------------------------------------------------------------------------------------


@QUICK
@given(
    st.dictionaries(st.sampled_from(sorted(RunConfig.model_fields)) | NAMES, VALUES, max_size=6),
    st.dictionaries(st.sampled_from(["batch_size", "lr", "alpha", "dropout"]) | NAMES, SCALARS, max_size=3),
)
def test_any_run_configuration(values: dict[str, Any], hparams: dict[str, Any]) -> None:
    for wanted in (values, {"target": "ink", **values, "hparams": hparams}):
        found = loaded_or_error(functools.partial(parse_run_config, wanted))
        if isinstance(found, RunConfig):
            assert len(found.fingerprint()) == 64
        else:
            assert isinstance(found, ConfigError)
            assert found.mistakes


SWEEP_KEYS = ["datasets", "settings", "targets", "methods", "trials", "draws", "store", "run", "overrides", "runtime"]
GOOD: dict[str, Any] = {
    "datasets": [{"path": "digits"}], "settings": ["Cross"], "methods": ["erm"], "run": {"steps": 3},
}  # fmt: skip


@pytest.mark.slow
@QUICK
@given(
    st.dictionaries(st.sampled_from(SWEEP_KEYS) | NAMES, VALUES, max_size=3),
    st.dictionaries(st.sampled_from(sorted(RunConfig.model_fields)) | NAMES, VALUES, max_size=2),
    st.dictionaries(st.sampled_from(["path", "name", "benchmark", "targets"]) | NAMES, SCALARS, max_size=3),
)
def test_any_sweep_file(tmp_path: Path, values: dict[str, Any], run: dict[str, Any], dataset: dict[str, Any]) -> None:
    for wanted in ({**GOOD, **values}, {**GOOD, "run": run}, {**GOOD, "datasets": [{"path": "digits", **dataset}]}):
        (tmp_path / "sweep.toml").write_bytes(_toml(wanted).encode("utf-8", "replace"))
        assert isinstance(loaded_or_error(lambda: read_sweep(tmp_path)), Sweep | UsageError)


@QUICK
@given(st.text(max_size=100) | st.binary(max_size=100))
def test_any_text_as_a_sweep_file(tmp_path: Path, content: str | bytes) -> None:
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    (tmp_path / "sweep.toml").write_bytes(raw)
    with pytest.raises(UsageError):
        read_sweep(tmp_path)


def test_depth_and_length_are_refused_in_words(tmp_path: Path) -> None:
    for text in ("[" * 100_000, "9" * 10_000):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(LongshiftError, match=r"x\.json as JSON"):
            read_json(tmp_path / "x.json")
        (tmp_path / "sweep.toml").write_text(f"a = {text}")
        with pytest.raises(UsageError, match="is not valid TOML"):
            read_sweep(tmp_path)
        assert parse_value(text) == text


def _toml(table: dict[str, Any]) -> str:
    return "".join(f"{_text(str(name))} = {_value(value)}\n" for name, value in table.items())


def _value(value: Any) -> str:
    """TOML; there is no null, and numbers that are not finite have names of their own."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(str(k))} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if value is None or isinstance(value, str):
        return _text(value or "")
    return json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# -- split files and model.json ---------------------------------------------------------------------------------


@functools.cache
def digits() -> Manifest:
    return load_dataset("digits")


@pytest.fixture(scope="module")
def split_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("split") / "split.json"
    save_split(make_split(digits(), setting_for(digits(), "Cross", "ink")), digits(), file)
    return file


def mutated(document: Any, draw: st.DataObject) -> Any:
    """One place of a JSON document is something else, or is gone."""
    if isinstance(document, dict) and document and draw.draw(st.integers(0, 3)):
        key = draw.draw(st.sampled_from(sorted(document)))
        if draw.draw(st.integers(0, 4)) == 0:
            return {k: v for k, v in document.items() if k != key}
        return {**document, key: mutated(document[key], draw)}
    if isinstance(document, list) and document and draw.draw(st.integers(0, 3)):
        place = draw.draw(st.integers(0, len(document) - 1))
        return [*document[:place], mutated(document[place], draw), *document[place + 1 :]]
    return draw.draw(VALUES)


@QUICK
@given(st.data())
def test_any_split_file(tmp_path: Path, split_file: Path, data: st.DataObject) -> None:
    file = tmp_path / "split.json"
    document = mutated(read_json(split_file), data)
    file.write_text(json.dumps(document))
    found = loaded_or_error(lambda: load_split(file, digits()))
    if isinstance(found, Split):  # then it holds the files that its hash names
        assert found.fingerprint == document["fingerprint"]
    else:
        assert "split.json" in str(found)


@QUICK
@given(st.data())
def test_any_model_description(tmp_path: Path, digits_run: Path, data: st.DataObject) -> None:
    file = tmp_path / "model.json"
    file.write_text(json.dumps(mutated(read_json(digits_run / "model.json"), data)))
    found = loaded_or_error(lambda: read_model_file(file))
    assert isinstance(found, ModelFile) or "model.json" in str(found)


# -- checkpoints ------------------------------------------------------------------------------------------------


def _state() -> dict[str, Any]:
    return {"progress": {"step": 3}, "best": {"w": torch.arange(6.0)}, "method": {"module": {}, "optimizers": {}}}


@pytest.mark.slow
@QUICK
@given(st.data())
def test_any_checkpoint(tmp_path: Path, data: st.DataObject) -> None:
    network = torch.nn.Linear(3, 2)
    resume, model = tmp_path / "resume.pt", tmp_path / "model.safetensors"
    save_resume(resume, _state())
    save_weights(model, network.state_dict())
    for file in (resume, model):
        raw = bytearray(file.read_bytes())
        kind = data.draw(st.sampled_from(["noise", "cut", "bit", "bytes"]))
        place = data.draw(st.integers(0, len(raw) - 1))
        if kind == "noise":
            raw = bytearray(data.draw(st.binary(max_size=64)))
        elif kind == "cut":
            del raw[place:]
        elif kind == "bit":
            raw[place] ^= 1 << data.draw(st.integers(0, 7))
        else:
            noise = data.draw(st.binary(min_size=1, max_size=8))
            raw[place : place + len(noise)] = noise
        file.write_bytes(bytes(raw))
    state = loaded_or_error(lambda: load_resume(resume, CPU))
    if isinstance(state, LongshiftError):
        assert str(resume) in str(state)
    else:
        assert torch.equal(state["best"]["w"], torch.arange(6.0))
    before, other = digest(network.state_dict()), torch.nn.Linear(3, 2)
    refused = loaded_or_error(lambda: load_weights(model, other))
    if refused is None:
        assert digest(other.state_dict()) == before
    else:
        assert str(model) in str(refused)


class Bomb:
    """Unpickled, it would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_does_not_run(tmp_path: Path) -> None:
    fired, resume = tmp_path / "fired", tmp_path / "resume.pt"
    torch.save({**_state(), "best": Bomb(fired)}, resume)
    with pytest.raises(LongshiftError, match=r"cannot resume from .*resume\.pt"):
        load_resume(resume, CPU)
    save_resume(resume, {**_state(), "best": Bomb(fired)})  # with the right checksum
    with pytest.raises(LongshiftError, match="cannot resume from"):
        load_resume(resume, CPU)
    resume.write_bytes(pickle.dumps(Bomb(fired)))
    with pytest.raises(LongshiftError, match="cannot resume from"):
        load_resume(resume, CPU)
    (tmp_path / "model.safetensors").write_bytes(pickle.dumps(Bomb(fired)))
    with pytest.raises(LongshiftError, match="is damaged"):
        load_weights(tmp_path / "model.safetensors", torch.nn.Linear(3, 2))
    array = np.array([Bomb(fired)], dtype=object)
    np.savez(tmp_path / "e.npz", x=np.eye(2), label=array, domain=array)
    with pytest.raises(LongshiftError, match="can run code"):
        load_dataset(tmp_path / "e.npz")
    assert not fired.exists()
    pickle.loads(pickle.dumps(Bomb(fired)))
    assert fired.exists()  # the bomb is a real one
