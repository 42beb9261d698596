"""The kinds of tables of a report: each is one registered function from runs to tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.registry import load_plugins
from longshift.report.missing_runs import Missing, find_missing
from longshift.report.table import Table
from longshift.results import Rule, choose


@dataclass(frozen=True, eq=False)
class ReportRuns:
    """The runs of a report and its options: what a kind of table is made from.

    Attributes:
        frame: All runs, also those without numbers, as `collect(path, missing=True)` returns them.
        rule: How the weights of each run and the best draw of each trial are chosen.
        against: The method that others are compared with; empty if none was named.
        folders: Where each run is kept, by fingerprint; empty for a table of runs.

    Example:
        >>> import pandas as pd
        >>> ReportRuns(pd.DataFrame({"method": ["erm"]}), against="erm").rule
        'validation'
    """

    frame: pd.DataFrame
    rule: Rule = "validation"
    against: str = ""
    folders: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def chosen(self) -> pd.DataFrame:
        """The best draw of each trial."""
        return choose(self.frame, self.rule)

    @cached_property
    def missing(self) -> Missing:
        """Runs without numbers."""
        return find_missing(self.frame)


Build = Callable[[ReportRuns], Sequence[Table]]


@dataclass(frozen=True)
class TableKind:
    """A kind of table; `why_not` returns why these runs have none, or an empty text."""

    name: str
    description: str
    build: Build
    title: str
    intro: str
    default: bool
    why_not: Callable[[ReportRuns], str]


_KINDS: dict[str, TableKind] = {}


def register_table(
    name: str,
    description: str,
    *,
    title: str = "",
    intro: str = "",
    default: bool = True,
    why_not: Callable[[ReportRuns], str] = lambda runs: "",
) -> Callable[[Build], Build]:
    """Register a function as a kind of table of `longshift report`.

    Args:
        name: What `--table` calls it.
        description: One line for `longshift report --help` and the documentation.
        title: The heading of its section on the page; by default the name.
        intro: A sentence below the heading.
        default: Whether it is among the tables that are made when no kind is named.
        why_not: A function that returns why these runs have no such table, or an empty text.

    Returns:
        A decorator that returns the function unchanged.

    Raises:
        UsageError: The name is taken.

    Example:
        >>> from longshift.report import Cell, Column, Row, Table, register_table
        >>> @register_table("runs-per-method", "number of finished runs of each method", default=False)
        ... def runs_per_method(runs):
        ...     counts = runs.frame["method"].value_counts()
        ...     rows = tuple(Row(m, m, "", (Cell(n, digits=0),)) for m, n in counts.items())
        ...     return [Table("runs", "runs-per-method", "Runs", (Column("runs"),), rows)]
    """

    def register(build: Build) -> Build:
        if name in _KINDS and _KINDS[name].build.__module__ != build.__module__:
            raise UsageError(f"expected a new name for a kind of table, got {name!r}, which is already registered")
        _KINDS[name] = TableKind(name, description, build, title or name.capitalize(), intro, default, why_not)
        return build

    return register


def table_kinds() -> tuple[TableKind, ...]:
    """Return all registered kinds, in the order of the report."""
    import longshift.report.report_tables  # noqa: F401  (registers the built-in kinds)

    load_plugins()
    return tuple(_KINDS.values())


def find_kinds(names: Sequence[str] = ()) -> list[TableKind]:
    """Return kinds by name; none given: those that are made by default."""
    known = {kind.name: kind for kind in table_kinds()}
    for name in names:
        if name not in known:
            raise UsageError(f"--table: {unknown_name('table', name, [*known, 'all'])}")
    return [known[name] for name in names] if names else [kind for kind in known.values() if kind.default]


def check_runs(frame: pd.DataFrame) -> None:
    """Raise an error if there is no finished run."""
    if frame.empty or not (frame["status"] == "done").any():
        states = ", ".join(f"{n} {s}" for s, n in frame["status"].value_counts().items()) or "none at all"
        raise LongshiftError(f"no finished run to report on; found {states}. See `longshift sweep status`.")
