from .best_configs import write_best as write_best
from .collecting import (
    collect as collect,
    collect_plan as collect_plan,
    collect_union as collect_union,
    data_elsewhere as data_elsewhere,
    runs_file as runs_file,
)
from .job_queue import (
    CancelWatch as CancelWatch,
    JobQueue as JobQueue,
    SweepStopped as SweepStopped,
    any_check as any_check,
    ask_to_cancel as ask_to_cancel,
    make_queue as make_queue,
    time_is_up as time_is_up,
)
from .job_status import job_entries as job_entries
from .job_store import (
    FINISHED as FINISHED,
    STATES as STATES,
    Entry as Entry,
    Outcome as Outcome,
    clear_failures as clear_failures,
    read_failure as read_failure,
    scan_jobs as scan_jobs,
)
from .jobs import (
    Job as Job,
    Plan as Plan,
    hparam_seed as hparam_seed,
    load_plan as load_plan,
    make_plan as make_plan,
    never_started as never_started,
)
from .launchers import (
    LAUNCHERS as LAUNCHERS,
    Launch as Launch,
    LaunchOptions as LaunchOptions,
    register_launcher as register_launcher,
)
from .local_launcher import Slot as Slot, make_slots as make_slots, run_local as run_local
from .run_job import execute as execute
from .sweep_file import common_values as common_values
from .sweep_folder import StoreFolder as StoreFolder, SweepFolder as SweepFolder
from .time_estimate import estimate as estimate, measure_cost as measure_cost
