"""A fit measures whether to mix styles, says what it found, and keeps the better of the two."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from longshift.errors import LongshiftError
from longshift.fitting import fit, job_runner
from longshift.fitting.plan import Job, Plan
from longshift.fitting.site_scores import SiteScore
from longshift.fitting.style_trial import better_style, styles_to_try, untried_reason
from longshift.io import read_json
from longshift.training import Interrupted, Trainer
from longshift.training.run_config import RunConfig
from tests.training.runs import CPU

LARGE: dict[str, Any] = {"steps": 4, "hparams": {"batch_size": 4}, "image_size": 72, "backbone": "small_conv"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, rng = tmp_path_factory.mktemp("data") / "gray", np.random.default_rng(0)
    for tint, site in enumerate(("north", "south", "west")):
        for level, name in ((60, "dark"), (190, "light")):
            (root / site / name).mkdir(parents=True)
            for i in range(8):
                pixels = np.clip(level + 10 * tint + rng.normal(0, 20, (72, 72, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(root / site / name / f"{i}.png")
    return root


def scores(*balanced: float) -> list[SiteScore]:
    return [SiteScore(str(i), 10, 0.5, value, None, {}, ()) for i, value in enumerate(balanced)]


@pytest.mark.parametrize(
    ("off", "on", "expected"),
    [((0.5, 0.7), (0.6, 0.7), "both"), ((0.6, 0.7), (0.5, 0.7), "none"), ((0.5, 0.7), (0.7, 0.5), "none")],
)
def test_the_better_at_held_out_sites_is_chosen_and_off_in_a_tie(
    off: tuple[float, ...], on: tuple[float, ...], expected: str
) -> None:
    style, reason = better_style({"none": scores(*off), "both": scores(*on)})
    assert style == expected
    assert "averaged over classes and 2 held-out sites is" in reason
    assert f"{100 * np.mean(on):.1f}% with it and {100 * np.mean(off):.1f}% without it" in reason
    assert reason.startswith("Style mixing is off" if expected == "none" else "Style mixing is on (style.mix=both)")


BETTER = " The expected accuracy is that of the better of the two and therefore slightly optimistic."


@pytest.mark.parametrize(
    ("off", "on", "words"),
    [
        (
            (0.9, 0.9, 0.5),
            (0.9, 0.95, 0.6),
            f"% without it; higher with it at 2 sites, equal at 1. A paired t-test over sites gives p = 0.23: with so "
            f"few sites, this may be chance.{BETTER}",
        ),
        ((0.9, 0.8, 0.7), (0.9, 0.7, 0.71), "% without it; higher without it at 1 site, equal at 1, lower at 1. A"),
        (
            (0.9, 0.6),
            (0.6, 0.9),
            "75.0% without it: equal, so it stays off; higher with it at 1 site, lower at 1. To choose",
        ),
        ((0.6, 0.7, 0.8), (0.5, 0.6, 0.7), "at 3 sites. With so few sites, chance cannot be ruled out."),
        (
            (0.5, 0.6, 0.7),
            (0.6, 0.7, 0.801),
            "higher with it at 3 sites. A paired t-test over sites gives p = 1.1e-05.",
        ),
        ((0.8, 0.7), (0.8, 0.7), "75.0% with it and 75.0% without it: equal, so it stays off. To choose"),
        ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1), "20.0% without it: equal, so it stays off;"),  # but for rounding
        (
            (0.9166,),
            (0.9168,),
            "at the held-out site 0 is 91.68% with it and 91.66% without it. With so few sites, chance cannot be "
            f"ruled out.{BETTER} To choose",
        ),
        ((0.500002,), (0.5,), "50.0000% with it and 50.0002% without it."),
    ],
)
def test_the_reason_explains_ties_and_small_differences(
    off: tuple[float, ...], on: tuple[float, ...], words: str
) -> None:
    style, reason = better_style({"none": scores(*off), "both": scores(*on)})
    assert words in reason
    assert (style == "none") is bool(np.mean(on) <= np.mean(off) + 1e-9)
    assert reason.endswith(" To choose it yourself, use --style.mix none or --style.mix both.")
    assert "With two sites" not in reason


def test_the_reason_says_what_two_sites_cannot_measure() -> None:
    _, reason = better_style({"none": scores(0.5, 0.7), "both": scores(0.6, 0.8)}, one_source=True)
    assert "With two sites, these runs mix styles within one site, while a final model mixes them across both" in reason


def test_what_is_tried() -> None:
    large = RunConfig(data="digits", target="ink", method="ndcl_plus", image_size=96)
    assert styles_to_try(large, {}) == ("none", "both")
    assert styles_to_try(large, {"mix": "amplitude"}) == ()
    assert styles_to_try(RunConfig(data="digits", target="ink", method="ndcl_plus"), {}) == ()
    assert styles_to_try(RunConfig(data="digits", target="ink", method="bsoftmax", image_size=96), {}) == ()


@pytest.mark.parametrize(
    ("values", "given", "reason"),
    [
        ({"image_size": 96}, {}, ""),  # it is tried
        ({"image_size": 96, "method": "bsoftmax"}, {}, ""),  # it does not mix styles
        ({"image_size": 96}, {"mix": "amplitude"}, "Style mixing is on (style.mix=amplitude), as requested."),
        ({"method": "bsoftmax"}, {"mix": "none"}, "Style mixing is off, as requested."),
        (
            {},
            {},
            "Style mixing, a part of this method, is off by default for small images without pretrained weights; "
            "--style.mix both turns it on.",
        ),
        (
            {"image_size": 96, "trainable": "head"},
            {},
            "Style mixing, a part of this method, is off by default when only a head is trained; --style.mix both "
            "--views 4 turns it on.",
        ),
        ({"data": "pacs-features"}, {}, "Style mixing, a part of this method, is off: vectors have no style."),
    ],
)
def test_why_nothing_is_tried(values: dict[str, Any], given: dict[str, Any], reason: str) -> None:
    config = RunConfig.model_validate({"method": "ndcl_plus", "target": "", **values, "hparams": given})
    assert untried_reason(config, given) == reason


@pytest.mark.slow
def test_a_fit_tries_both_says_which_and_resumes(data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    done = fit(data, out=tmp_path / "fit", say=said.append, runtime=CPU, **LARGE)
    assert done.plan.method == "ndcl_plus"
    means = {}
    for style in ("none", "both"):
        results = sorted((tmp_path / "fit" / "sites").glob(f"*-style-{style}-*/result.json"))
        assert len(results) == 3
        found = [read_json(file) for file in results]
        assert {(result["style"] or {"mix": "none"})["mix"] for result in found} == {style}
        means[style] = np.mean([list(result["selected"]["target"]["per_class"].values()) for result in found])
    expected = "both" if means["both"] > means["none"] else "none"
    final = read_json(tmp_path / "fit" / "final" / "result.json")
    assert (final["style"] or {"mix": "none"})["mix"] == expected
    assert done.summary.balanced.mean == pytest.approx(means[expected])
    assert f"{100 * means['both']:.1f}% with it and {100 * means['none']:.1f}% without it" in done.plan.style_reason
    assert said.count(done.plan.style_reason) == 1
    assert done.plan.style_reason in done.summary.sentences
    plan = said.index("7 runs of 4 steps.")
    assert said[plan - 1] == "small_conv starts from random weights, on 72x72 pixels."
    assert re.fullmatch(r"This takes (about|less than) .+ in all, with 4 steps per run\.", said[plan + 1])
    assert said[plan + 2] == (
        "First, each site is held out twice, with style mixing and without it, because it depends on the data whether "
        "that helps; --style.mix none or --style.mix both saves 3 of these runs."
    )
    assert not any("already finished" in text for text in said)  # the runs of the trial are of the same command
    assert "This takes" not in done.report.read_text(encoding="utf-8")
    assert html.unescape(done.report.read_text(encoding="utf-8")).count(done.plan.style_reason) == 1
    assert done.card.read_text(encoding="utf-8").count("Style mixing is") == 1
    kept = read_json(tmp_path / "fit" / "fit.json")
    assert kept["style_mixing"] == done.plan.style_reason
    assert done.plan.style_reason in kept["sentences"]
    asked = iter([False] * (48 + 6))  # once for each image, then once for each step: it stops in the second run
    with pytest.raises(Interrupted, match="stopped in run 2 of 7"):
        fit(data, out=tmp_path / "broken", stop=lambda: next(asked, True), runtime=CPU, **LARGE)
    said.clear()
    resumed = fit(data, out=tmp_path / "broken", say=said.append, runtime=CPU, **LARGE)
    assert "1 of the 7 runs is already finished." in said
    assert resumed.summary.to_json() == done.summary.to_json()
    assert resumed.plan.style_reason == done.plan.style_reason


@pytest.mark.slow
def test_a_given_style_is_used_and_not_that_of_compared_methods(data: Path, tmp_path: Path) -> None:
    options = {**LARGE, "hparams": {"batch_size": 4}, "style": {"mix": "amplitude"}}
    done = fit(data, out=tmp_path / "fit", target="west", compare=True, runtime=CPU, **options)
    assert done.plan.style_reason == "Style mixing is on (style.mix=amplitude), as requested."
    assert set(done.summary.scores) == {"NDCL-plus", "ERM", "BSoftmax"}
    styles = {
        file.parent.name: (read_json(file)["style"] or {}).get("mix")
        for file in (tmp_path / "fit").rglob("result.json")
    }
    assert {style for name, style in styles.items() if name.startswith(("erm", "bsoftmax"))} == {None}
    assert styles["final"] == "amplitude"


def diverge(monkeypatch: pytest.MonkeyPatch, *styles: str, after: int = 0) -> None:
    """Runs with these styles diverge after `after` steps where "south" is held out."""

    class Diverging(Trainer):
        def _evaluate(self) -> None:
            style = self.config.style_config()
            drawn = style.mix if style else "none"
            if drawn in styles and self.config.target == "south" and self.progress.step > after:
                self.progress.diverged_at = self.progress.step
            else:
                super()._evaluate()

    monkeypatch.setattr(job_runner, "Trainer", Diverging)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost", "kept", "after", "words"),
    [
        ("both", "none", 0, "Style mixing is off: training with it diverged when south was held out."),
        (
            "none",
            "both",
            2,
            "Style mixing is on (style.mix=both): training without it diverged when south was held out.",
        ),
    ],
)
def test_a_style_that_diverges_loses_and_the_user_is_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str, kept: str, after: int, words: str
) -> None:
    diverge(monkeypatch, lost, after=after)
    said: list[str] = []
    done = fit(data, out=tmp_path / "fit", say=said.append, runtime=CPU, **LARGE)
    assert any(text.startswith(words) for text in said)
    assert words in done.card.read_text(encoding="utf-8").replace("\\", "")
    assert read_json(tmp_path / "fit" / "final" / "result.json")["run"]["style"]["mix"] == kept


@pytest.mark.slow
def test_where_all_styles_diverge_the_error_names_a_run(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverge(monkeypatch, "none", "both")
    with pytest.raises(
        LongshiftError, match="ndcl_plus without south, style mixing off: the loss became infinite or NaN"
    ):
        fit(data, out=tmp_path / "fit", runtime=CPU, **LARGE)


@pytest.mark.slow
def test_where_all_styles_diverge_late_their_scores_decide(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverge(monkeypatch, "none", "both", after=2)
    options = {**LARGE, "hparams": {"batch_size": 4}, "style": {"share": 0.3}}
    done = fit(data, out=tmp_path / "fit", runtime=CPU, **options)
    assert "% without it" in done.plan.style_reason
    for style, share in (("none", None), ("both", 0.3)):  # options of style are for the runs that mix styles
        (first, *_) = sorted((tmp_path / "fit" / "sites").glob(f"*-style-{style}-*/config.json"))
        assert read_json(first)["run"]["style"].get("share") == share


def test_the_runs_after_the_trial_need_time_too(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(self: job_runner.JobRunner, jobs: list[Job], plan: Plan, later: int = 0) -> None:
        order = [(job.site, job.folder.name.split("-style-")[1].split("-")[0]) for job in jobs]
        assert order == [(site, style) for site in ("north", "south", "west") for style in ("none", "both")]
        labels = [job.label for job in jobs[:2]]
        assert labels == [f"ndcl_plus without north, style mixing {switch}" for switch in ("off", "on")]
        raise Interrupted(f"{later} runs later")

    monkeypatch.setattr(job_runner.JobRunner, "train", train)
    said: list[str] = []
    with pytest.raises(Interrupted, match="7 runs later"):  # two more methods at three sites, and the final model
        fit(data, out=tmp_path / "fit", compare=True, say=said.append, runtime=CPU, **LARGE)
    # The plan is known before the trial, which may take long.
    assert "13 runs of 4 steps." in said
    assert any("saves 3 of these runs" in text for text in said)


@pytest.mark.slow
def test_with_two_sites_the_fit_says_what_was_measured(data: Path, tmp_path: Path) -> None:
    two = tmp_path / "two"
    for site in ("north", "south"):
        shutil.copytree(data / site, two / site)
    done = fit(two, out=tmp_path / "fit", target="south", runtime=CPU, **LARGE)
    assert "at the held-out site south is" in done.summary.style_mixing
    assert "With two sites, these runs mix styles within one site" in done.summary.style_mixing
