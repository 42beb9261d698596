"""Runs that should be there and are not: counted and named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from longshift.report.names import method_title, order_datasets, order_methods, order_settings

UNKNOWN = "no such run"
SHOWN = 12  # names in a sentence; all of them are in missing.csv and in the JSON
COLUMNS = ("dataset", "setting", "target", "method", "trial", "draw", "status", "fingerprint")


@dataclass(frozen=True)
class Missing:
    """The runs without numbers, one row each with the columns `COLUMNS`."""

    frame: pd.DataFrame
    expected: int

    @property
    def count(self) -> int:
        """How many."""
        return len(self.frame)

    def names(self) -> list[str]:
        """In words: "NDCL on digits/Duality/ink, trial 1, draw 0 (failed)"."""
        return [
            f"{method_title(str(r['method']))} on {r['dataset']}/{r['setting']}/{r['target']}, trial {r['trial']}, "
            f"draw {r['draw']} ({r['status']})"
            for r in self.frame.to_dict("records")
        ]

    def sentences(self) -> tuple[str, ...]:
        """What to say under a table: nothing if all is there."""
        if not self.count:
            return ()
        by_status = self.frame["status"].value_counts()
        kinds = ", ".join(f"{n} {status}" for status, n in sorted(by_status.items()))
        names = self.names()
        more = f"; and {self.count - SHOWN} more" if self.count > SHOWN else ""
        verb = "has" if self.count == 1 else "have"
        return (f"{self.count} of {self.expected} runs {verb} no number ({kinds}): {'; '.join(names[:SHOWN])}{more}.",)


def find_missing(frame: pd.DataFrame) -> Missing:
    """Runs with a status other than done, and holes in the grid of methods, targets, trials and draws.

    The grid of a dataset and setting is every method, target, trial and draw seen there: a folder of runs has no
    plan that could say what was meant to be run.
    """
    grid = ["target", "method", "trial", "draw"]
    lost = [frame.loc[frame["status"] != "done", list(COLUMNS)]]
    expected = 0
    for (dataset, setting), part in frame.groupby(["dataset", "setting"], observed=True):
        full = pd.MultiIndex.from_product([sorted(part[name].dropna().unique()) for name in grid], names=grid)
        expected += len(full)
        holes = full.difference(pd.MultiIndex.from_frame(part[grid]), sort=False)
        if len(holes):
            named = holes.to_frame(index=False).assign(
                dataset=str(dataset), setting=str(setting), status=UNKNOWN, fingerprint=""
            )
            lost.append(named[list(COLUMNS)])
    found = pd.concat([part for part in lost if len(part)] or lost[:1], ignore_index=True)
    return Missing(sort_runs(found), expected)


def of(missing: Missing, **where: str) -> Missing:
    """Those of one dataset, setting, method, ..."""
    frame = missing.frame
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return Missing(frame, missing.expected)


def sort_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """In the order of the tables."""
    ranks = {
        "dataset": _ranks(order_datasets(frame["dataset"])),
        "setting": _ranks(order_settings(frame["setting"])),
        "method": _ranks(order_methods(frame["method"])),
    }
    return frame.sort_values(
        ["dataset", "setting", "target", "method", "trial", "draw"],
        key=lambda column: column.map(ranks[column.name]) if column.name in ranks else column,
        kind="stable",
        ignore_index=True,
    )


def _ranks(names: Iterable[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}
