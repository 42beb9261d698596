"""A fit on a CPU with starting weights trains a head, says why, and its second run starts from the cached features."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from longshift.data import load_dataset
from longshift.errors import LongshiftError, UsageError
from longshift.fitting import fit, time_needed
from longshift.fitting.job_runner import JobRunner
from longshift.fitting.network_choice import choose_network
from longshift.fitting.plan import usual_steps
from longshift.fitting.request_checks import make_draft
from longshift.fitting.time_limit import TimeLimit
from longshift.inference import evaluate, predict
from longshift.io import read_json
from longshift.training import FrozenNetwork, OpenDataset, feature_cache
from tests.fitting.colored_sites import COUNTS, sites
from tests.training.frozen import head_config, small_weights
from tests.training.runs import CPU

QUICK: dict[str, Any] = {"steps": 12, "method": "erm", "hparams": {"batch_size": 4, "lr": 5e-3}, "runtime": CPU}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sites(tmp_path_factory.mktemp("data") / "colors", COUNTS)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_weights(tmp_path_factory.mktemp("weights"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_what_is_trained(data: Path, weights: Path) -> None:
    manifest = load_dataset(data)

    def chosen(gpu: bool, **options: Any) -> tuple[str, int]:
        values, _ = choose_network(manifest, gpu=gpu, **options)
        return values["trainable"], values["image_size"]

    given = {"weights": str(weights), "backbone": "resnet18"}
    assert chosen(False, **given) == ("head", 224)
    assert chosen(True, **given) == ("all", 224)
    assert chosen(False, **given, trainable="all") == ("all", 128)
    assert chosen(True, **given, trainable="head") == ("head", 224)
    assert chosen(False)[0] == "all"  # there is nothing to start from


def test_a_head_is_as_long_as_on_vectors(weights: Path) -> None:
    assert usual_steps(10**6, 4, head_config(weights)) == 300


@pytest.mark.slow
def test_the_second_fit_starts_from_the_features(
    data: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    first = fit(data, out=tmp_path / "first", weights=weights, say=said.append, **QUICK)
    choice = "Only a head on the features of the network is trained, because this machine has no GPU."
    start = said.index(choice)
    assert said[start + 1] == "4 runs of 12 steps."
    assert re.fullmatch(r"This takes (about|less than) .+ in all, with 12 steps per run\.", said[start + 2])
    assert re.fullmatch(
        r"The whole network would take (about|less than) .+ in all, with 12 steps per run \(--trainable all\)\.",
        said[start + 3],
    )
    config = read_json(tmp_path / "first" / "final" / "config.json")["run"]
    assert (config["trainable"], config["backbone"]) == ("head", "small_conv")
    assert evaluate(first.folder, ["validation"], runtime=CPU)["agrees"]
    assert len(predict(first.folder, [data], device="cpu").rows) == 72
    page = first.report.read_text()
    assert choice in page
    assert "This takes" not in page  # it took it
    assert "would take" not in page
    assert "data:image/" in page  # pictures of mistakes
    assert "Only a head on its features is trained." in first.card.read_text()

    def never(*args: object) -> None:
        raise AssertionError("features were computed again")

    monkeypatch.setattr(feature_cache, "_computing", never)
    said.clear()
    second = fit(data, out=tmp_path / "second", weights=weights, say=said.append, **QUICK)
    assert second.summary.accuracy == first.summary.accuracy
    assert any("because the features of the images are in the cache" in text for text in said)


@pytest.mark.slow
def test_the_whole_network_on_request(data: Path, weights: Path, tmp_path: Path) -> None:
    said: list[str] = []
    fit(data, out=tmp_path / "fit", weights=weights, trainable="all", target="west", say=said.append, **QUICK)
    assert "The whole network is trained, as requested." in said
    assert any(text.startswith("Only a head on its features would take ") for text in said)
    assert any(text.endswith(" in all, with 12 steps per run (--trainable head).") for text in said)
    assert read_json(tmp_path / "fit" / "final" / "config.json")["run"]["trainable"] == "all"


@pytest.mark.slow
@pytest.mark.parametrize("trainable", ["all", "head"])
def test_a_fit_that_turns_out_slow_is_shortened_and_resumes(
    trainable: Any, data: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    limits: list[TimeLimit] = []

    def limit(minutes: float) -> TimeLimit:
        limits.append(TimeLimit(minutes, lambda: now[0]))
        return limits[-1]

    monkeypatch.setattr("longshift.fitting.fit_run.TimeLimit", limit)
    monkeypatch.setattr("longshift.fitting.plan_making.seconds_per_step", lambda *args: 0.001)
    train_one = JobRunner._train_one

    def slow(self: JobRunner, job: Any, remaining: int, tick: Any, pinned: bool) -> Any:
        def ticking(done: int = 1, note: str = "") -> None:
            now[0] += 0.04 if job.site == "north" else 0.5
            tick(done, note)

        return train_one(self, job, remaining, ticking, pinned)

    monkeypatch.setattr(JobRunner, "_train_one", slow)
    said: list[str] = []
    options: dict[str, Any] = {**QUICK, "steps": 200, "weights": weights, "trainable": trainable, "minutes": 2}
    done = fit(data, out=tmp_path / "fit", say=said.append, **options)
    (text,) = [text for text in said if text.startswith("Training is slower")]
    assert "Runs that hold out south or west, and the final model, have" in text
    assert text in done.report.read_text()
    steps = {path.parent.name: read_json(path)["run"]["steps"] for path in (tmp_path / "fit").rglob("result.json")}
    assert steps.pop("erm-1-north") == 200
    assert len(set(steps.values())) == 1
    assert 20 <= next(iter(steps.values())) < 100
    assert now[0] < 120
    again = fit(data, out=tmp_path / "fit", **options)  # everything is finished
    assert again.summary.accuracy == done.summary.accuracy


def test_too_little_time_for_the_features_is_an_error_before_they_are_computed(
    data: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = time_needed.Pass(FrozenNetwork.of(head_config(weights)), 10.0)  # seconds per image
    monkeypatch.setattr(time_needed, "time_pass", lambda config, runtime: passed)
    monkeypatch.setattr(feature_cache, "_computing", lambda *args: pytest.fail("computed"))
    said: list[str] = []
    with pytest.raises(LongshiftError, match="about 12 minutes on this machine, got 2 minutes"):
        fit(data, out=tmp_path / "fit", weights=weights, minutes=2, say=said.append, **QUICK)
    assert said[-1].startswith("Only a head on the features of the network is trained")  # known before


def test_options_of_images_are_errors_on_vectors(tmp_path: Path) -> None:
    import numpy as np

    x = np.random.default_rng(0).normal(size=(60, 4))
    labels, domains = np.repeat(["cat", "dog"], 30), np.tile(["north", "south", "west"], 20)
    np.savez(tmp_path / "v.npz", x=x, label=labels, domain=domains)
    for option in ({"weights": "x.safetensors"}, {"image_size": 64}, {"trainable": "head"}, {"views": 2}):
        with pytest.raises(UsageError, match="has no effect on vectors; drop it"):
            fit(tmp_path / "v.npz", out=tmp_path / "fit", **QUICK, **option)


@pytest.mark.parametrize("option", [{"head": "linear"}, {"backbone": "linear"}])
def test_the_plan_for_vectors_names_the_network_that_is_trained(tmp_path: Path, option: dict[str, Any]) -> None:
    import numpy as np

    x = np.random.default_rng(0).normal(size=(60, 4))
    labels, domains = np.repeat(["cat", "dog"], 30), np.tile(["north", "south", "west"], 20)
    np.savez(tmp_path / "v.npz", x=x, label=labels, domain=domains)
    request: dict[str, Any] = {
        "target": None, "hparams": {}, "style": None, "average": "none", "split_seed": 0, "train_seed": 0,
        "backbone": "auto", "weights": None, "pretrained": None, "image_size": 0, "trainable": None, "head": "mlp",
        "views": 1, "method": "erm",
    }  # fmt: skip
    draft = make_draft(OpenDataset(str(tmp_path / "v.npz")), {**request, **option}, gpu=False)
    assert draft.reason == "The network for vectors is linear."
    assert usual_steps(60_000, 3, draft.config) == 300


@pytest.mark.slow
def test_vectors_keep_held_out_predictions_and_the_page_lists_ids(tmp_path: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    labels, domains = np.repeat(["cat", "dog"], 30), np.tile(["north", "south", "west"], 20)
    x, ids = rng.normal(size=(60, 4)), np.array([f"sample <{i}>" for i in range(60)])
    np.savez(tmp_path / "v.npz", x=x, label=labels, domain=domains, id=ids)
    done = fit(tmp_path / "v.npz", out=tmp_path / "fit", head="linear", **QUICK)
    assert (tmp_path / "fit" / "sites" / "erm-1-north" / "predictions.npz").exists()
    assert "<code>sample &lt;" in done.report.read_text()
    assert "The network for vectors is linear." in done.card.read_text()
