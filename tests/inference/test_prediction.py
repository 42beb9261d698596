"""Predictions on new files equal those on the cached images; unreadable inputs are skipped."""

from __future__ import annotations

import csv
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from longshift.errors import LongshiftError, UsageError
from longshift.inference import HeldOutSite, SiteKnowledge, make_reference
from longshift.inference.loading import LoadedModel, load_model
from longshift.inference.outputs import Outputs, expand_inputs
from longshift.inference.prediction import Predictions, SeenInputs, predict, seen_inputs, vanished_classes
from longshift.nn import Network
from longshift.training import train
from longshift.training.run_config import RunConfig
from longshift.training.task import Task, make_task
from longshift.training.trainer import Trainer
from tests.data.trees import make_tree
from tests.inference.site_outputs import signals
from tests.training.runs import CPU


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory, digits_task: Task) -> Path:
    """Target digits as PNG files in two folders, a broken one among them, and things that are no images."""
    root = tmp_path_factory.mktemp("pictures")
    for number, index in enumerate(digits_task.split.target_indices[::6][:70]):
        folder = root / ("one" if number < 40 else "two")
        folder.mkdir(exist_ok=True)
        Image.fromarray(digits_task.store.inputs[index]).save(folder / f"{number:03d}-{index}.png")
    (root / "one" / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing more")
    (root / "one" / "notes.txt").write_text("not an image")
    (root / ".hidden.png").write_bytes(b"")
    return root


def test_files_give_what_the_store_gives(digits_run: Path, digits_task: Task, pictures: Path) -> None:
    model = load_model(digits_run, device="cpu")
    found = predict(model, [pictures], top_k=10)
    assert len(found.rows) == 70  # more than one chunk
    assert [(Path(path).name, reason.split(":")[0]) for path, reason in found.skipped] == [("broken.jpg", "truncated")]
    indices = [int(Path(row.path).stem.split("-")[1]) for row in found.rows]
    expected = model.probabilities(torch.from_numpy(digits_task.store.inputs[indices])).numpy()
    for row, p in zip(found.rows, expected, strict=True):
        assert dict(row.top) == pytest.approx(dict(zip(model.classes, p, strict=True)))
        assert [value for _, value in row.top] == sorted((value for _, value in row.top), reverse=True)
        assert row.label == model.classes[int(p.argmax())]
        assert row.unsure == (p.max() < 0.5)
    assert any(row.unsure for row in found.rows)


def test_features_are_kept_only_on_request(digits_run: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(digits_run, device="cpu")
    assert model.knowledge is None
    kept = predict(model, [pictures], keep_outputs=True).outputs
    assert kept is not None
    assert kept.features is not None
    assert len(kept.features) == len(kept.logits) == 70
    monkeypatch.setattr(LoadedModel, "outputs", lambda *_: pytest.fail("features of a model that does not use them"))
    assert predict(model, [pictures]).outputs is None


def test_threads_share_a_model(digits_run: Path, digits_task: Task) -> None:
    model = load_model(digits_run, device="cpu")
    parts = [torch.from_numpy(np.array(digits_task.store.inputs[i : i + 3])) for i in range(0, 60, 3)]
    network = next(part for part in model.predictor.modules() if isinstance(part, Network))
    expected = [model.outputs(part)[1] for part in parts]
    both = threading.Barrier(2, timeout=60)

    def meet(module: torch.nn.Module, args: object) -> None:
        both.wait()  # so that calls overlap

    hook = network.featurizer.register_forward_pre_hook(meet)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda part: model.outputs(part)[1], parts))
    hook.remove()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_the_threshold(digits_run: Path, pictures: Path) -> None:
    none, every = (predict(digits_run, [pictures / "two"], unsure=u, device="cpu") for u in (0.0, 1.0))
    assert not any(row.unsure for row in none.rows)
    assert sum(row.unsure for row in every.rows) == sum(row.probability < 1 for row in every.rows) > 0
    with pytest.raises(UsageError, match="unsure"):
        predict(digits_run, [pictures], unsure=2)
    with pytest.raises(UsageError, match="top_k"):
        predict(digits_run, [pictures], top_k=0)


def test_expanding(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pictures)
    everything = expand_inputs(["."])
    assert len(everything) == 71
    assert expand_inputs(["two/*"]) == sorted(f"two/{p.name}" for p in (pictures / "two").iterdir())
    assert len(expand_inputs(["**/*.png"])) == 70
    assert expand_inputs(["two/", "two/*.png"]) == expand_inputs(["two"])  # nothing twice
    assert expand_inputs(["absent.png", "no*match"]) == ["absent.png", "no*match"]
    (pictures / "odd[1].png").write_bytes(b"")
    assert expand_inputs(["odd[1].png"]) == ["odd[1].png"]  # a file's own name is no pattern
    (pictures / "odd[1].png").unlink()


def test_what_is_not_there_is_skipped(digits_run: Path, pictures: Path) -> None:
    given: list[str | Path] = ["/nothing/here.png", "/nothing/*.png", pictures / "one" / "table.npz", pictures / "two"]
    found = predict(digits_run, given, device="cpu")
    assert len(found.rows) == 30
    assert [path for path, _ in found.skipped] == [str(path) for path in given[:3]]


def test_what_is_given_in_place_of_images(digits_run: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.CSV", "c.txt"):
        (tmp_path / name).write_bytes(b"PK or path,label")
    found = predict(digits_run, sorted(tmp_path.iterdir()), device="cpu")
    assert [Path(path).name for path, _ in found.skipped] == ["a.zip", "b.CSV", "c.txt"]
    (tmp_path / "phone").mkdir()
    (tmp_path / "phone" / "1.heic").write_bytes(b"x")
    assert len(predict(digits_run, [tmp_path / "phone"], device="cpu").skipped) == 1
    Image.new("RGB", (32, 32)).save(tmp_path / "phone" / "2.jp2")  # what can be decoded is not sent back
    found = predict(digits_run, [tmp_path / "phone"], device="cpu")
    assert [Path(row.path).name for row in found.rows] == ["2.jp2"]


def test_csv_reads_back(digits_run: Path, pictures: Path) -> None:
    found = predict(digits_run, [pictures / "two"], top_k=2, device="cpu")
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert list(rows[0]) == ["path", "class", "probability", "unsure", "class_2", "probability_2"]
    for row, prediction in zip(rows, found.rows, strict=True):
        assert (row["path"], row["class"], row["class_2"]) == (prediction.path, prediction.label, prediction.top[1][0])
        assert float(row["probability"]) == pytest.approx(prediction.probability, abs=1e-6)
        assert row["unsure"] == ("yes" if prediction.unsure else "no")
    assert Predictions((), ()).to_csv() == "path,class,probability,unsure\n"


def vector_run(folder: Path) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Train a model of vectors in `folder`/run; gives its data."""
    rng = np.random.default_rng(0)
    y, d = np.arange(90) % 3, np.arange(90) // 3 % 3
    x = rng.normal(size=(90, 5)) + 4 * np.eye(5)[y]
    np.savez(folder / "train.npz", x=x, label=y, domain=d)
    config = RunConfig(data=str(folder / "train.npz"), setting="Natural", target="2", steps=40, eval_every=40)
    Trainer(config, make_task(config), folder / "run", CPU).run()
    return x, y


def test_outputs_that_are_not_finite_are_skipped(tmp_path: Path) -> None:
    x, y = vector_run(tmp_path)
    x[4] = 3e38  # finite in float32, but not after the first layer
    np.savez(tmp_path / "new.npz", x=x[:40])
    plain = load_model(tmp_path / "run", device="cpu")
    _, features = plain.outputs(torch.from_numpy(np.delete(x, 4, 0).astype(np.float32)))
    reference = make_reference(3, np.delete(y, 4), features.numpy(), ["a", "b"] * 44 + ["a"])
    fitted = replace(plain, knowledge=SiteKnowledge((HeldOutSite("a", 0.8, signals(0.3)),), reference))
    for model in (plain, fitted):
        found = predict(model, [tmp_path / "new.npz"])
        assert len(found.rows) == 39
        assert all(np.isfinite(row.probability) for row in found.rows)
        (skipped,) = found.skipped
        assert skipped[1].endswith("new.npz#04")
        assert len(predict(model, x[:40]).rows) == 39
        json.dumps(found.to_json(), allow_nan=False)
    assert predict(fitted, [tmp_path / "new.npz"]).estimate is not None
    head = [part for part in plain.predictor.modules() if isinstance(part, torch.nn.Linear)][-1]
    torch.nn.init.constant_(head.bias, np.nan)
    assert predict(plain, x[:9]).rows == ()
    assert [name for name, _ in predict(plain, x[:2]).skipped] == ["0", "1"]


def test_vectors(tmp_path: Path) -> None:
    x, y = vector_run(tmp_path)
    np.savez(tmp_path / "new.npz", x=x[:10], id=np.array([f"p{i}" for i in range(10)]))
    np.savez(tmp_path / "short.npz", x=x[:, :2])
    found = predict(tmp_path / "run", [tmp_path / "new.npz", tmp_path / "short.npz", "image.png"], device="cpu")
    assert [row.path for row in found.rows] == [f"{tmp_path / 'new.npz'}#p{i}" for i in range(10)]
    assert np.mean([row.label == str(k) for row, k in zip(found.rows, y, strict=False)]) > 0.8
    assert [Path(path).name for path, _ in found.skipped] == ["short.npz", "image.png"]
    (tmp_path / "new").mkdir()
    (tmp_path / "new.npz").rename(tmp_path / "new" / "a.npz")
    assert len(predict(tmp_path / "run", [tmp_path / "new"], device="cpu").rows) == 10  # a folder of tables


def test_no_model(tmp_path: Path) -> None:
    with pytest.raises(LongshiftError, match="nothing"):
        predict(tmp_path / "nothing", [])


def test_predictions_do_not_depend_on_the_number_of_threads(digits_run: Path, pictures: Path) -> None:
    model = load_model(digits_run, device="cpu")
    one, three = (predict(model, [pictures], threads=n, keep_outputs=True).outputs for n in (1, 3))
    assert one is not None
    assert three is not None
    assert one.features is not None
    assert three.features is not None
    assert one.names == three.names
    assert torch.equal(one.logits, three.logits)
    assert torch.equal(one.features, three.features)


def test_each_batch_is_computed_by_one_thread(
    digits_run: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, seen = load_model(digits_run, device="cpu"), []
    logits = LoadedModel.logits

    def noted(self: LoadedModel, stored: torch.Tensor) -> torch.Tensor:
        seen.append((torch.get_num_threads(), threading.get_ident()))
        return logits(self, stored)

    monkeypatch.setattr(LoadedModel, "logits", noted)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        predict(model, [pictures], threads=2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert {number for number, _ in seen} == {1}
    assert threading.get_ident() not in {thread for _, thread in seen}  # reading and computing overlap


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedModel, Path]:
    root = tmp_path_factory.mktemp("trained")
    make_tree(root / "data", ("north", "south", "west"), ("cat", "dog"), 6)
    request = {
        "data": str(root / "data"), "target": "west", "setting": "Natural", "backbone": "small_conv", "image_size": 16,
        "method": "erm", "steps": 1, "hparams": {"batch_size": 2},
    }  # fmt: skip
    train(request, out=root / "run", runtime=CPU)
    return load_model(root / "run", device="cpu"), root


def test_inputs_of_the_training_are_noticed_by_their_paths(
    trained: tuple[LoadedModel, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, root = trained

    def seen(*places: str | Path) -> SeenInputs | None:
        return seen_inputs(model, expand_inputs(places))

    assert seen(root / "data" / "north") == SeenInputs(("north",), 12, 12)
    assert seen(root / "data") == SeenInputs(("north", "south"), 24, 36)
    make_tree(root / "new", ("north",), ("cat", "dog"), 1)
    make_tree(root / "data" / "later", ("cat", "dog"), ("a",), 1)
    for place in ("data/west", "new", "data/later"):  # held out, elsewhere, and a site that was added since
        assert seen(root / place) is None
    (root / "link").symlink_to(root / "data" / "south")
    monkeypatch.chdir(root)
    assert seen("link") == SeenInputs(("south",), 12, 12)
    (model.folder / "config.json").unlink()
    assert seen("link") is None


def test_a_class_that_is_never_predicted_is_named() -> None:
    model: Any = SimpleNamespace(classes=("a", "b", "c"), info=SimpleNamespace(counts=((50, 30, 20), (60, 39, 1))))
    logits = torch.zeros(100, 3)
    logits[:, 0] = 1.0
    names = tuple(str(k) for k in range(100))
    assert vanished_classes(model, Outputs(names, logits, None, ())) == ("b",)  # a site has hardly any c
    logits[0, 1] = 2.0
    assert vanished_classes(model, Outputs(names, logits, None, ())) == ()
