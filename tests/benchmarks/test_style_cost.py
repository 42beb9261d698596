"""The cost of style mixing: what is timed, and the file."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks.style_cost import cost, main
from longshift.array_types import FloatArray

SMALL = ["--size", "16", "--batch", "2", "--steps", "1", "--warm", "1", "--device", "cpu"]


def test_numbers_by_hand() -> None:
    found = cost(np.array([2.0, 3.0, 9.0]), np.array([1.0, 2.0, 4.0]))
    assert (found["seconds_per_step"], found["seconds_low"], found["seconds_high"]) == ("3", "2", "9")
    assert found["seconds_without_style"] == "2"
    assert (found["ratio"], found["ratio_low"], found["ratio_high"]) == ("1.500", "1.500", "2.250")


def test_rows_with_another_share_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without timing: the seconds are given."""

    def seconds(method: str, styles: list[str], task: object, args: argparse.Namespace) -> dict[str, FloatArray]:
        return {style: np.array([1.0, 1.0, 1.0 + args.share * (style != "none")]) for style in styles}

    monkeypatch.setattr("benchmarks.style_cost.step_times", seconds)
    out = tmp_path / "cost.csv"
    chosen = [*SMALL, "--out", str(out), "--methods", "erm", "--styles", "both", "--compile", "off"]
    for share in ("0.5", "1", "0.5"):
        main([*chosen, "--share", share])
    with out.open(newline="") as file:
        rows = [(row["style"], row["share"], row["seconds_high"]) for row in csv.DictReader(file)]
    assert rows == [("none", "1.0", "1"), ("both", "1.0", "2"), ("none", "0.5", "1"), ("both", "0.5", "1.5")]
