"""Parts of a table of runs: some settings or draws, each run once, several tables put together."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from longshift.data import short_version
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.report.titles import is_averaged, order_settings
from longshift.text import some


def filter_runs(frame: pd.DataFrame, settings: Sequence[str] = (), draws: int | None = None) -> pd.DataFrame:
    """Return the runs of these settings (none given: of all) and of the first `draws` draws (1: only the defaults)."""
    if draws is not None:
        if draws < 1:
            raise UsageError(f"--draws: expected 1 or more, got {draws}; 1 means only the default hyper-parameters")
        frame = frame[frame["draw"] < draws]
    if settings:
        known = order_settings(frame["setting"])
        for setting in settings:
            if setting not in known:
                raise UsageError(f"--setting: {unknown_name('setting', setting, known)}")
        frame = frame[frame["setting"].isin(list(settings))]
    return frame.reset_index(drop=True)


def of_version(frame: pd.DataFrame, version: str) -> pd.DataFrame:
    """Return the runs on one version of the data, given by its first characters; runs without one stay."""
    known = frame["data_version"]
    chosen = frame[(known == "") | known.str.startswith(version)]
    if not chosen["data_version"].str.len().any():
        listed = ", ".join(sorted({short_version(name) for name in known if name})) or "none"
        raise UsageError(f"--data-version: expected one of {listed}, got {version!r}")
    return chosen.reset_index(drop=True)


def mixed_versions(frame: pd.DataFrame) -> list[str]:
    """A sentence for each dataset of which the finished runs saw several versions.

    Raises:
        LongshiftError: The dataset is not a benchmark: its numbers cannot be compared. Copies of a benchmark may differ
            in the compression of their images, which the sentence then says.
    """
    done = frame[frame["status"].isin(["done", "diverged"]) & (frame["data_version"] != "")]
    sentences = []
    for dataset, rows in done.groupby("dataset", observed=True):
        versions = rows.groupby("data_version", observed=True)["method"].unique()
        if len(versions) < 2:
            continue
        listed = "; ".join(f"{short_version(str(name))}: {some(sorted(methods))}" for name, methods in versions.items())
        text = f"the runs on {dataset} saw {len(versions)} versions of its files ({listed})"
        if not (rows["benchmark"] != "").all():
            raise LongshiftError(
                f"{text}, so their numbers cannot be compared. Report on one: --data-version "
                f"{short_version(str(versions.index[0]))}, or run all methods on one version."
            )
        sentences.append(f"warning: {text}; compare their numbers with care")
    return sentences


def run_names(frame: pd.DataFrame) -> list[str]:
    """Return what identifies the run of each row: its fingerprint or, where it has none, the row itself."""
    return [str(name) if isinstance(name, str) and name else f"row {i}" for i, name in enumerate(frame["fingerprint"])]


def each_once(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the first row of each run of a dataset.

    A run has several rows where a variant is the same run as its method; rows of averaged weights have no runs
    of their own.
    """
    own = frame[~frame["method"].map(lambda name: is_averaged(str(name))).astype(bool)]
    return own[~own.assign(run=run_names(own)).duplicated(["dataset", "run"])]


def join_runs(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join the runs of several folders.

    A row that two folders have (the same run under the same name) counts once, and a finished one replaces one
    without a number. The same run under two names keeps both, as two rows of the tables.
    """
    if len(frames) == 1:
        return frames[0]
    joined = pd.concat(frames, ignore_index=True)
    finished_first = (joined["status"] != "done").sort_values(kind="stable").index
    named = joined.assign(run=run_names(joined)).loc[finished_first]
    kept = named.index[~named.duplicated(["dataset", "method", "run"])]
    return joined.loc[sorted(kept)].reset_index(drop=True)
