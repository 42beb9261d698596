"""The list of mutations fits the code: each old text occurs once, and each named test exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.fault_mutations import MUTATIONS, Mutation, mutated, survived
from tests.faults.test_fault_table import ROOT, names_in

SOURCE = ROOT / "src" / "longshift"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: f"{one.file} {one.old.strip()[:40]}")
def test_a_mutation_fits_the_code(mutation: Mutation) -> None:
    text = (SOURCE / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, "change benchmarks/fault_mutations.py together with this line"
    ast.parse(text.replace(mutation.old, mutation.new))
    for test in mutation.tests:
        name = test.partition("[")[0]
        assert name in names_in(ROOT / name.partition("::")[0]), test


def test_every_promise_has_mutations() -> None:
    assert len({mutation.promise for mutation in MUTATIONS}) == 9


def test_only_a_failure_counts(tmp_path: Path) -> None:
    mutation = MUTATIONS[0]._replace(file="a.py", old="b", new="c", tests=("t.py::x", "t.py::y"))
    assert survived(mutation, {"t.py::x[1]": "PASSED", "t.py::x[2]": "FAILED", "t.py::y": "ERROR"}) == ["t.py::y"]
    assert survived(mutation, {}) == ["t.py::x", "t.py::y"]
    file = tmp_path / "src" / "longshift" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text("a b\n")
    assert mutated(tmp_path, mutation).read_text() == "a c\n"
    with pytest.raises(AssertionError):
        mutated(tmp_path, mutation)
