"""Loading a model folder: recorded accuracies are reproduced, damaged folders are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from longshift.errors import LongshiftError, UsageError
from longshift.inference import UnseenAccuracy, evaluate, keep_unseen, load_model
from longshift.inference.loading import read_unseen
from longshift.io import read_json, write_json
from longshift.training.checkpoint import save_weights
from longshift.training.run_folder import RunFolder, read_result
from longshift.training.task import Task
from tests.training.runs import CPU, train


def test_the_model_gives_the_recorded_accuracy(digits_run: Path, digits_task: Task) -> None:
    model = load_model(digits_run, device="cpu")
    recorded = read_json(digits_run / "result.json")["selected"]
    for name in ("validation", "test", "target"):
        indices = digits_task.split.part(name)
        logits = model.logits(torch.from_numpy(digits_task.store.inputs[indices]))
        hits = logits.argmax(1).numpy() == digits_task.labels(indices)
        assert hits.mean() == pytest.approx(recorded[name]["accuracy"], abs=1e-12)
    assert model.classes == tuple("0123456789")
    assert (model.size, model.info.vectors, model.info.sources) == (32, False, ("chalk", "neon", "stamp"))
    assert not model.predictor.training


def test_probabilities_use_the_temperature(digits_run: Path, digits_task: Task) -> None:
    model = load_model(digits_run, device="cpu")
    stored = torch.from_numpy(digits_task.store.inputs[:7].copy())
    assert model.temperature == read_json(digits_run / "model.json")["temperature"] != 1.0
    expected = torch.softmax(model.logits(stored).double() / model.temperature, 1)
    torch.testing.assert_close(model.probabilities(stored), expected)


def test_evaluate_agrees_to_the_last_digit(digits_run: Path) -> None:
    found, recorded = evaluate(digits_run, runtime=CPU), read_json(digits_run / "result.json")["selected"]
    assert found["agrees"]
    for name in ("validation", "test", "target"):
        assert found[name] == recorded[name]
        assert found["recorded"][name] == recorded[name]["accuracy"]


def test_evaluate_notices_other_weights(digits_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(digits_run, tmp_path / "copy")
    result = read_result(RunFolder(copy))
    result["selected"]["target"] = result["selected"]["validation"]
    write_json(RunFolder(copy).result, result)
    found = evaluate(copy, ["target"], runtime=CPU)
    assert not found["agrees"]
    assert set(found) == {"folder", "weights", "recorded", "agrees", "temperature", "calibrated", "target"}


def test_weights_of_another_run_and_damaged_ones_are_refused(digits_run: Path, tmp_path: Path) -> None:
    file = Path(shutil.copytree(digits_run, tmp_path / "run")) / "model.safetensors"
    whole = file.read_bytes()
    save_weights(file, {name: 2 * value for name, value in load_file(file).items()})
    other = file.read_bytes()
    for raw in (other, whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(raw)
        with pytest.raises(LongshiftError, match=r"model\.safetensors"):
            load_model(file.parent, device="cpu")


def test_a_method_with_its_own_predictor(tmp_path: Path, digits_task: Task) -> None:
    result = train(tmp_path / "run", digits_task, method="tcri", steps=4, eval_every=4)
    model = load_model(tmp_path / "run", device="cpu")
    assert model.info.predictor == "method"
    indices = digits_task.split.target_indices
    hits = model.logits(torch.from_numpy(digits_task.store.inputs[indices])).argmax(1).numpy()
    assert (hits == digits_task.labels(indices)).mean() == result["selected"]["target"]["accuracy"]


def test_a_description_of_a_giant_network_is_refused(digits_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(digits_run, tmp_path / "copy")
    write_json(copy / "model.json", {**read_json(copy / "model.json"), "backbone": "vit_giant_patch14_224"})
    with pytest.raises(LongshiftError, match=r"model\.json"):
        load_model(copy)


def test_an_unfinished_fit_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "fit").mkdir()
    (tmp_path / "fit" / "plan.json").write_text("{}")
    with pytest.raises(LongshiftError, match="longshift fit"):
        load_model(tmp_path / "fit")


def test_a_model_of_a_fit_folder(digits_run: Path, tmp_path: Path) -> None:
    shutil.copytree(digits_run, tmp_path / "fit" / "final")
    assert load_model(tmp_path / "fit").folder == tmp_path / "fit" / "final"


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.write_text("{"),
        lambda f: f.write_text("[]"),
        lambda f: f.write_text(json.dumps({"schema": 1})),
        lambda f: f.write_text(f.read_text().replace('"size": 32', '"size": "x"')),
    ],
)
def test_damaged_descriptions_are_named(digits_run: Path, tmp_path: Path, change: Callable[[Path], object]) -> None:
    copy = shutil.copytree(digits_run, tmp_path / "copy")
    change(copy / "model.json")
    with pytest.raises(LongshiftError, match=r"model\.json"):
        load_model(copy)


def test_a_folder_without_a_model_says_what_it_is(digits_run: Path, tmp_path: Path) -> None:
    (tmp_path / "images" / "cat").mkdir(parents=True)
    with pytest.raises(LongshiftError, match="images"):
        load_model(tmp_path / "images")
    copy = shutil.copytree(digits_run, tmp_path / "my fit" / "sites" / "ndcl-1-north")
    (copy / "model.json").unlink()
    with pytest.raises(LongshiftError, match="--no-keep-model"):
        load_model(copy)
    (tmp_path / "my fit" / "plan.json").write_text("{}")
    with pytest.raises(LongshiftError, match=f"{tmp_path / 'my fit'}"):
        load_model(copy)


def test_what_is_not_there(digits_run: Path, tmp_path: Path) -> None:
    with pytest.raises(LongshiftError, match="nothing"):
        load_model(tmp_path / "nothing")
    with pytest.raises(LongshiftError, match="--average"):
        load_model(digits_run, "averaged")
    with pytest.raises(UsageError, match="tests"):
        evaluate(digits_run, ["tests"])


def test_a_folder_of_models_names_them(digits_run: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        shutil.copytree(digits_run, tmp_path / "runs" / name)
    with pytest.raises(LongshiftError, match=r"first, .*second"):
        load_model(tmp_path / "runs", device="cpu")


def test_the_record_at_unseen_sites_is_kept_in_the_description(digits_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(digits_run, tmp_path / "copy")
    file = copy / "model.json"
    assert read_unseen(file) is None  # as `longshift train` writes it
    for _ in range(2):  # a finished fit may be run again
        keep_unseen(file, UnseenAccuracy(0.04, 2, 10))
        assert read_unseen(file) == UnseenAccuracy(0.04, 2, 10)
    assert load_model(copy, device="cpu").warning
    value = read_json(file)
    write_json(file, {**value, "unseen_sites": {"balanced": "x"}})
    with pytest.raises(LongshiftError, match="unseen_sites"):
        load_model(copy)
