"""`longshift.fit` from a folder of images to a model, its page and its card."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from longshift.data import load_dataset
from longshift.errors import LongshiftError, UsageError
from longshift.files import read_json
from longshift.fitting import FitResult, fit
from longshift.fitting.data_summary import summarize_data
from longshift.fitting.fit_run import folder_name
from longshift.fitting.fit_summary import cost_of_a_new_site, hardest, name_weak, unlearned
from longshift.fitting.network_choice import choose_network
from longshift.fitting.plan import longest_steps, pace_within, usual_steps
from longshift.fitting.site_scores import (
    ClassScore,
    SiteScore,
    accuracy_without,
    class_scores,
    expect,
    same_site_gaps,
    verdict,
    weak_classes,
)
from longshift.inference.evaluate_run import evaluate
from longshift.inference.prediction import predict
from longshift.training.interrupt import Interrupted
from longshift.training.run_config import RunConfig
from tests.report.chromium import needs_browser, open_page
from tests.training.runs import CPU

COLORS = {"red": (200, 40, 40), "green <b>": (40, 200, 40), "blue|x": (40, 40, 200)}


def sites(root: Path, counts: dict[str, dict[str, int]]) -> Path:
    """Colored noise: the class is the color, each site adds a tint of its own."""
    rng = np.random.default_rng(0)
    for number, (site, row) in enumerate(counts.items()):
        for name, n in row.items():
            (root / site / name).mkdir(parents=True, exist_ok=True)
            for i in range(n):
                color = np.array(COLORS[name]) + 15 * number
                pixels = np.clip(color + rng.normal(0, 30, (20, 24, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(root / site / name / f"{i}.png")
    return root


COUNTS = {
    "north": {"red": 20, "green <b>": 6, "blue|x": 3},
    "south": {"red": 8, "green <b>": 10, "blue|x": 3},
    "west": {"red": 9, "green <b>": 1, "blue|x": 12},
}
QUICK: dict[str, Any] = {"steps": 12, "method": "erm", "hparams": {"batch_size": 4, "lr": 5e-3}, "runtime": CPU}


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


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # no test waits for a host


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
    with pytest.raises(LongshiftError, match=r"target set of .* is empty: this model was trained on all sites"):
        evaluate(tmp_path / "fit", ["target"], runtime=CPU)
    found = predict(done.folder, [data], device="cpu")
    assert len(found.rows) == 72
    assert np.mean([row.label == Path(row.path).parts[-2] for row in found.rows]) > 0.8
    page, card = done.report.read_text(), done.card.read_text()
    for text in ("green &lt;b&gt;", done.summary.worst_site.site, "Confusion matrix", "Confusion matrix of north"):
        assert text in page
    lead = page.split('id="lead"')[1].split('id="summary"')[0]  # the chart comes before any sentence
    for score in done.summary.own:
        assert f"{score.site}, while held out: {100 * score.accuracy:.1f} %" in lead
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
    assert "probability 80 %" not in card


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


def test_what_it_says_of_the_data(tmp_path: Path) -> None:
    counts = {
        "a": {"red": 40, "green <b>": 2},
        "b": {"red": 5, "green <b>": 30, "blue|x": 6},
        "A": {"red": 9, "green <b>": 9},
    }
    root = sites(tmp_path / "d", counts)
    shutil.copy(root / "a" / "red" / "0.png", root / "b" / "red" / "twin.png")
    look = summarize_data(load_dataset(root))
    text = " ".join([*look.sentences(), *look.warnings()])
    assert look.ratio == pytest.approx(55 / 6)
    assert "102 images of 3 classes from 3 sites (A 18, a 42, b 42)" in text
    assert "The site a has no images of blue|x." in text
    assert "Only one site has the class blue|x (b). While that site is held out, it cannot be learned" in text
    assert "a ratio of 9.2 to 1." in text
    assert "green <b> at a (2)" in text
    assert "1 image is the same at two sites (for example b/red/twin.png)" in text
    assert "Two spellings of one name? differ only by case: 'A', 'a'" in text
    # a: 40/42 red; b: 6/42 red, so 34/42 of a would have to change class
    assert "81 % of the images of a would have to change class to match b" in text


def test_pictures_that_are_left_out_or_nearly_black(tmp_path: Path) -> None:
    root = sites(tmp_path / "d", {"a": {"red": 3, "green <b>": 3}, "b": {"red": 3, "green <b>": 3}})
    Image.fromarray(np.full((9, 9), 4000, np.uint16)).save(root / "a" / "red" / "scan.png")
    (root / "b" / "red" / "phone.heic").write_bytes(b"x")
    text = " ".join(summarize_data(load_dataset(root)).warnings())
    assert "1 picture in an unsupported format is left out (for example b/red/phone.heic)" in text
    assert "1 image is nearly black (for example a/red/scan.png: 16-bit values up to 4000 of 65535" in text


def test_data_that_cannot_be_fitted(tmp_path: Path) -> None:
    one = sites(tmp_path / "one", {"a": {"red": 3, "green <b>": 3}})
    (one / "a" / "red" / "1.png").write_bytes(b"")  # not opened: the counts alone rule it out
    with pytest.raises(LongshiftError, match=r"at least 2 sites .* got 1 \(a\).*cameras, wards or years"):
        summarize_data(load_dataset(one))
    (tmp_path / "m.csv").write_text("path,label,domain\n1.png,x,one\n2.png,y,one\n")
    with pytest.raises(LongshiftError, match=rf"longshift data inspect {tmp_path / 'm.csv'}$"):
        summarize_data(load_dataset(tmp_path / "m.csv"))
    apart = sites(tmp_path / "apart", {"a": {"red": 3}, "b": {"green <b>": 3}})
    with pytest.raises(LongshiftError, match=r"Expected classes that several sites .* but no class is in two of"):
        summarize_data(load_dataset(apart))
    single = sites(tmp_path / "single", {"a": {"red": 1, "green <b>": 1}, "b": {"red": 1, "green <b>": 1}})
    with pytest.raises(LongshiftError, match="Expected 2 or more images of some class at one site"):
        summarize_data(load_dataset(single))
    broken = sites(tmp_path / "broken", {"a": {"red": 3, "green <b>": 3}, "b": {"red": 3, "green <b>": 3}})
    (broken / "b" / "red" / "1.png").write_bytes(b"")
    with pytest.raises(LongshiftError, match=r"1 of the 12 images cannot be read:\n  - b/red/1.png: zero-byte"):
        fit(broken, out=tmp_path / "fit", **QUICK)


def test_which_network(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = load_dataset(data)
    values, reason = choose_network(manifest, gpu=False)
    assert values == {"backbone": "small_conv", "image_size": 20, "trainable": "all"}
    assert "20x20" in reason
    values, _ = choose_network(manifest, gpu=True, backbone="resnet18", pretrained=True)
    assert values == {"backbone": "resnet18", "pretrained": True, "image_size": 224, "trainable": "all"}
    values, reason = choose_network(manifest, gpu=True, backbone="resnet18")
    assert values["pretrained"] is False
    assert "starts from random weights, on 224x224 pixels. Pretrained weights cannot be downloaded" in reason
    monkeypatch.setattr("longshift.fitting.network_choice.weights_available", lambda name: name == "resnet18")
    assert choose_network(manifest, gpu=True, backbone="resnet18")[0]["pretrained"] is True
    assert choose_network(manifest, gpu=True, backbone="resnet18", pretrained=False)[0]["pretrained"] is False
    with pytest.raises(LongshiftError, match="no weights file"):
        choose_network(manifest, gpu=False, weights="absent.safetensors")


def test_weights_name_their_network(data: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    manifest = load_dataset(data)
    save_file({"x": torch.zeros(1)}, tmp_path / "named.safetensors", {"arch": "timm mobilenetv2_100 pad_type=same"})
    save_file({"x": torch.zeros(1)}, tmp_path / "silent.safetensors")
    values, _ = choose_network(manifest, gpu=False, weights=str(tmp_path / "named.safetensors"))
    assert values["backbone"] == "mobilenetv2_100"
    with pytest.raises(UsageError, match="Add --backbone"):
        choose_network(manifest, gpu=False, weights=str(tmp_path / "silent.safetensors"))
    for name in ("mobilenetv2_050", "small_conv"):  # a file of published weights often has nothing but its name
        (tmp_path / "silent.safetensors").rename(tmp_path / f"{name}.safetensors")
        values, _ = choose_network(manifest, gpu=False, weights=str(tmp_path / f"{name}.safetensors"))
        assert values["backbone"] == name
        (tmp_path / f"{name}.safetensors").rename(tmp_path / "silent.safetensors")


def test_how_long() -> None:
    config = RunConfig(target="", backbone="small_conv")
    assert usual_steps(10**6, 4, config) == 1500
    assert usual_steps(100, 4, config) == 300
    assert usual_steps(6400, 4, config) == 1000  # 40 passes of 6400 in batches of 4 x 64
    assert longest_steps(300, config) == 900
    assert longest_steps(1500, config) == 3000
    assert longest_steps(300, RunConfig(target="", backbone="mlp")) == 900
    assert longest_steps(9000, config) == 9000  # never less than the usual


def test_what_becomes_of_the_minutes() -> None:
    """120 s, three quarters of it for steps of 0.01 s in 5 runs: 1800."""
    short = pace_within(2, 5, 0.01, usual=2000, longest=6000)
    assert short.steps == 1800
    assert "fewer than the usual 2000. More time may give a better model" in short.words
    between = pace_within(2, 5, 0.01, usual=700, longest=2100)
    assert between.steps == 1800
    assert between.words == (
        "There is time for 1800 steps in each of the 5 runs within 2 minutes; the usual number for this data is 700."
    )
    ample = pace_within(60, 5, 0.01, usual=300, longest=900)
    assert ample.steps == 900
    # 900 steps x 5 runs x 0.01 s = 45 s, which is three quarters of a minute
    assert "instead of the usual 300" in ample.words
    assert ample.words.endswith("about 1 minute; the limit is 1 hour.")
    asked = pace_within(60, 5, 0.01, usual=300, longest=300, asked=True)
    assert (
        asked.words
        == "300 steps in each of the 5 runs, as requested. This takes about 20 seconds; the limit is 1 hour."
    )
    assert "fewer than the requested 9000" in pace_within(2, 5, 0.01, 9000, 9000, asked=True).words
    with pytest.raises(
        LongshiftError,
        match=r"at least 20 steps in each of the 5 runs, got 1 minute, enough for 18 steps\. .* \(--minutes 1\.2\)",
    ):
        pace_within(1, 5, 0.5, 300, 900)


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


def test_a_network_made_for_one_size_gets_it(data: Path) -> None:
    manifest = load_dataset(data)
    assert choose_network(manifest, gpu=False, backbone="vit_tiny_patch16_224")[0]["image_size"] == 224
    assert choose_network(manifest, gpu=False, backbone="resnet18")[0]["image_size"] == 128
    assert choose_network(manifest, gpu=False, backbone="small_conv")[0]["image_size"] == 20


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


def score(site: str, accuracy: float, balanced: float, confusion: list[list[int]] | None = None) -> SiteScore:
    return SiteScore(site, 50, accuracy, balanced, None, {}, tuple(map(tuple, confusion or [[1]])))


def test_with_few_sites_no_number_is_expected() -> None:
    found = expect([0.92, 0.9], [500, 500])
    assert not found.enough
    assert found.low < 0.5
    assert found.words() == (
        "anywhere from 43 to 99 % (80 % interval; 90 %, 92 % at the 2 held-out sites, too few to expect a number)"
    )
    assert found.to_json()["enough_sites"] is False
    one = expect([0.9], [50])
    assert one.words() == "unknown (90 % at the only held-out site, which says little about another)"
    assert one.meaning() == ""
    assert found.meaning().endswith("; with so few sites it rests mostly on how sites of other data differ.")
    assert one.high - one.low > 0.9


def test_with_five_sites_there_is_a_number_and_an_interval() -> None:
    found = expect([0.7, 0.8, 0.85, 0.6, 0.75], [100] * 5)
    assert found.enough
    assert found.words() == "about 74 % (80 % interval 48 to 90 %, from 5 held-out sites)"
    assert found.meaning() == (
        "The interval contains the accuracy at one more site with probability 80 %, if that site differs from these as "
        "they differ from each other."
    )


def test_seen_and_unseen_accuracy_are_those_of_the_same_sites() -> None:
    rows = [
        SiteScore("a", 50, 0.6, 0, 0.9, {}, ((1,),), {"b": 0.8, "c": 1.0}),
        SiteScore("b", 50, 0.7, 0, 0.9, {}, ((1,),), {"a": 0.9, "c": None}),
        SiteScore("c", 50, 0.8, 0, 0.9, {}, ((1,),), {"a": 0.7, "b": 0.9}),
    ]
    assert same_site_gaps(rows) == {"a": (0.8, 0.6), "b": (pytest.approx(0.85), 0.7), "c": (1.0, 0.8)}
    assert (
        "reach 88 % on average while a model knows them and 70 % while held out: a new site costs about 18 points"
        in (cost_of_a_new_site(rows))
    )
    assert cost_of_a_new_site(rows[:1]).startswith("The model without a reaches 90 % on other samples of its")


def test_classes() -> None:
    rows = [score("a", 0, 0, [[8, 2, 0], [0, 0, 0], [3, 1, 1]]), score("b", 0, 0, [[9, 1, 0], [0, 0, 0], [2, 2, 1]])]
    found = class_scores(("x", "y", "z"), rows)
    assert [(c.name, c.n, c.recall, c.taken_for) for c in found] == [("z", 10, 0.2, "x"), ("x", 20, 0.85, "y")]
    assert found[0].words() == "2 of 10 correct (20 %), most often misclassified as x"
    assert [c.name for c in weak_classes(found)] == ["z"]
    assert weak_classes(found[1:]) == []  # the only class is the best one


def test_a_class_of_one_site_is_told_apart_from_a_weak_one() -> None:
    rows = [score("a", 0, 0, [[8, 2, 0], [1, 1, 0], [3, 2, 0]]), score("b", 0, 0, [[9, 1, 0], [0, 0, 0], [0, 0, 0]])]
    found = class_scores(("x", "y", "z"), rows, {"z": "a"})
    assert [(c.name, c.alone) for c in found] == [("z", "a"), ("y", ""), ("x", "")]
    (weak,) = weak_classes(found)
    assert weak.words() == (
        "1 of 2 correct (50 %; within noise: 16 to 84 % with this number of samples), most often misclassified as x"
    )
    assert accuracy_without(("x", "y", "z"), rows, {"z"}) == pytest.approx((9 / 12 + 9 / 10) / 2)


def test_many_weak_classes_are_counted() -> None:
    names = [f"class {k}" for k in range(8)]
    confusion = np.diag([9] * 7 + [0])
    confusion[:7] = np.roll(confusion[:7], 1, axis=1)  # all wrong but for the last
    confusion[7, 7] = 9
    found = weak_classes(class_scores(names, [score("a", 0, 0, confusion.tolist())]))
    assert [weak.name for weak in found] == names[:7]
    assert name_weak(found).endswith("class 4: 0 of 9 correct (0 %), most often misclassified as class 5; and 2 more.")
    assert name_weak(found[:1]).startswith("Lowest-scoring class over all held-out sites: class 0: ")


def test_many_classes_of_one_site_are_counted() -> None:
    alone = [ClassScore(f"class {k}", 2, 0.0, "", "north") for k in range(40)]
    assert "class 4 (only at north) and 35 more. No training samples of them were left" in unlearned(alone, 0.5)
    assert "Their 80 samples count as misclassified above; without them, expect 50 % accuracy. The" in unlearned(
        alone, 0.5
    )


def test_a_site_that_has_nothing_but_classes_of_its_own() -> None:
    rows = [score("a", 0, 0, [[0, 0], [3, 0]])]
    assert accuracy_without(("x", "y"), rows, {"y"}) is None
    assert "Its 3 samples count as misclassified above. The final model" in unlearned(
        class_scores(("x", "y"), rows, {"y": "a"}), None
    )


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


def test_no_site_is_the_hardest_if_all_are_alike() -> None:
    rows = [score("a", 0.8, 0, [[8, 2], [2, 8]]), score("b", 0.8, 0, [[8, 2], [2, 8]])]
    assert hardest(rows) == "All sites were equally hard: 80 % accuracy when held out."
    rows[1] = score("b", 0.9, 0, [[9, 1], [1, 9]])
    assert hardest(rows) == "The hardest site was a: 80 % accuracy when held out."


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
        assert f"{shown}: ERM {share:.1f} %" in page  # the bars
        assert f"| {n[name]} | {right[name]} | {share:.0f} |" in card
        if f"Low-scoring class: {shown}" in page:
            assert f"Low-scoring class: {shown} ({share:.1f} %)" in page
            assert f"{name}: {right[name]} of {n[name]} correct" in " ".join(said)


@pytest.mark.parametrize(
    ("own", "other", "start", "part"),
    [
        (
            (0.8, 0.7, 0.9),
            (0.6, 0.6, 0.8),
            "NDCL is better here: 80.0 % against 66.7 % for ERM",
            "better at 3 of 3 sites",
        ),
        ((0.5, 0.5, 0.5), (0.6, 0.6, 0.8), "NDCL is worse here", "better at 0 of 3"),
        (
            (0.5, 0.5, 0.5),
            (0.6, 0.6, 0.8),
            "NDCL is worse here",
            "fit again with --method erm and another --out",
        ),
        ((0.5, 0.5), (0.6, 0.6), "NDCL is worse here", "With so few sites, chance cannot be ruled out."),
        ((0.5, 0.5), (0.6, 0.6), "NDCL is worse", "Accuracy over samples: NDCL 60.0 %, ERM 70.0 %. To use ERM"),
        ((0.601, 0.6), (0.6, 0.602), "NDCL makes no reliable difference", "The simpler method is enough"),
        ((0.9, 0.3), (0.5, 0.6), "NDCL makes no reliable difference", "better at 1 of 2"),
    ],
)
def test_verdicts(own: tuple[float, ...], other: tuple[float, ...], start: str, part: str) -> None:
    scores = {
        "NDCL": [score(str(i), v + 0.1, v) for i, v in enumerate(own)],
        "ERM": [score(str(i), v + 0.1, v) for i, v in enumerate(other)],
        "BSoftmax": [score(str(i), 0, 0.1) for i, _ in enumerate(other)],
    }
    said = verdict("NDCL", scores)
    assert said.startswith(start)
    assert part in said
    assert verdict("NDCL", {"NDCL": scores["NDCL"]}) == ""
