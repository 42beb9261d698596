"""A model on labeled data of new sites: numbers against a plain count, promised against found."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError
from longshift.fitting import fit
from longshift.inference import Range, evaluate_site, load_model
from longshift.inference.evaluating import labeled_data
from longshift.inference.prediction import predict
from longshift.progress import Tick, no_bar
from tests.training.runs import CPU

runner = CliRunner()


def vectors(path: Path, sites: dict[str, float], n: int = 60, names: str = "abc") -> Path:
    rng = np.random.default_rng(len(sites))
    y = np.arange(n * len(sites)) % 3
    shift = np.repeat(list(sites.values()), n)
    x = rng.normal(0, 1, (len(y), 5)) + 2 * np.eye(5)[y] + shift[:, None] * np.eye(5)[3]
    np.savez(path, x=x, label=np.array(list(names))[y], domain=np.repeat(list(sites), n))
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fit")
    data = vectors(root / "data.npz", {"north": 0.0, "south": 1.0, "west": 2.0})
    return fit(data, out=root / "fit", steps=40, method="erm", runtime=CPU).folder


@pytest.mark.slow
def test_numbers_agree_with_predict_and_the_interval_is_compared(fitted: Path, tmp_path: Path) -> None:
    new = vectors(tmp_path / "new.npz", {"east": 1.5, "far": 3.0})
    first, second = evaluate_site(fitted, new, device="cpu")
    assert (first.site, second.site) == ("east", "far")
    labels = dict(zip(map(str, range(120)), np.load(new)["label"], strict=True))
    rows = predict(fitted, [new], device="cpu").rows
    right = [row.label == labels[str(int(row.path.rsplit("#", 1)[1]))] for row in rows]
    assert first.found.accuracy == pytest.approx(np.mean(right[:60]))
    assert second.found.accuracy == pytest.approx(np.mean(right[60:]))
    assert first.expected is not None
    reach = first.expected.accuracy
    assert first.inside is (round(100 * reach.low) <= round(100 * first.found.accuracy, 1) <= round(100 * reach.high))
    shown = runner.invoke(app, ["evaluate", str(fitted), str(new), "--device", "cpu", "-q"])
    assert shown.exit_code == 0, shown.output
    assert "warning" not in shown.output
    value = json.loads(runner.invoke(app, ["evaluate", str(fitted), str(new), "-q", "--json"]).stdout)
    assert sum(map(sum, value[0]["confusion"])) == 60
    assert value[0]["seen_in_training"] == ""


def test_data_of_the_training_are_named_as_such(fitted: Path, tmp_path: Path) -> None:
    data = fitted.parent / "data.npz"
    for verb in ("evaluate", "predict"):
        shown = runner.invoke(app, [verb, str(fitted), str(data), "--device", "cpu", "-q"])
        assert shown.exit_code == 0, shown.output
        assert "warning: " in shown.stdout
    assert [result.seen for result in evaluate_site(fitted, data, device="cpu")] == ["data"] * 3
    seen = predict(fitted, [data], device="cpu").seen
    assert seen is not None
    assert seen.sites == ("north", "south", "west")
    mixed = vectors(tmp_path / "mixed.npz", {"north": 0.0, "east": 1.5})
    shown = runner.invoke(app, ["evaluate", str(fitted), str(mixed), "--device", "cpu", "-q", "--json"])
    assert [row["seen_in_training"] for row in json.loads(shown.stdout)] == ["", "site"]
    assert "north" in shown.stderr
    assert predict(fitted, [mixed], device="cpu").seen is None


def test_inside_the_interval_means_inside_the_printed_one(fitted: Path, tmp_path: Path) -> None:
    first, _ = evaluate_site(fitted, vectors(tmp_path / "new.npz", {"east": 1.5, "far": 3.0}), device="cpu")
    assert first.expected is not None
    narrow = replace(first.expected, accuracy=Range(0.999, 0.99, 0.9999))
    for accuracy, low, kept in ((1.0, 0.99, True), (0.995, 0.99, True), (0.987, 0.986, False)):
        found = replace(
            first,
            found=replace(first.found, accuracy=accuracy),
            expected=replace(narrow, accuracy=replace(narrow.accuracy, low=low)),
        )
        assert found.inside is kept


def test_progress_counts_the_samples(fitted: Path, tmp_path: Path) -> None:
    shown: list[tuple[str, int]] = []

    def bar(label: str, total: int) -> AbstractContextManager[Tick]:
        shown.append((label, total))
        return no_bar(label, total)

    evaluate_site(fitted, vectors(tmp_path / "new.npz", {"east": 1.5, "far": 3.0}), device="cpu", bar=bar)
    assert shown == [("reading", 120)]


def test_classes_that_the_model_does_not_know_are_left_out(fitted: Path, tmp_path: Path) -> None:
    known = vectors(tmp_path / "known.npz", {"east": 0.0, "far": 1.0})
    extra = vectors(tmp_path / "extra.npz", {"east": 0.0, "far": 1.0}, names="abx")
    for found, whole in zip(*(evaluate_site(fitted, data, device="cpu") for data in (extra, known)), strict=True):
        assert (found.unknown, whole.unknown) == ({"x": 20}, {})
        np.testing.assert_array_equal(found.found.confusion[:2], whole.found.confusion[:2])
        assert sum(found.found.confusion[2]) == 0
    shown = runner.invoke(app, ["evaluate", str(fitted), str(extra), "--device", "cpu", "-q", "--json"])
    assert [row["unknown_classes"] for row in json.loads(shown.stdout)] == [{"x": 20}] * 2
    with pytest.raises(LongshiftError, match="east"):
        evaluate_site(fitted, vectors(tmp_path / "none.npz", {"east": 0.0}, names="xyz"), device="cpu")


def test_a_folder_of_classes_is_one_site(fitted: Path, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / "site" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "site" / name / "1.png")
    found = labeled_data(load_model(fitted, device="cpu"), tmp_path / "site")
    assert (found.domain_names, found.classes, len(found)) == (("site",), ("a", "b"), 2)
    with pytest.raises(LongshiftError, match="vectors"):
        evaluate_site(fitted, tmp_path / "site", device="cpu")
    asked = runner.invoke(app, ["evaluate", str(fitted), str(tmp_path / "site"), "--on", "target"])
    assert "--on" in str(asked.exception)


def test_images_without_labels_are_for_predict(digits_run: Path, fitted: Path, tmp_path: Path) -> None:
    for place in ("plain", "site/3", "mixed", "mixed/3"):
        (tmp_path / place).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / place / "1.png")

    def said(data: Path, model: Path = digits_run) -> str:
        with pytest.raises(LongshiftError) as caught:
            evaluate_site(model, data, device="cpu")
        return str(caught.value)

    assert f"longshift predict {digits_run} {tmp_path / 'plain'}" in said(tmp_path / "plain")
    assert f"longshift predict {fitted} " in said(tmp_path / "plain", fitted)  # not its folder final/
    assert "1.png" in said(tmp_path / "mixed")
    assert f"longshift evaluate {digits_run} {tmp_path / 'site'}" in said(tmp_path / "site" / "3")
