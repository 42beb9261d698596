"""Averaged weights have a row of their own in every table."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.report.kinds import build_tables
from longshift.report.titles import family, method_title, order_methods
from longshift.results import read_runs, write_runs
from longshift.sweep.collecting import collect
from tests.training.small_runs import config, train


@pytest.mark.slow
def test_a_run_with_averaging_is_two_rows(tmp_path: Path) -> None:
    result = train(config(average="ema"), tmp_path / "runs" / "one")
    train(config(method="bsoftmax"), tmp_path / "runs" / "two")
    frame = collect(tmp_path / "runs").set_index("method")
    assert list(frame.index) == ["bsoftmax", "erm", "erm+ema"]
    for name, part in (("erm", "selected"), ("erm+ema", "averaged")):
        assert frame.loc[name, "target_accuracy"] == result[part]["target"]["accuracy"]
        assert frame.loc[name, "selected_step"] == result[part]["step"]
    assert frame["fingerprint"]["erm"] == frame["fingerprint"]["erm+ema"]
    write_runs(collect(tmp_path / "runs"), tmp_path / "runs.csv")
    assert list(read_runs(tmp_path / "runs.csv")["method"]) == ["bsoftmax", "erm", "erm+ema"]
    (table, *_) = build_tables(collect(tmp_path / "runs"), ("average",))
    assert [row.title for row in table.rows] == ["ERM", "ERM + EMA", "BSoftmax"]


def test_names_of_averaged_methods() -> None:
    assert method_title("ndcl+swa") == "NDCL + SWA"
    assert family("ndcl+swa") == family("ndcl")
    assert order_methods(["ndcl+ema", "mine", "ndcl", "erm"]) == ["erm", "ndcl", "ndcl+ema", "mine"]
