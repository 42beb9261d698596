"""The comparison of the paths of training: its differences and its file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch

from benchmarks.agreement import CPU, Outcome, main, term_difference, weight_difference
from benchmarks.common import write_rows
from longshift.training.run_config import Runtime


def test_differences_by_hand() -> None:
    start = torch.tensor([1.0, 1.0])
    one = Outcome([{"ce": 1.0}, {"ce": 3.0}], start, torch.tensor([4.0, 5.0]))  # moved by 5
    other = Outcome([{"ce": 1.1}, {"ce": 2.0}], start, torch.tensor([4.0, 5.5]))
    assert term_difference(one, other) == pytest.approx(1 / 4)
    assert weight_difference(one, other) == pytest.approx(0.1)
    assert term_difference(one, one) == weight_difference(one, one) == 0
    assert term_difference(one, Outcome([{"ce": 1.0}, {"kl": 3.0}], start, start)) == float("inf")
    for value in (float("nan"), float("inf")):
        broken = Outcome([{"ce": 1.0}, {"ce": value}], start, torch.tensor([4.0, value]))
        for pair in ((one, broken), (broken, one), (broken, broken)):
            assert term_difference(*pair) == weight_difference(*pair) == float("inf")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_other_paths_keep_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without training: the outcome of a path is given."""

    def outcome(method: str, steps: int, task: object, runtime: Runtime, style: object) -> Outcome:
        value = 1.0 if runtime == CPU else 1.2
        return Outcome([{"ce": value}], torch.zeros(1), torch.full((1,), value))

    monkeypatch.setattr("benchmarks.agreement.trained", outcome)
    out = tmp_path / "agreement.csv"
    arguments = ["--methods", "erm", "--style", "both", "--out", str(out)]
    main([*arguments, "--paths", "plain,graphs"])
    before = [{**row, "commit": "abc"} for row in _read(out)]
    write_rows(out, before)
    main([*arguments, "--paths", "compiled"])
    after = _read(out)
    assert len(after) == len(before) == 4
    for old, new in zip(before, after, strict=True):
        assert (old["plain"], old["weights_graphs"], old["compiled"]) == ("1.00e-01", "2.00e-01", "")
        assert new["compiled"] == "1.00e-01"
        assert new["commit"].startswith("abc + ")
        assert {**old, "compiled": "1.00e-01", "weights_compiled": "2.00e-01", "commit": new["commit"]} == new
    main([*arguments, "--paths", "compiled", "--steps", "7"])  # other runs: their numbers are not mixed
    assert {(row["steps"], row["plain"], row["compiled"]) for row in _read(out)} == {("7", "", "1.00e-01")}


def test_a_run_that_fails_is_an_error_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> Outcome:
        raise RuntimeError("no memory")

    monkeypatch.setattr("benchmarks.agreement.trained", fails)
    with pytest.raises(SystemExit) as caught:
        main(["--methods", "erm", "--out", str(tmp_path / "agreement.csv")])
    assert caught.value.code == 1
    (row,) = _read(tmp_path / "agreement.csv")
    assert row["error"].startswith("RuntimeError")
