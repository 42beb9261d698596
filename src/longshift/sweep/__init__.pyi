from .columns import (
    BadResult as BadResult,
    RunColumn as RunColumn,
    column_names as column_names,
    read_row as read_row,
    register_column as register_column,
    run_columns as run_columns,
    unfinished_row as unfinished_row,
    with_average as with_average,
)
from .jobs import (
    Job as Job,
    Plan as Plan,
    hparam_seed as hparam_seed,
    load_plan as load_plan,
    make_plan as make_plan,
    never_started as never_started,
)
from .launch import (
    LAUNCHERS as LAUNCHERS,
    CancelWatch as CancelWatch,
    JobQueue as JobQueue,
    Launch as Launch,
    LaunchOptions as LaunchOptions,
    SweepStopped as SweepStopped,
    ask_to_cancel as ask_to_cancel,
    make_queue as make_queue,
    register_launcher as register_launcher,
)
from .local import Slot as Slot, make_slots as make_slots, run_local as run_local
from .run_table import (
    as_frame as as_frame,
    best_configs as best_configs,
    collect as collect,
    collect_plan as collect_plan,
    read_runs as read_runs,
    runs_file as runs_file,
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
from .state import (
    FINISHED as FINISHED,
    STATES as STATES,
    JobState as JobState,
    Outcome as Outcome,
    StatusFacts as StatusFacts,
    clear_failures as clear_failures,
    hold_lease as hold_lease,
    read_failure as read_failure,
    read_states as read_states,
    status_facts as status_facts,
)
from .sweep_file import common_values as common_values
from .sweep_folder import StoreFolder as StoreFolder, SweepFolder as SweepFolder
from .worker import execute as execute
