"""The table of runs: its schema, its files, and columns from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from longshift.errors import LongshiftError, UsageError
from longshift.sweep import (
    BadResult,
    as_frame,
    collect,
    column_names,
    columns,
    read_row,
    read_runs,
    register_column,
    run_columns,
    unknown_columns,
    with_average,
    write_runs,
)
from longshift.sweep.columns import join_average
from tests.report.fake import rows
from tests.training.small_runs import config, train


@pytest.fixture
def odd() -> list[dict[str, Any]]:
    """Rows with names that look like numbers or missing values, and numbers with many digits."""
    made = list(rows())
    made[0].update(target="NA", dataset="007", ratio=0.1 + 0.2, selected_step=None, hparams='{"lr": 1e-05, "s": "a,b"}')
    return made


def test_the_same_runs_give_the_same_bytes_and_numbers(odd: list[dict[str, Any]], tmp_path: Path) -> None:
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    frame = as_frame(odd)
    write_runs(frame, one)
    write_runs(as_frame(odd[::-1]), two)
    assert one.read_bytes() == two.read_bytes()
    pd.testing.assert_frame_equal(collect(one), frame, check_exact=True)
    write_runs(read_runs(one), two)
    assert one.read_bytes() == two.read_bytes()


def test_columns_that_may_be_absent(tmp_path: Path) -> None:
    frame, path = as_frame(rows()), tmp_path / "runs.parquet"
    write_runs(frame.drop(columns=["seconds_total", "memory_gib"]).assign(remark="mine"), path)
    assert unknown_columns(path) == ["remark"]
    found = read_runs(path)
    assert list(found) == list(column_names())
    assert found["target_accuracy"].equals(frame["target_accuracy"])
    assert found[["seconds_total", "memory_gib"]].isna().all(axis=None)
    write_runs(frame.drop(columns="steps"), path)  # as if the column were newer than the table
    assert read_runs(path)["steps"].isna().all()
    write_runs(frame.drop(columns="status"), path)
    with pytest.raises(LongshiftError, match="status"):
        read_runs(path)


def test_pandas_reads_what_was_written(odd: list[dict[str, Any]], tmp_path: Path) -> None:
    frame = as_frame(odd)
    write_runs(frame, tmp_path / "runs.parquet")
    plain = pd.read_parquet(tmp_path / "runs.parquet")
    assert list(plain) == list(frame)
    assert plain["target_accuracy"].tolist() == frame["target_accuracy"].tolist()
    assert plain["trial"].dtype == "int64"
    assert plain["benchmark"].isna().tolist() == (frame["benchmark"] == "").tolist()
    write_runs(frame, tmp_path / "runs.csv")
    text = pd.read_csv(tmp_path / "runs.csv", keep_default_na=False, dtype={"dataset": str})
    assert text["dataset"].tolist() == frame["dataset"].tolist()
    assert text["target_accuracy"].tolist() == frame["target_accuracy"].tolist()


def test_what_is_not_a_table_of_runs_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(LongshiftError, match="fingerprint"):
        collect(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("a")
    with pytest.raises(UsageError, match=r"\*\.parquet"):
        collect(tmp_path / "a.csv")
    with pytest.raises(UsageError, match=r"\*\.csv"):
        write_runs(as_frame(rows()), tmp_path / "a.txt")
    with pytest.raises(UsageError, match="nothing"):
        collect(tmp_path / "nothing")
    with pytest.raises(LongshiftError, match=r"result\.json"):
        collect(tmp_path)


def test_every_column_is_declared_once() -> None:
    names = column_names()
    assert len(set(names)) == len(names)
    assert all(column.meaning for column in run_columns())


def test_a_column_from_outside_is_in_rows_frames_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_plugins", {})
    register_column("lr", "number", "learning rate", lambda result: result["hparams"]["lr"])
    register_column("evaluations", "integer", "number of evaluations", lambda result: len(result["evaluations"]))
    result = train(config(average="ema"), tmp_path / "runs" / "one")
    frame = collect(tmp_path / "runs")
    assert list(frame)[-2:] == ["lr", "evaluations"]
    assert frame["lr"].tolist() == [result["hparams"]["lr"]] * 2
    assert (frame["evaluations"] > 0).all()
    write_runs(frame, tmp_path / "runs.parquet")
    pd.testing.assert_frame_equal(read_runs(tmp_path / "runs.parquet"), frame, check_exact=True)
    del columns._plugins["lr"]
    assert unknown_columns(tmp_path / "runs.parquet") == ["lr"]
    assert "lr" not in read_runs(tmp_path / "runs.parquet")
    old = as_frame(rows())
    write_runs(old.drop(columns="evaluations"), tmp_path / "old.parquet")
    assert read_runs(tmp_path / "old.parquet")["evaluations"].isna().all()


def test_a_column_from_outside_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_plugins", {})
    with pytest.raises(UsageError, match="steps"):
        register_column("steps", "integer", "steps", lambda result: 1)
    with pytest.raises(UsageError, match="Learning rate"):
        register_column("Learning rate", "number", "learning rate", lambda result: 1.0)
    result = train(config(), tmp_path / "one")
    register_column("bad", "number", "not a number", lambda result: "x")
    with pytest.raises(LongshiftError, match="bad"):
        read_row(tmp_path / "one", result["fingerprint"])


def test_a_curve_has_four_digits() -> None:
    (column,) = (c for c in run_columns() if c.name == "validation_curve")
    lines = [{"step": 300, "validation": {"accuracy": 1 / 3}}, {"step": 600, "validation": {"accuracy": 0.7000049}}]
    assert column.value({"evaluations": lines}) == "[[300, 0.3333], [600, 0.7]]"
    assert column.value({"evaluations": []}) == ""
    with pytest.raises(BadResult, match="validation_curve"):
        column.value({"evaluations": [{"step": 1, "validation": {"accuracy": float("nan")}}]})


def test_an_average_has_its_own_values() -> None:
    row = {"method": "erm", "setting": "Duality", "target_few": 0.1, "averaged": {"kind": "swa", "target_few": 0.2}}
    made = list(with_average(row))
    assert made == [
        {"method": "erm", "setting": "Duality", "target_few": 0.1},
        {"method": "erm+swa", "setting": "Duality", "target_few": 0.2},
    ]
    assert join_average(made) == join_average(made[::-1]) == row
