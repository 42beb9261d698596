"""Try the faults and count how many were survived.

    python -m benchmarks.faults [--short] [--jobs 2] [--out results/faults.csv]

Runs the tests of `FAULT_ROWS` and writes one line per row: tried, survived, skipped. Some tests have more cases here
than in `make test`. --short leaves those and slow tests out and writes nothing. The exit code is 1 if a fault was not
survived.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import torch

from benchmarks.common import machine
from benchmarks.fault_rows import FAULT_ROWS, NO_FAULTS, FaultRow

OUT = Path(__file__).parents[1] / "results" / "faults.csv"
_WORD = "(PASSED|FAILED|ERROR|SKIPPED)"
_LINE = re.compile(rf"^(tests/\S+?\.py::.*?) {_WORD}\b")
_LINE_OF_SEVERAL = re.compile(rf"^\[gw\d+\] \[ *\d+%\] {_WORD} (tests/\S+?\.py::.*?) *$")  # processes


def outcomes(lines: Iterable[str]) -> dict[str, str]:
    """Test -> outcome, from the lines of `pytest -v`, also of several processes."""
    found: dict[str, str] = {}
    for line in lines:
        if one := _LINE.match(line):
            found[one[1]] = one[2]
        elif several := _LINE_OF_SEVERAL.match(line):
            found[several[2]] = several[1]
    return found


def count(row: FaultRow, found: dict[str, str]) -> dict[str, int]:
    """How many tests of a row ran and passed, and how many were skipped."""
    own = [
        outcome
        for test, outcome in found.items()
        if test.startswith(row.tests) and test.partition("[")[0] not in NO_FAULTS
    ]
    return {
        "tried": len(own) - own.count("SKIPPED"),
        "survived": own.count("PASSED"),
        "skipped": own.count("SKIPPED"),
    }


def write(found: dict[str, str], out: Path) -> None:
    """Write the counts with the machine and the commit."""
    about = machine(torch.device("cpu"))
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["fault", "tried", "survived", "skipped", *about], lineterminator="\n")
        writer.writeheader()
        for row in FAULT_ROWS:
            writer.writerow({"fault": row.fault, **count(row, found), **about})


def main() -> None:
    """Run, count, write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    files = sorted({test.partition("::")[0] for row in FAULT_ROWS for test in row.tests})
    command = [sys.executable, "-m", "pytest", "-v", "--no-header", *files]
    command += ["-m", "not slow"] if options.short else []
    command += ["-n", str(options.jobs), "--dist", "worksteal"] if options.jobs > 1 else []
    environment = {**os.environ, **({} if options.short else {"LONGSHIFT_FAULTS": "long"})}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        sys.stdout.write(line)
        lines.append(line)
    process.wait()
    found = outcomes(lines)
    for row in FAULT_ROWS:
        print("{survived} of {tried}: ".format(**count(row, found)) + row.fault)
    if not options.short:
        write(found, options.out)
    if process.returncode:
        sys.exit(1)


if __name__ == "__main__":
    main()
