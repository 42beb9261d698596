"""Runs that should be there and are not: counted and named."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pandas as pd

from longshift.report.run_filters import run_names
from longshift.report.titles import is_averaged, method_title, order_datasets, order_methods, order_settings
from longshift.text import agree, counted

UNKNOWN = "no such run"
SHOWN = 12  # names in a sentence; all of them are in missing.csv and in the JSON
COLUMNS = ("dataset", "setting", "target", "method", "trial", "draw", "status", "fingerprint")


@dataclass(frozen=True)
class Missing:
    """The runs without numbers, one row each with the columns `COLUMNS`."""

    frame: pd.DataFrame
    grids: Mapping[tuple[str, str], int]  # runs that were to be there, by dataset and setting

    @property
    def expected(self) -> int:
        """How many runs were to be there."""
        return sum(self.grids.values())

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
        """Notes for under a table; none if nothing is missing."""
        if not self.count:
            return ()
        by_status = self.frame["status"].value_counts()
        kinds = ", ".join(f"{n} {status}" for status, n in sorted(by_status.items()))
        groups: dict[tuple[str, str], list[str]] = {}  # runs that differ in trial and draw only are named together
        for name, status in zip(self.names(), self.frame["status"], strict=True):
            groups.setdefault((name.rpartition(", trial ")[0], str(status)), []).append(name)
        names = [
            found[0] if len(found) == 1 else f"{place}, {len(found)} runs ({status})"
            for (place, status), found in groups.items()
        ]
        left = sum(len(found) for found in list(groups.values())[SHOWN:])
        more = f"; and {left} more" if left else ""
        return (f"{self.in_short()} ({kinds}): {'; '.join(names[:SHOWN])}{more}.",)

    def of(self, setting: str, datasets: Collection[str]) -> Missing:
        """Those of one setting and some datasets."""
        here = (self.frame["setting"] == setting) & self.frame["dataset"].isin(list(datasets))
        return Missing(self.frame[here], {p: n for p, n in self.grids.items() if p[0] in datasets and p[1] == setting})

    def in_short(self) -> str:
        """How many of how many."""
        return f"{self.count} of {counted(self.expected, 'run')} {agree(self.count, 'has', 'have')} no result"


def find_missing(frame: pd.DataFrame) -> Missing:
    """Runs with a status other than done, and holes in the grid of targets and runs; each run once.

    The grid of a dataset and setting is every target seen there for each method's own trials and draws: a folder of
    runs has no plan that could say what was meant to be run. That a method stops at an earlier trial or draw than
    another is not a hole (the tables mark each such number); a trial that it skips is one.
    """
    grid = ["target", "method", "trial", "draw"]
    # Averaged weights have no runs of their own, unless a table holds nothing else.
    averaged = frame["method"].map(lambda name: is_averaged(str(name))).astype(bool)
    frame = (frame if averaged.all() else frame[~averaged]).reset_index(drop=True)
    shared = frame.assign(run=run_names(frame)).duplicated(["dataset", "run"])
    lost = [frame.loc[(frame["status"] != "done") & ~shared, list(COLUMNS)]]
    grids: dict[tuple[str, str], int] = {}
    for (dataset, setting), part in frame.groupby(["dataset", "setting"], observed=True):
        runs = pd.concat([part[grid[1:]].drop_duplicates(), _skipped(part)], ignore_index=True)
        targets = pd.DataFrame({"target": sorted(part["target"].unique())})
        full = pd.MultiIndex.from_frame(targets.merge(runs, how="cross")[grid])
        grids[str(dataset), str(setting)] = len(full) - int(shared[part.index].sum())
        holes = full.difference(pd.MultiIndex.from_frame(part[grid]), sort=False)
        if len(holes):
            named = holes.to_frame(index=False).assign(
                dataset=str(dataset), setting=str(setting), status=UNKNOWN, fingerprint=""
            )
            lost.append(named[list(COLUMNS)])
    found = pd.concat([part for part in lost if len(part)] or lost[:1], ignore_index=True)
    return Missing(sort_runs(found), grids)


def _skipped(part: pd.DataFrame) -> pd.DataFrame:
    """Trials that others have and a method lacks below its last one, with the draws that its trials share."""
    seen = {int(trial) for trial in part["trial"].unique()}
    found = []
    for method, own in part.groupby("method", observed=True):
        draws = own.groupby("trial")["draw"].agg(set)
        shared = set.intersection(*draws)
        skipped = [trial for trial in seen - set(draws.index) if trial < max(draws.index)]
        found += [(str(method), trial, draw) for trial in skipped for draw in shared]
    return pd.DataFrame(found, columns=["method", "trial", "draw"]).astype(dict(part[["trial", "draw"]].dtypes))


def sort_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """In the order of the tables."""
    orders = {"dataset": order_datasets, "setting": order_settings, "method": order_methods}
    return frame.sort_values(
        ["dataset", "setting", "target", "method", "trial", "draw"],
        key=lambda column: column.map(orders[column.name](column).index) if column.name in orders else column,
        kind="stable",
        ignore_index=True,
    )
