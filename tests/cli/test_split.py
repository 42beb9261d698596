"""The split verbs, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from longshift.cli.main import app
from longshift.data import load_dataset
from longshift.errors import LongshiftError
from longshift.settings import load_split, make_split, setting_for
from tests.golden import check_golden


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["split", *map(str, arguments)])


def fails(*arguments: str | Path) -> LongshiftError:
    error = run(*arguments).exception
    assert isinstance(error, LongshiftError), error
    return error


def test_make_then_load(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    result = run("make", "digits", "--setting", "duality", "--target", "INK", "--split-seed", "3", "--out", path)
    assert result.exit_code == 0, result.output
    assert "target ink" in result.output
    manifest = load_dataset("digits")
    split = load_split(path, manifest)
    assert split.fingerprint == make_split(manifest, setting_for(manifest, "Duality", "ink"), 3).fingerprint


def test_show_gives_the_same_from_the_data_and_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    options = ("-s", "TotalHeavyTail", "-t", "ink", "--ratio", "10")
    run("make", "digits", *options, "-o", path)
    from_data, from_file = (json.loads(run("show", *a, "--json").stdout) for a in (("digits", *options), (path,)))
    assert from_data == from_file
    assert from_file["CR"] == 10.0
    assert set(from_file["ECR"]) == {"chalk", "neon", "stamp"}
    assert set(from_file["shots"].values()) == {"many", "medium", "few"}
    assert sum(from_file["sizes"].values()) == len(load_dataset("digits"))
    check_golden("split.txt", run("show", path).output)


@pytest.mark.slow
def test_plot_draws_one_target_all_targets_and_a_file(tmp_path: Path) -> None:
    run("make", "digits", "-s", "Duality", "-t", "ink", "-o", tmp_path / "s.json")
    sizes = []
    for number, arguments in enumerate(
        (("digits", "-s", "Duality", "-t", "ink"), ("digits", "-s", "Duality"), (tmp_path / "s.json",))
    ):
        out = tmp_path / f"{number}.png"
        result = run("plot", *arguments, "--out", out)
        assert result.exit_code == 0, result.output
        with Image.open(out) as image:
            sizes.append(image.size)
    assert sizes[0] == sizes[2] != sizes[1]


def test_shrink_and_explicit_counts(tmp_path: Path) -> None:
    counts = tmp_path / "mine.csv"
    counts.write_text("domain,class,count\n" + "".join(f"chalk,{k},{n}\n" for k, n in enumerate([44, 3, *[2] * 8])))
    arguments = ("show", "digits", "-s", counts, "-t", "ink")
    error = fails(*arguments)
    assert "44" in str(error)
    assert error.exit_code == 1
    document = json.loads(run(*arguments, "--shrink", "--json").stdout)
    assert document["sources"]["chalk"]["train"] == [40, 3, *[2] * 8]
    assert document["setting"] == "mine"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("show", "digits", "-t", "ink"), "--setting"),
        (("show", "digits", "-s", "Cross"), "--target"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], named: str) -> None:
    error = fails(*arguments)
    assert named in str(error)
    assert error.exit_code == 2


def test_a_saved_split_takes_no_setting(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    run("make", "digits", "-s", "Cross", "-t", "ink", "-o", path)
    assert "--setting" in str(fails("show", path, "-s", "Cross"))
    path.write_text("{}")
    assert "s.json" in str(fails("plot", path))


def test_an_infinite_ratio_is_null_in_json(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps({"chalk": {"0": 5, "1": 0}}))
    document = json.loads(run("show", "digits", "-s", tmp_path / "c.json", "-t", "ink", "--json").stdout)
    assert document["CR"] is None
    assert document["DR"] == 1.0
