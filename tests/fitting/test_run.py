"""`longshift.fit` from data to a model, its page and its card."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from longshift.errors import LongshiftError, UsageError
from longshift.fitting import FitResult, fit, run
from longshift.fitting.facts import LOGISTIC, MAJORITY
from longshift.fitting.run import folder_name
from longshift.inference import evaluate, predict
from longshift.io import read_json
from longshift.progress import Tick
from longshift.training import Interrupted, features as feature_cache
from tests.fitting.colored_sites import COLORS, COUNTS, QUICK, sites
from tests.report.chromium import needs_browser, open_page
from tests.training.frozen import small_weights
from tests.training.runs import CPU

LARGE: dict[str, Any] = {
    "steps": 4, "hparams": {"batch_size": 4}, "image_size": 72, "network": "small_conv", "runtime": CPU,
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sites(tmp_path_factory.mktemp("data") / "colors", COUNTS)


@pytest.fixture(scope="module")
def gray(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images so large that style mixing is tried."""
    root, rng = tmp_path_factory.mktemp("data") / "gray", np.random.default_rng(0)
    for tint, site in enumerate(("north", "south", "west")):
        for level, name in ((60, "dark"), (190, "light")):
            (root / site / name).mkdir(parents=True)
            for i in range(8):
                pixels = np.clip(level + 10 * tint + rng.normal(0, 20, (72, 72, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(root / site / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> FitResult:
    """A fit that nothing happens to; copy the folder before you change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        return fit(data, out=tmp_path_factory.mktemp("whole") / "fit", **QUICK)


def vectors() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4)) + np.repeat(np.eye(3, 4), 30, axis=0)
    return x, np.repeat(["a", "b", "c"], 30), np.tile(["north", "south", "west"], 30)


class Steps:
    """A bar that counts the steps of training."""

    def __init__(self) -> None:
        self.total, self.done, self.notes = 0, 0, list[str]()

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Tick]:
        def tick(done: int = 1, note: str = "") -> None:
            if label == "fitting":
                self.done += done
                self.notes.append(note)

        self.total = total if label == "fitting" else self.total
        yield tick


def test_the_steps_are_those_of_the_method_that_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshift.fitting.run.choose_method", lambda plan, jobs, results: "ndcl_plus")
    for _ in range(2):  # the second finds all runs finished
        done = fit(*vectors(), out=tmp_path / "fit", steps=4, runtime=CPU)
        assert (done.plan.method, done.summary.training.steps, done.summary.training.final_steps) == ("ndcl_plus", 4, 4)
        assert done.summary.training.tried == ("Logistic", "NDCL-plus")


def test_from_a_folder_to_a_model_and_its_report(data: Path, tmp_path: Path) -> None:
    options = {**QUICK, "steps": 40, "average": "ema"}
    done = fit(data, out=tmp_path / "fit", compare=True, **options)
    assert [score.site for score in done.summary.own] == ["north", "south", "west"]
    assert set(done.summary.scores) == {"ERM", "BSoftmax", "NDCL-plus", MAJORITY}
    result = read_json(tmp_path / "fit" / "sites" / "erm-1-north" / "result.json")
    assert result["run"]["target"] == "north"
    assert done.summary.own[0].accuracy == result["selected"]["target"]["accuracy"]
    assert done.summary.own[0].n == 29
    assert done.summary.accuracy.mean == pytest.approx(np.mean([score.accuracy for score in done.summary.own]))
    # The final model knows all sites and nothing was kept back for a test.
    model = done.model("cpu")
    assert model.info.sources == ("north", "south", "west")
    validation = read_json(tmp_path / "fit" / "final" / "result.json")["selected"]["validation"]["n"]
    assert int(np.sum(model.info.counts)) + validation == 72
    assert evaluate(tmp_path / "fit", ["validation"], runtime=CPU)["agrees"]
    with pytest.raises(LongshiftError, match="target"):
        evaluate(tmp_path / "fit", ["target"], runtime=CPU)
    found = predict(done.folder, [data], device="cpu")
    assert np.mean([row.label == Path(row.path).parts[-2] for row in found.rows]) > 0.8
    page, card = done.report.read_text(), done.card.read_text()
    assert page.count("green &lt;b&gt;")
    assert "<b>" not in page.replace("<body", "")
    assert "blue\\|x" in card
    kept = read_json(tmp_path / "fit" / "fit.json")
    assert kept["worst_site"] == done.summary.worst_site.site
    assert kept["findings"] == done.summary.findings
    assert len(done.summary.findings) <= 6


def test_runs_share_the_minutes_and_keep_their_best_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that each look moves by a tenth of a second, 4 runs have 15 s each and end before 1,000 steps."""
    now = itertools.count()
    monkeypatch.setattr(run, "clock", lambda: next(now) / 10)
    steps = Steps()
    options: dict[str, Any] = {"method": "erm", "steps": 1000, "minutes": 1, "runtime": CPU, "bar": steps.bar}
    done = fit(*vectors(), out=tmp_path / "fit", **options)
    kept = read_json(tmp_path / "fit" / "fit.json")["steps"]
    made = [*kept["held_out"].values(), kept["final"]]
    assert 130 < min(made) <= max(made) < 190
    assert steps.done == steps.total == 4000  # the bar ends at its total
    assert done.summary.training.final_steps == kept["final"]
    assert len(predict(done.folder, vectors()[0], device="cpu").rows) == 90
    again = fit(*vectors(), out=tmp_path / "fit", **options)  # everything is finished
    assert again.summary.to_json() == done.summary.to_json()


@pytest.mark.parametrize("better", ["logistic", "ndcl_plus"])
def test_the_bar_ends_at_its_total_whichever_method_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, better: str
) -> None:
    monkeypatch.setattr(run, "choose_method", lambda *_: better)
    steps = Steps()
    done = fit(*vectors(), out=tmp_path / "fit", steps=5, runtime=CPU, bar=steps.bar)
    assert done.plan.method == better
    assert steps.done == steps.total == 3 * (1 + 5) + 5


def test_a_run_out_of_time_learns_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "clock", lambda: 100.0)
    late = run.equal_share(90.0, 3)
    assert [late(step) for step in (1, 19, 20)] == [False, False, True]
    assert not run.equal_share(None, 3)(10**9)


def test_a_later_command_keeps_what_an_earlier_one_added(tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "erm", "steps": 5, "out": tmp_path / "fit", "runtime": CPU}
    fit(*vectors(), **options)
    with pytest.raises(Interrupted, match="run 5 of 13"):
        fit(*vectors(), compare=True, stop=(tmp_path / "fit" / "sites" / "bsoftmax-1-north").exists, **options)
    comparison = fit(*vectors(), **options).summary.comparison
    assert comparison
    assert comparison.simple  # one that was stopped does not delay later calls
    steps = Steps()
    first = fit(*vectors(), compare=True, what_if_labeled=True, bar=steps.bar, **options)
    assert {"BSoftmax", "Logistic", LOGISTIC} <= set(first.summary.scores)
    assert steps.notes[-1].startswith("13/13 ")
    kept, page = (tmp_path / "fit" / "fit.json").read_bytes(), first.report.read_text(encoding="utf-8")
    assert b"label_curve" in kept
    again = fit(*vectors(), **options)
    assert again.summary.comparison == first.summary.comparison
    assert (tmp_path / "fit" / "fit.json").read_bytes() == kept
    assert again.report.read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"network": "resnet99"}, "resnet99"),
        ({"network": "mlp"}, "vectors"),
        ({"network": "vit_tiny_patch16_224", "pretrained": False, "image_size": 8}, "8x8"),
        ({"target": "nroth"}, "north"),
        ({"target": " "}, "--target"),
        ({"method": "ndlc"}, "ndcl"),
        ({"hparams": {"lr": -1}}, "lr"),
    ],
)
def test_mistakes_are_found_before_an_image_is_opened(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], name: str
) -> None:
    monkeypatch.setattr(run, "summarize_data", lambda *_: pytest.fail("the images were looked at"))
    with pytest.raises(UsageError, match=name):
        fit(data, out=tmp_path / "fit", **{**QUICK, **options})
    assert not (tmp_path / "fit").exists()  # the right command must not meet "holds another fit"


def test_a_stop_while_looking(data: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="colors"):
        fit(data, out=tmp_path / "fit", stop=lambda: True, **QUICK)
    assert not (tmp_path / "fit").exists()


def test_long_names_of_sites_and_data(tmp_path: Path) -> None:
    x, y, domains = vectors()
    long = np.array([f"{'s' * 250}{site}" for site in domains])
    done = fit(x, y, long, method="erm", steps=3, out=tmp_path / "fit", runtime=CPU)
    assert len(list((tmp_path / "fit" / "sites").iterdir())) == 3
    assert done.summary.worst_site.site.startswith("s" * 250)
    assert [folder_name(name) for name in ("Odd data", "北院", "日本", "../x", "...", "Größe")] == [
        "odd-data", "北院", "日本", "x", "data", "größe",
    ]  # fmt: skip
    assert len(folder_name("a" * 250)) < 100
    assert folder_name("a" * 250) != folder_name("a" * 251)


@pytest.mark.slow
def test_a_head_on_features_and_the_features_from_the_cache(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    weights = small_weights(tmp_path)
    first = fit(data, out=tmp_path / "first", weights=weights, **QUICK)
    config = read_json(tmp_path / "first" / "final" / "config.json")["run"]
    assert (config["trainable"], config["backbone"]) == ("head", "small_conv")
    assert evaluate(first.folder, ["validation"], runtime=CPU)["agrees"]
    assert len(predict(first.folder, [data], device="cpu").rows) == 72
    assert "data:image/" in first.report.read_text()  # pictures of mistakes
    monkeypatch.setattr(feature_cache, "frozen_module", lambda *args: pytest.fail("computed again"))
    second = fit(data, out=tmp_path / "second", weights=weights, **QUICK)
    assert second.summary.accuracy == first.summary.accuracy
    two = shutil.copytree(data, tmp_path / "two", ignore=shutil.ignore_patterns("west"))
    fit(two, out=tmp_path / "third", weights=weights, **QUICK)  # on other sites
    assert len(predict(second.folder, [data / "west"], device="cpu").rows) == 22


@pytest.mark.slow
def test_the_better_style_is_used_and_a_resumed_fit_chooses_the_same(gray: Path, tmp_path: Path) -> None:
    done = fit(gray, out=tmp_path / "fit", **LARGE)
    unseen, means = {}, {}
    for style in ("none", "both"):
        results = sorted((tmp_path / "fit" / "sites").glob(f"*-style-{style}-*/result.json"))
        found = [read_json(file) for file in results]
        assert [(result["style"] or {"mix": "none"})["mix"] for result in found] == [style] * 3
        unseen[style] = np.mean([list(result["selected"]["target"]["per_class"].values()) for result in found])
        known = np.mean([result["selected"]["validation"]["accuracy"] for result in found])
        means[style] = (unseen[style] + known) / 2
    expected = "both" if means["both"] > means["none"] else "none"
    assert read_json(tmp_path / "fit" / "final" / "result.json")["run"]["style"]["mix"] == expected
    assert done.summary.balanced.mean == pytest.approx(unseen[expected])
    assert done.summary.style
    assert (done.summary.style.on, done.summary.style.off) == pytest.approx((means["both"], means["none"]))
    asked = iter([False] * (48 + 6))  # once for each image, then once for each step: it stops in the second run
    with pytest.raises(Interrupted, match="run 2 of 7"):
        fit(gray, out=tmp_path / "broken", stop=lambda: next(asked, True), **LARGE)
    assert fit(gray, out=tmp_path / "broken", **LARGE).summary.to_json() == done.summary.to_json()


@pytest.mark.slow
def test_a_given_style_is_used_and_not_that_of_compared_methods(gray: Path, tmp_path: Path) -> None:
    options = {**LARGE, "style": {"mix": "amplitude"}}
    done = fit(gray, out=tmp_path / "fit", target="west", compare=True, **options)
    assert done.summary.style
    assert (done.summary.style.style, done.summary.style.why) == ("amplitude", "requested")
    assert set(done.summary.scores) == {"NDCL-plus", "ERM", "BSoftmax", MAJORITY}
    styles = {
        file.parent.name: (read_json(file)["style"] or {}).get("mix")
        for file in (tmp_path / "fit").rglob("result.json")
    }
    assert {style for name, style in styles.items() if name.startswith(("erm", "bsoftmax"))} == {None}
    assert styles["final"] == "amplitude"


@pytest.mark.slow
def test_class_scores_are_over_all_samples_of_the_held_out_sites(whole: FitResult) -> None:
    right, n = dict.fromkeys(COLORS, 0), dict.fromkeys(COLORS, 0)
    for number, site in enumerate(COUNTS, start=1):
        target = read_json(whole.folder / "sites" / f"erm-{number}-{site}" / "result.json")["selected"]["target"]
        for k, name in enumerate(sorted(COLORS)):
            right[name] += target["confusion"][k][k]
            n[name] += sum(target["confusion"][k])
    assert {c.name: (c.right, c.n) for c in whole.summary.classes} == {c: (right[c], n[c]) for c in COLORS}


@needs_browser
@pytest.mark.slow
def test_the_page_opens_in_a_browser_without_complaint(whole: FitResult, tmp_path: Path) -> None:
    document, console = open_page(whole.report, tmp_path / "profile")
    assert console == []
    assert "<svg" in document
