"""The table of runs: its schema, its files, selection and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.results.run_schema import (
        BadResult as BadResult,
        RunColumn as RunColumn,
        column_names as column_names,
        machine_columns as machine_columns,
        register_column as register_column,
        row_marks as row_marks,
        run_columns as run_columns,
        unregister_column as unregister_column,
    )
    from longshift.results.run_summary import (
        join_average as join_average,
        read_summary as read_summary,
        unfinished_row as unfinished_row,
        with_average as with_average,
    )
    from longshift.results.run_table import (
        as_frame as as_frame,
        drop_machine_columns as drop_machine_columns,
        read_runs as read_runs,
        unknown_columns as unknown_columns,
        write_runs as write_runs,
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
