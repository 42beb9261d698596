"""What a recipe is: a name, the result of the paper it stands for, the runs it needs, and how to make it from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import pandas as pd

from longshift.errors import LongshiftError
from longshift.paper.chosen_runs import Results
from longshift.paper.workspace import Workspace
from longshift.report import Table
from longshift.sweep import Job

if TYPE_CHECKING:
    from longshift.report import Drawing  # matplotlib takes a second to import

Kind = Literal["table", "figure"]


class Impossible(LongshiftError):
    """What a recipe shows cannot be had from these data and methods, and no further run would change that."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure, what it shows, and the numbers that are drawn."""

    name: str
    title: str
    drawing: Drawing
    caption: str
    data: pd.DataFrame


Output: TypeAlias = Table | Picture


@dataclass(frozen=True)
class Recipe:
    """A result of the paper. `jobs` lists the runs, `make` turns finished ones into tables and figures."""

    name: str
    label: str  # the paper's: "Tab. 1"
    title: str
    kind: Kind
    jobs: Callable[[Workspace], Sequence[Job]]
    make: Callable[[Results], Sequence[Output]]
    predictions: bool = False  # whether it looks at single predictions and embeddings of the chosen runs
    paper: str = ""  # name of the table of the paper's numbers in `published_tables`


def require_methods(results: Results, methods: Iterable[str]) -> None:
    """Raise if a recipe has no runs because none of the methods that it compares takes part."""
    if not results.jobs:
        listed = ", ".join(dict.fromkeys(methods))
        raise Impossible(f"none of the methods that it compares takes part; they are {listed}")


def no_runs(workspace: Workspace) -> Sequence[Job]:
    """For what follows from the data or the paper alone."""
    return ()
