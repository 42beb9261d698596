"""A part of a table of runs: some of the settings, some of the draws of hyper-parameters."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from longshift.errors import UsageError, unknown_name
from longshift.report.titles import order_settings


def part_of(frame: pd.DataFrame, settings: Sequence[str] = (), draws: int | None = None) -> pd.DataFrame:
    """The runs of these settings (none given: of all) and of the first `draws` draws (1: the defaults alone)."""
    if draws is not None:
        if draws < 1:
            raise UsageError(f"--draws: {draws} leaves no run; 1 are the default hyper-parameters alone")
        frame = frame[frame["draw"] < draws]
    if settings:
        known = order_settings(frame["setting"])
        for setting in settings:
            if setting not in known:
                raise UsageError(f"--setting: {unknown_name('setting', setting, known)}")
        frame = frame[frame["setting"].isin(list(settings))]
    return frame.reset_index(drop=True)
