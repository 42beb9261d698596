"""`longshift.fit` from a folder of images to a model, its page and its card."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.errors import LongshiftError, UsageError
from longshift.fitting import FitResult, fit
from longshift.fitting.fit_run import folder_name
from longshift.inference import evaluate
from longshift.inference.prediction import predict
from longshift.io import read_json
from longshift.training.interrupt import Interrupted
from tests.fitting.colored_sites import COLORS, COUNTS, QUICK, sites
from tests.report.chromium import needs_browser, open_page
from tests.training.runs import CPU


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sites(tmp_path_factory.mktemp("data") / "colors", COUNTS)


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[FitResult, list[str]]:
    """A fit that nothing happens to, and what it said; copy the folder before you change it."""
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        return fit(data, out=tmp_path_factory.mktemp("whole") / "fit", say=said.append, **QUICK), said


def test_from_a_folder_to_a_model_and_its_report(data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    options = {**QUICK, "steps": 40, "average": "ema"}
    done = fit(data, out=tmp_path / "fit", compare=True, say=said.append, **options)
    assert [score.site for score in done.summary.own] == ["north", "south", "west"]
    assert set(done.summary.scores) == {
        f"{title}{average}" for title in ("ERM", "BSoftmax", "NDCL-plus") for average in ("", " + EMA")
    }
    result = read_json(tmp_path / "fit" / "sites" / "erm-1-north" / "result.json")
    assert result["run"]["target"] == "north"
    assert done.summary.own[0].accuracy == result["selected"]["target"]["accuracy"]
    assert done.summary.own[0].n == 29
    values = [score.accuracy for score in done.summary.own]
    assert done.summary.accuracy.mean == pytest.approx(np.mean(values))
    # The final model knows all sites and nothing was kept back for a test.
    model = done.model("cpu")
    assert model.info.sources == ("north", "south", "west")
    validation = read_json(tmp_path / "fit" / "final" / "result.json")["selected"]["validation"]["n"]
    assert int(np.sum(model.info.counts)) + validation == 72
    assert evaluate(tmp_path / "fit", ["validation"], runtime=CPU)["agrees"]
    with pytest.raises(LongshiftError, match="target"):
        evaluate(tmp_path / "fit", ["target"], runtime=CPU)
    found = predict(done.folder, [data], device="cpu")
    assert len(found.rows) == 72
    assert np.mean([row.label == Path(row.path).parts[-2] for row in found.rows]) > 0.8
    page, card = done.report.read_text(), done.card.read_text()
    for text in ("green &lt;b&gt;", done.summary.worst_site.site, "Confusion matrix", "Confusion matrix of north"):
        assert text in page
    lead = page.split('id="lead"')[1].split('id="summary"')[0]  # the chart comes before any sentence
    for score in done.summary.own:
        assert f"{score.site}, while held out: {100 * score.accuracy:.1f}%" in lead
    assert "<b>" not in page.replace("<body", "")
    assert "blue\\|x" in card
    assert done.summary.accuracy.words() in card
    meaning = done.summary.accuracy.meaning()  # in the same words everywhere
    assert all(meaning in text for text in (card, page, said))
    assert any("The largest class, red, has 37 images" in text for text in said)
    assert any(text == done.summary.verdict for text in said)
    assert "the best other method" in done.summary.verdict
    assert read_json(tmp_path / "fit" / "fit.json")["worst_site"] == done.summary.worst_site.site


@pytest.mark.slow
def test_broken_off_it_goes_on_and_ends_the_same(
    data: Path, whole: tuple[FitResult, list[str]], tmp_path: Path
) -> None:
    asked = iter([False] * (72 + 18))  # once an image that is looked at, then once a step: it stops in run 2 of 4
    with pytest.raises(Interrupted, match="stopped in run 2 of 4; everything is saved"):
        fit(data, out=tmp_path / "broken", stop=lambda: next(asked, True), **QUICK)
    first = (tmp_path / "broken" / "sites" / "erm-1-north" / "result.json").read_bytes()
    resumed = fit(data, out=tmp_path / "broken", **QUICK)
    assert (tmp_path / "broken" / "sites" / "erm-1-north" / "result.json").read_bytes() == first
    assert resumed.summary.to_json() == whole[0].summary.to_json()
    weights = [(folder / "final" / "model.safetensors").read_bytes() for folder in (whole[0].folder, resumed.folder)]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_only_damaged_weights_are_trained_again(data: Path, whole: tuple[FitResult, list[str]], tmp_path: Path) -> None:
    final = shutil.copytree(whole[0].folder, tmp_path / "fit") / "final"
    numbers, result = (final / "new_site.json").read_bytes(), (final / "result.json").read_bytes()
    (final / "new_site.json").write_bytes(b"{}")
    fit(data, out=tmp_path / "fit", **QUICK)
    assert (final / "new_site.json").read_bytes() == numbers
    assert (final / "result.json").read_bytes() == result
    (final / "model.safetensors").write_bytes((final / "model.safetensors").read_bytes()[:-9])
    said: list[str] = []
    fit(data, out=tmp_path / "fit", say=said.append, **QUICK)
    assert any(text.startswith("The final model is trained again, because it cannot be used: ") for text in said)
    (aside,) = final.glob("result-*.json")
    assert aside.read_bytes() == result
    assert len(predict(tmp_path / "fit", [data], device="cpu").rows) == 72


@pytest.mark.slow
def test_a_resumed_fit_counts_the_minutes_of_its_finished_runs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    options = {**QUICK, "minutes": 60, "target": "west", "out": tmp_path / "fit"}
    fit(data, **options)
    spent: list[float] = []
    monkeypatch.setattr("longshift.fitting.time_limit.TimeLimit.spend", lambda limit, seconds: spent.append(seconds))
    fit(data, say=said.append, **options)
    assert not any(text.startswith("Finished runs took") for text in said)  # nothing was left to train
    (tmp_path / "fit" / "final" / "result.json").unlink()
    fit(data, say=said.append, **options)
    assert any(
        re.fullmatch(r"Finished runs took (\d+ seconds?|less than a second) of 1 hour; .*", text) for text in said
    )
    (site,) = (tmp_path / "fit" / "sites").iterdir()
    assert spent[-1] == read_json(site / "result.json")["seconds"]["total"]


@pytest.mark.slow
def test_the_card_of_one_held_out_site_does_not_speak_of_all(data: Path, tmp_path: Path) -> None:
    card = fit(data, target="west", out=tmp_path / "fit", **QUICK).card.read_text()
    assert "Only west was held out" in card
    assert "held out in turn" not in card
    assert "probability 80%" not in card


@pytest.mark.slow
def test_another_fit_in_the_same_folder_is_refused(data: Path, tmp_path: Path) -> None:
    fit(data, out=tmp_path / "fit", target="west", **QUICK)
    with pytest.raises(LongshiftError, match=r"holds another fit \(it differs in train_seed: 0 there, 1 now\)"):
        fit(data, out=tmp_path / "fit", target="west", train_seed=1, **QUICK)
    fit(f"{data}/", out=tmp_path / "fit", target="west", **QUICK)  # a slash at the end is no change
    copy = shutil.copytree(data, tmp_path / "copy")
    done = fit(copy, out=tmp_path / "other", target="west", **QUICK)
    assert [score.site for score in done.summary.own] == ["west"]
    assert "one does not show how sites differ" in " ".join(done.summary.sentences)
    (copy / "west" / "red" / "0.png").unlink()
    with pytest.raises(LongshiftError, match="changed since the fit"):
        fit(copy, out=tmp_path / "other", target="west", **QUICK)


@pytest.mark.slow
def test_embeddings(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y, d = np.arange(120) % 3, np.arange(120) // 3 % 3
    np.savez(tmp_path / "e.npz", x=rng.normal(size=(120, 6)) + 3 * np.eye(6)[y], label=y, domain=d)
    done = fit(tmp_path / "e.npz", out=tmp_path / "fit", steps=30, runtime=CPU)
    assert done.summary.accuracy.mean > 0.8
    assert done.model("cpu").info.vectors
    assert done.report.stat().st_size > 1000
    assert "Each class (0, 1, 2) has 40 vectors." in done.look.sentences()
    assert "NEW_SITE.npz --out predictions.csv" in done.card.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": "resnet99"}, "unknown backbone 'resnet99'; did you mean"),
        ({"backbone": "mlp"}, "is for vectors (embeddings), but the data are images"),
        ({"backbone": "vit_tiny_patch16_224", "image_size": 100}, "got 100x100 pixels"),
        (
            {"target": "nroth"},
            "unknown site of colors 'nroth'; did you mean north or south? The sites are north,",
        ),
        ({"target": "Mars"}, "known: north, south, west"),
        ({"target": " "}, "expected one of north, south, west, got an empty name"),
        ({"method": "ndlc"}, "did you mean ndcl"),
        ({"hparams": {"lr": -1}}, "lr"),
    ],
)
def test_mistakes_are_found_before_an_image_is_opened(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    from longshift.fitting import fit_run as run

    def opened(*_: object) -> None:
        raise AssertionError("the images were looked at")

    monkeypatch.setattr(run, "summarize_data", opened)
    with pytest.raises(UsageError) as failed:
        fit(data, out=tmp_path / "fit", **{**QUICK, **options})
    assert message in str(failed.value)
    assert not (tmp_path / "fit").exists()  # the right command must not meet "holds another fit"


def test_weights_of_another_network_are_found_first(data: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, tmp_path / "w.safetensors")
    with pytest.raises(LongshiftError, match="does not fit this backbone"):
        fit(data, out=tmp_path / "fit", weights=tmp_path / "w.safetensors", backbone="resnet10t", **QUICK)
    assert not (tmp_path / "fit").exists()


def test_an_embedding_fit_wants_no_image_network(tmp_path: Path) -> None:
    y, d = np.arange(24) % 3, np.arange(24) // 3 % 2
    np.savez(tmp_path / "e.npz", x=np.eye(7)[y], label=y, domain=d)
    with pytest.raises(UsageError, match="'resnet18' is for images, but the data are vectors of length 7; use 'mlp'"):
        fit(tmp_path / "e.npz", out=tmp_path / "fit", backbone="resnet18", runtime=CPU)


def test_a_stop_while_looking(data: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="stopped while looking at colors; nothing was trained yet"):
        fit(data, out=tmp_path / "fit", stop=lambda: True, **QUICK)
    assert not (tmp_path / "fit").exists()


@pytest.mark.slow
def test_minutes_are_measured(data: Path, tmp_path: Path) -> None:
    done = fit(data, out=tmp_path / "fit", target="west", minutes=0.05, **{**QUICK, "steps": 10**6})
    assert 20 <= done.plan.base["steps"] < 10**4


@pytest.mark.slow
def test_a_resumed_fit_has_the_minutes_that_are_left_and_added_runs_are_as_long(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {**QUICK, "steps": 30, "target": "west", "minutes": 60}
    with pytest.raises(Interrupted, match="stopped in run 2 of 2"):
        fit(data, out=tmp_path / "whole", stop=(tmp_path / "whole" / "final").exists, **options)
    shutil.copytree(tmp_path / "whole", tmp_path / "late")
    fit(data, out=tmp_path / "whole", **options)
    monkeypatch.setattr("longshift.fitting.fit_run._seconds_used", lambda folder: 3600.0)
    fit(data, out=tmp_path / "whole", compare=True, **options)
    steps = [read_json(path)["run"]["steps"] for path in (tmp_path / "whole").rglob("result.json")]
    assert steps == [30] * 4
    said: list[str] = []
    fit(data, out=tmp_path / "late", say=said.append, **options)
    assert "Finished runs took 1 hour of 1 hour; the rest is for the other runs." in said
    assert any("The final model has 20 steps instead of 30" in text for text in said)


@pytest.mark.slow
def test_what_is_said_of_a_class_of_one_site(tmp_path: Path) -> None:
    root = sites(tmp_path / "d", {"a": {"red": 6, "green <b>": 6, "blue|x": 4}, "b": {"red": 6, "green <b>": 6}})
    done = fit(root, out=tmp_path / "fit", **QUICK)
    (sentence,) = [text for text in done.summary.sentences if text.startswith("Not measured: ")]
    assert "blue|x (only at a). No training samples of it were left" in sentence
    assert "Its 4 samples count as misclassified above; without it, expect" in sentence
    assert "blue|x" not in [weak.name for weak in done.summary.weak]
    assert "trained on both sites" in done.summary.sentences[-1]
    assert "- Not measured: blue\\|x. Only a has it" in done.card.read_text(encoding="utf-8")
    page = html.unescape(done.report.read_text(encoding="utf-8"))
    assert "Class that could not be learned: blue|x" in page
    assert "blue|x (only at a: not learned while it was held out)" in page


def test_a_folder_for_any_name() -> None:
    assert [folder_name(name) for name in ("Odd data", "北院", "日本", "../x", "...", "Größe")] == [
        "odd-data", "北院", "日本", "x", "data", "größe",
    ]  # fmt: skip


@needs_browser
@pytest.mark.slow
def test_the_page_opens_in_a_browser_without_a_word_of_complaint(data: Path, tmp_path: Path) -> None:
    done = fit(data, out=tmp_path / "fit", **{**QUICK, "steps": 2})  # so short that mistakes are left
    document, console = open_page(done.report, tmp_path / "profile")
    assert console == []
    assert "Each class at sites not seen in training" in document
    assert "calibrated, as in the output of longshift predict" in document


@pytest.mark.slow
def test_the_page_the_card_and_the_console_agree_on_classes(whole: tuple[FitResult, list[str]]) -> None:
    """One definition of a class's accuracy: right over all its samples at the held-out sites."""
    done, said = whole
    assert "Each site was held out in turn" in done.card.read_text()
    right, n = dict.fromkeys(COLORS, 0), dict.fromkeys(COLORS, 0)
    for number, site in enumerate(COUNTS, start=1):
        target = read_json(done.folder / "sites" / f"erm-{number}-{site}" / "result.json")["selected"]["target"]
        for k, name in enumerate(sorted(COLORS)):
            right[name] += target["confusion"][k][k]
            n[name] += sum(target["confusion"][k])
    page, card = done.report.read_text(), done.card.read_text()
    assert {c.name: (c.right, c.n) for c in done.summary.classes} == {c: (right[c], n[c]) for c in COLORS}
    for c in done.summary.classes:
        if c.taken_for:  # "cross, mostly taken for ring" would be wrong of a class that is mostly recognized
            assert f"{html.escape(c.name)} (mistakes: mostly {html.escape(c.taken_for)})" in page
    for name in COLORS:
        share = 100 * right[name] / n[name]
        shown = html.escape(name)
        assert re.search(rf"{re.escape(shown)}[^%]*?>{n[name]}</td>\s*<td[^>]*>{right[name]}</td>", page), name
        assert f"{shown}: ERM {share:.1f}%" in page  # the bars
        assert f"| {n[name]} | {right[name]} | {share:.0f} |" in card
        if f"Low-scoring class: {shown}" in page:
            assert f"Low-scoring class: {shown} ({share:.1f}%)" in page
            assert f"{name}: {right[name]} of {n[name]} correct" in " ".join(said)
