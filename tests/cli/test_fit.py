"""`longshift fit` from the command line: a model folder, its warnings, and errors in the request."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import UsageError
from longshift.inference.loading import load_model
from longshift.inference.prediction import predict
from longshift.io import read_sealed, write_sealed
from tests.commands import Command
from tests.data.trees import make_tree
from tests.faults.tools import tiny_sites

runner = CliRunner()


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    y, d = np.arange(90) % 3, np.arange(90) // 3 % 3
    np.savez(tmp_path / "e.npz", x=rng.normal(size=(90, 4)) + 3 * np.eye(4)[y], label=y, domain=d)
    return tmp_path / "e.npz"


def test_fit_then_predict(vectors: Path, tmp_path: Path) -> None:
    arguments = ["fit", str(vectors), "--steps", "20", "--out", str(tmp_path / "fit"), "--device", "cpu", "-q"]
    shown = runner.invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    for name in ("Accuracy at a new site: ", "report.html", "MODEL_CARD.md", "final", "NEW_SITE.npz"):
        assert name in shown.output
    again = runner.invoke(app, [*arguments, "--json"])
    value = json.loads(again.stdout)
    assert value["method"] == "NDCL-plus"
    assert 0 <= value["expected_accuracy"]["low"] <= value["expected_accuracy"]["high"] <= 1
    assert runner.invoke(app, ["predict", str(tmp_path / "fit"), str(vectors), "-q"]).exit_code == 0


def test_the_choice_of_style_is_a_part_of_every_result(vectors: Path, tmp_path: Path) -> None:
    out, reason = tmp_path / "fit", "Style mixing, a part of this method, is off: vectors have no style."
    words = ["fit", str(vectors), "--steps", "5", "--target", "1", "--out", str(out), "--device", "cpu"]
    value = json.loads(Command(*words, "--json").communicate()[0])
    assert value["style_mixing"] == reason
    assert value["sentences"].count(reason) == 1
    kept = json.loads((out / "fit.json").read_text(encoding="utf-8"))
    assert (kept["style_mixing"], kept["sentences"]) == (reason, value["sentences"])
    for flags in (["--quiet"], []):
        assert " ".join(Command(*words, *flags).communicate()[0].split()).count(reason) == 1
    card = (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card.count(f"\n- {reason}\n") == 1
    method = card.split("## Method")[1].split("## Accuracy")[0]
    assert "style" not in method.replace(reason, "")  # nothing else is said of styles
    assert (
        "\n- NDCL-plus (a preset of NDCL, arXiv:2601.21999): train the network to respond to a class in the same way"
        in card
    )
    assert (out / "report.html").read_text(encoding="utf-8").count(reason) == 1


def test_a_comparison_is_kept_by_a_later_command(vectors: Path, tmp_path: Path) -> None:
    words = ["fit", str(vectors), "--steps", "5", "--out", str(tmp_path / "fit"), "--device", "cpu"]
    first = json.loads(runner.invoke(app, [*words, "--compare", "--json"]).stdout)
    assert set(first["sites"]) == {"NDCL-plus", "ERM", "BSoftmax"}
    assert json.loads(runner.invoke(app, [*words, "--json"]).stdout) == first


@pytest.fixture
def contrary(tmp_path: Path) -> Path:
    """What means one class at a site means another at the next: nothing that is learned carries over."""
    y, d = np.arange(90) % 3, np.arange(90) // 3 % 3
    x = np.random.default_rng(0).normal(0, 0.1, (90, 3)) + 3 * np.eye(3)[(y + d) % 3]
    np.savez(tmp_path / "e.npz", x=x, label=y, domain=d)
    return tmp_path / "e.npz"


@pytest.mark.slow
def test_a_model_no_better_than_guessing_says_so_everywhere(contrary: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit"
    arguments = ["fit", str(contrary), "--steps", "20", "--out", str(out), "--device", "cpu"]
    warning = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)["warning"]
    assert "averaged over classes, no better than guessing (33%): do not use this model." in warning
    assert warning in runner.invoke(app, arguments).stdout
    assert f"warning: {warning}" in runner.invoke(app, [*arguments, "-q"]).stderr
    assert warning in (out / "report.html").read_text(encoding="utf-8")
    assert f"\n**{warning}**\n" in (out / "MODEL_CARD.md").read_text(encoding="utf-8")

    with pytest.warns(UserWarning, match="do not use this model"):
        assert predict(out, [contrary], device="cpu").warning == warning
    assert load_model(out, device="cpu").warning == warning

    copy = shutil.copytree(out / "final", tmp_path / "copy")  # the model alone
    for model in (out, copy):
        ask = ["predict", str(model), str(contrary), "--device", "cpu", "-q"]
        shown = runner.invoke(app, ask)
        assert shown.exit_code == 0
        assert f"warning: {warning}\n" in shown.stderr  # another is about a class that takes over
        assert "do not use" not in shown.stdout
        asked = runner.invoke(app, [*ask, "--json"])
        assert f"warning: {warning}\n" in asked.stderr
        assert json.loads(asked.stdout)["warning"] == warning
        runner.invoke(app, [*ask, "--out", str(tmp_path / "p.json")])
        assert json.loads((tmp_path / "p.json").read_text())["warning"] == warning

    description = read_sealed(copy / "model.json")
    del description["unseen_sites"]  # as `longshift train` writes it
    write_sealed(copy / "model.json", description)
    earlier = runner.invoke(app, ["predict", str(copy), str(contrary), "--device", "cpu", "-q", "--json"])
    assert earlier.exit_code == 0
    assert "do not use this model" not in earlier.stderr
    assert "warning" not in json.loads(earlier.stdout)


@pytest.mark.slow
def test_averaged_weights_have_a_record_of_their_own(contrary: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit"
    arguments = ["fit", str(contrary), "--steps", "20", "--average", "ema", "--out", str(out), "--device", "cpu", "-q"]
    assert runner.invoke(app, arguments).exit_code == 0
    description = read_sealed(out / "final" / "model.json")
    assert set(description["unseen_sites"]) == {"selected", "averaged"}
    description["unseen_sites"]["averaged"]["balanced"] = 0.9
    write_sealed(out / "final" / "model.json", description)
    ask = ["predict", str(out), str(contrary), "--device", "cpu", "-q"]
    assert "do not use this model" in runner.invoke(app, ask).stderr
    averaged = runner.invoke(app, [*ask, "--averaged"])
    assert averaged.exit_code == 0
    assert "do not use this model" not in averaged.stderr


@pytest.mark.slow
def test_a_good_model_has_no_warning(vectors: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit"
    arguments = ["fit", str(vectors), "--steps", "20", "--out", str(out), "--device", "cpu", "-q"]
    assert json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)["warning"] == ""
    assert runner.invoke(app, arguments).stderr == ""
    assert "do not use" not in (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    elsewhere = shutil.copy(vectors, tmp_path / "elsewhere.npz")  # there is a warning for the file of the training
    asked = runner.invoke(app, ["predict", str(out), str(elsewhere), "--device", "cpu", "-q", "--json"])
    assert asked.stderr == ""
    assert "warning" not in json.loads(asked.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_an_incomplete_final_model_is_trained_again(vectors: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "fit"
    arguments = ["fit", str(vectors), "--steps", "5", "--target", "1", "--out", str(out), "--device", "cpu", "-q"]
    assert runner.invoke(app, arguments).exit_code == 0
    before = (out / "final" / name).read_bytes()
    (out / "final" / name).unlink()
    assert runner.invoke(app, arguments).exit_code == 0
    assert (out / "final" / name).read_bytes() == before


@pytest.mark.slow
def test_the_two_accuracies_at_known_sites_are_told_apart(contrary: Path, tmp_path: Path) -> None:
    """One is of the models with a site held out, the other of the final model."""
    arguments = ["fit", str(contrary), "--steps", "40", "--device", "cpu", "--json"]
    for flags, who in (
        ([], "The same sites reach "),
        (["--target", "1"], "The model without 1 reaches "),
    ):
        shown = runner.invoke(app, [*arguments, *flags, "--out", str(tmp_path / f"fit{len(flags)}")])
        said = json.loads(shown.stdout)["sentences"]
        (held_out,) = [text for text in said if "a new site costs about" in text]
        assert held_out.startswith(who)
        assert said[-1].startswith("The final model is trained on all 3 sites. ")
        assert said[-1].endswith("so this number does not predict the accuracy at a new site.")


@pytest.mark.slow
def test_predict_says_what_to_expect_at_the_site(tmp_path: Path) -> None:
    """Three sites along a line, and two new ones: one among them, and one far beyond."""
    rng = np.random.default_rng(0)

    def site(shift: float, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 3, n)
        return rng.normal(0, 1, (n, 6)) + 2 * np.eye(6)[y] + shift * np.eye(6)[3], y

    parts = {name: site(shift) for name, shift in (("a", 0.0), ("b", 1.0), ("c", 2.0))}
    data = tmp_path / "sites.npz"
    np.savez(
        data,
        x=np.concatenate([x for x, _ in parts.values()]),
        label=np.concatenate([y for _, y in parts.values()]),
        domain=np.repeat(list(parts), 120),
    )
    out = tmp_path / "fit"
    assert runner.invoke(app, ["fit", str(data), "--steps", "60", "--out", str(out), "--device", "cpu"]).exit_code == 0
    for name, shift in (("near", 1.0), ("far", 12.0)):
        x, y = site(shift, 300)
        np.savez(tmp_path / f"{name}.npz", x=x)
        ask = ["predict", str(out), str(tmp_path / f"{name}.npz"), "--device", "cpu", "-q"]
        shown = runner.invoke(app, [*ask, "--json"])
        value = json.loads(shown.stdout)["site"]
        truth = np.mean(
            [int(row["class"]) == k for row, k in zip(json.loads(shown.stdout)["predictions"], y, strict=True)]
        )
        assert value["farther_than_any_held_out"] is (name == "far")
        assert ("farther from the training sites than any held-out one" in shown.stderr) is (name == "far")
        page = tmp_path / f"{name}.html"
        said = runner.invoke(app, [*ask, "--page", str(page)]).stdout
        assert "Expected accuracy here: " in said
        assert ("The interval is wider because the site is farther" in said) is (name == "far")
        reach, otherwise = value["expected_accuracy"], value["otherwise"]
        shown_reach = f"{100 * reach['low']:.0f} to {100 * reach['high']:.0f}%"
        assert f"80% interval {shown_reach}" in said
        assert f"({shown_reach})" in page.read_text(encoding="utf-8")
        assert all(sentence in page.read_text(encoding="utf-8") for sentence in value["sentences"])
        assert (reach["low"] < otherwise["low"]) is bool(value["wider_because"]) is (name == "far")
        if name == "near":
            assert value["expected_accuracy"]["low"] <= truth <= value["expected_accuracy"]["high"]
            assert set(value["distances"]) == {"a", "b", "c"}
    few = tmp_path / "few.npz"
    np.savez(few, x=site(0.0, 10)[0])
    assert "site" not in json.loads(runner.invoke(app, ["predict", str(out), str(few), "-q", "--json"]).stdout)


@pytest.mark.slow
def test_the_next_command_can_be_pasted(vectors: Path, tmp_path: Path) -> None:
    out = tmp_path / "my fits" / "a b"
    arguments = ["fit", str(vectors), "--steps", "5", "--target", "1", "--out", str(out), "--device", "cpu", "-q"]
    assert f"longshift predict '{out}' NEW_SITE.npz" in runner.invoke(app, arguments).output


def test_one_site_is_told_which_folder_is_meant(tmp_path: Path) -> None:
    hospitals = make_tree(tmp_path / "hospitals", ("north", "south"), ("melanoma", "naevus"))
    failed = runner.invoke(app, ["fit", str(hospitals / "north"), "--out", str(tmp_path / "f"), "-q"])
    assert failed.exit_code == 1
    assert f"give the folder above it, {str(hospitals)!r}, which also has south" in str(failed.exception)


@pytest.mark.slow
def test_it_says_what_it_sees(vectors: Path, tmp_path: Path) -> None:
    arguments = ["fit", str(vectors), "--steps", "5", "--target", "1", "--out", str(tmp_path / "f"), "--device", "cpu"]
    shown = runner.invoke(app, arguments)
    assert "e has 90 vectors of 3 classes from 3 sites" in shown.output
    assert re.search(r" in (\d+ seconds?|less than a second)", shown.stderr)  # progress


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--average", "mean"], "expected 'none', 'ema' or 'swa'"),
        (["--minutes", "-1"], "expected a positive number"),
        (["--method", "ndlc"], "did you mean ndcl"),
        (["--target", "9"], "unknown site"),
        (["--set", "alpa=1"], "did you mean alpha"),
    ],
)
def test_mistakes(vectors: Path, tmp_path: Path, flags: list[str], message: str) -> None:
    failed = runner.invoke(app, ["fit", str(vectors), "--out", str(tmp_path / "f"), "-q", *flags])
    assert isinstance(failed.exception, UsageError)
    assert message in str(failed.exception)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/nowhere/sites"], "no file or folder 'nowhere' in /"),
        (["digits", "--minutes", "0"], "expected a positive number"),
    ],
)
def test_a_typo_is_told_before_heavy_packages_are_imported(words: list[str], message: str) -> None:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('torch' in sys.modules))\n"
        f"sys.argv = ['longshift', 'fit', *{words!r}]\n"
        "from longshift.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert message in done.stderr
    assert (done.returncode, done.stdout) == (2, "False\n")


def test_quiet_does_not_hide_warnings_about_the_data(tmp_path: Path) -> None:
    data = tiny_sites(tmp_path / "sites")
    (data / "south" / "red" / "0.png").write_bytes((data / "north" / "blue" / "0.png").read_bytes())
    flags = ["--method", "erm", "--steps", "2", "--set", "batch_size=2", "--device", "cpu", "-q"]
    done = runner.invoke(app, ["fit", str(data), *flags, "--out", str(tmp_path / "fit")])
    assert done.exit_code == 0, done.output
    assert "warning: " in done.stderr
    assert "two labels" in done.stderr or "the same" in done.stderr
