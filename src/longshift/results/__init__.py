"""The table of runs: its schema, how runs are selected, summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.results.run_summary import (
        BALANCED as BALANCED,
        SETS as SETS,
        BadResult as BadResult,
        from_rows as from_rows,
        read_summary as read_summary,
        with_average as with_average,
    )
    from longshift.results.run_table import (
        COLUMNS as COLUMNS,
        KEYS as KEYS,
        LATER_COLUMNS as LATER_COLUMNS,
        MACHINE_COLUMNS as MACHINE_COLUMNS,
        NUMBERS as NUMBERS,
        ORDER as ORDER,
        TEXT as TEXT,
        WHOLE as WHOLE,
        as_frame as as_frame,
        drop_machine_columns as drop_machine_columns,
        read_runs_csv as read_runs_csv,
        unknown_columns as unknown_columns,
        write_runs_csv as write_runs_csv,
    )
    from longshift.results.selection import (
        RULES as RULES,
        Rule as Rule,
        averages as averages,
        best_runs as best_runs,
        choose as choose,
        per_target as per_target,
        standard_error as standard_error,
    )

__all__, __getattr__, __dir__ = lazy_exports(__name__)
