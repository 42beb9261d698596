"""The table of faults names tests that exist, and every test of the suite stands in it."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.fault_rows import FAULT_ROWS
from benchmarks.faults import count, outcomes

ROOT = Path(__file__).parents[2]


def names_in(file: Path) -> list[str]:
    names = re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    return [f"{file.relative_to(ROOT).as_posix()}::{name}" for name in names]


def test_every_named_test_exists() -> None:
    for row in FAULT_ROWS:
        for prefix in row.tests:
            file = ROOT / prefix.partition("::")[0]
            assert any(test.startswith(prefix) for test in names_in(file)), prefix


def test_every_test_of_the_suite_is_counted() -> None:
    prefixes = tuple(prefix for row in FAULT_ROWS for prefix in row.tests)
    own = [test for file in (ROOT / "tests" / "faults").glob("test_*.py") for test in names_in(file)]
    left = [test for test in own if not test.startswith(prefixes) and "test_fault_table" not in test]
    assert left in ([], ["tests/faults/test_checked_files.py::test_no_contradiction_in_real_results"])


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
