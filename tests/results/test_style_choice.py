"""The choice of NDCL-plus: it judges only complete rounds, and the published ones again without their images."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from longshift.io import read_toml
from results.style_choice import PLAIN, main, survivors, winner

BEST = "both, half the images"


@pytest.fixture
def choice(tmp_path: Path) -> Path:
    """A copy of the published rounds, far from the images."""
    return Path(shutil.copytree(PLAIN, tmp_path / "style-choice"))


def change(folder: Path, rows: pd.Series, column: str | None = None, value: str = "") -> None:
    """Remove rows of the runs, or set one of their columns."""
    frame = pd.read_parquet(folder / "runs.parquet")
    if column is None:
        frame = frame[~rows]
    else:
        frame.loc[rows, column] = value
    frame.to_parquet(folder / "runs.parquet")


def is_run(folder: Path, method: str, target: str = "sketch") -> pd.Series:
    frame = pd.read_parquet(folder / "runs.parquet")
    return (frame.method.str.removesuffix("+ema") == method) & (frame.target == target) & (frame.setting == "Duality")


def test_the_published_rounds_choose_the_same_again(choice: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = (choice / "finalists" / "sweep.toml").read_bytes()
    (choice / "finalists" / "sweep.toml").unlink()
    main([str(choice)])
    assert (choice / "finalists" / "sweep.toml").read_bytes() == published
    output = capsys.readouterr().out
    assert f"winner: {BEST}, " in output
    assert '"style": {"mix": "both", "share": 0.5}' in output
    order = [variant["name"] for variant in read_toml(PLAIN / "sweep.toml")["variants"]]
    shown = [line.split("  ")[0] for line in output.split("wrote")[0].splitlines()[2:]]
    assert [name for name in shown if name in order] == order


def test_rounds_that_lack_a_run_are_not_judged(choice: Path) -> None:
    before = (choice / "finalists" / "sweep.toml").read_bytes()
    change(choice, is_run(choice, BEST))
    with pytest.raises(SystemExit, match=f"Round 1 is not finished. Expected 8 .* got 7 of {BEST}. Finish them"):
        main([str(choice)])
    frame = pd.read_parquet(choice / "runs.parquet")
    change(choice, frame.method.str.startswith("no style"))
    with pytest.raises(SystemExit, match=f"got 0 of no style, 7 of {BEST}"):
        main([str(choice)])
    assert (choice / "finalists" / "sweep.toml").read_bytes() == before


def test_only_finished_runs_count(choice: Path) -> None:
    change(choice, is_run(choice, "amplitude"), "status", "failed")
    with pytest.raises(SystemExit, match="got 7 of amplitude"):
        main([str(choice)])


def test_an_unfinished_second_round_has_no_winner(choice: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(choice / "finalists", is_run(choice / "finalists", BEST))
    main([str(choice)])
    output = capsys.readouterr().out
    assert f"Round 2 is not finished. Expected 24 finished runs of each candidate, got 21 of {BEST}." in output
    assert "winner" not in output
    shutil.rmtree(choice / "finalists")
    main([str(choice)])  # not begun, and no images to list its runs
    assert "winner" not in capsys.readouterr().out
    assert (choice / "finalists" / "sweep.toml").exists()


def test_rules_by_hand() -> None:
    means = pd.Series({"simple": 80.0, "better": 81.0, "best": 81.1, "tied": 80.0, "low": 70.0})
    assert survivors(means) == ["better", "best"]
    assert survivors(means.drop("low")) == ["better", "best"]
    assert survivors(means.drop(["better", "low"])) == ["best"]
    assert survivors(means.drop("better")) == ["simple", "best"]  # of two equal ones, the simpler
    assert winner(means) == "better"
    assert winner(means.drop("better")) == "best"
