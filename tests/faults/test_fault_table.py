"""The table of faults names tests that exist, and every test of the suite stands in it."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.fault_rows import FAULT_ROWS, NO_FAULTS
from benchmarks.faults import count, outcomes
from tests.faults.bad_inputs import CASES

ROOT = Path(__file__).parents[2]
ABOUT_THE_SUITE = {Path(__file__), Path(__file__).with_name("test_fault_mutations.py")}


def names_in(file: Path) -> list[str]:
    names = re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    return [f"{file.relative_to(ROOT).as_posix()}::{name}" for name in names]


def test_every_named_test_exists() -> None:
    for row in FAULT_ROWS:
        for prefix in row.tests:
            file = ROOT / prefix.partition("::")[0]
            assert any(test.startswith(prefix) for test in names_in(file)), prefix


def test_every_test_of_the_suite_is_counted_in_one_row() -> None:
    files = {ROOT / prefix.partition("::")[0] for row in FAULT_ROWS for prefix in row.tests}
    files |= set((ROOT / "tests" / "faults").glob("test_*.py")) - ABOUT_THE_SUITE
    own = [test for file in files for test in names_in(file)]
    assert set(NO_FAULTS) <= set(own)
    for test in own:
        rows = [row for row in FAULT_ROWS if count(row, {test: "PASSED"})["tried"]]
        inside = test.startswith("tests/faults/") and test not in NO_FAULTS
        assert len(rows) == 1 if inside else len(rows) <= 1, test


def test_there_are_many_kinds_of_bad_input() -> None:
    assert len(CASES) >= 60


def test_the_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "explanation" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", page)
    assert len(named) > 20
    for name in named:
        file = ROOT / name.partition("::")[0]
        assert file.exists(), name
        assert "::" not in name or name in names_in(file), name


def test_outcomes_are_counted() -> None:
    row = FAULT_ROWS[0]
    lines = [f"{row.tests[0]}a PASSED [ 1%]", f"{row.tests[0]}b[x y] FAILED", f"{row.tests[0]}c SKIPPED (no)", "noise"]
    lines += [f"[gw1] [  7%] PASSED {row.tests[0]}d[x y] "]
    assert count(row, outcomes(lines)) == {"tried": 3, "survived": 2, "skipped": 1}
