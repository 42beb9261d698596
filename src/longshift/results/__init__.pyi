from .run_schema import (
    BadResult as BadResult,
    RunColumn as RunColumn,
    column_names as column_names,
    machine_columns as machine_columns,
    register_column as register_column,
    row_marks as row_marks,
    run_columns as run_columns,
    unregister_column as unregister_column,
)
from .run_summary import (
    join_average as join_average,
    read_summary as read_summary,
    unfinished_row as unfinished_row,
    with_average as with_average,
)
from .run_table import (
    as_frame as as_frame,
    drop_machine_columns as drop_machine_columns,
    read_runs as read_runs,
    unknown_columns as unknown_columns,
    write_runs as write_runs,
)
from .selection import (
    RULES as RULES,
    Rule as Rule,
    averages as averages,
    best_runs as best_runs,
    choose as choose,
    per_target as per_target,
    standard_error as standard_error,
)
