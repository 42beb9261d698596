"""One run, several rows: its method's, that of a variant which comes to the same run, that of its averaged weights."""

from __future__ import annotations

import pandas as pd

from longshift.report.titles import is_averaged


def run_names(frame: pd.DataFrame) -> list[str]:
    """What tells the run of each row: its fingerprint or, where it has none, the row itself."""
    return [str(name) if isinstance(name, str) and name else f"row {i}" for i, name in enumerate(frame["fingerprint"])]


def each_once(frame: pd.DataFrame) -> pd.DataFrame:
    """The first row of each run of a dataset; rows of averaged weights are no runs of their own."""
    own = frame[~frame["method"].map(lambda name: is_averaged(str(name))).astype(bool)]
    return own[~own.assign(run=run_names(own)).duplicated(["dataset", "run"])]
