from .published_tables import overall_results as overall_results, paper_table as paper_table
from .recipe import Recipe as Recipe, read_results as read_results
from .recipe_status import (
    cost_group as cost_group,
    hours_of as hours_of,
    known_costs as known_costs,
    measure_costs as measure_costs,
    status_of as status_of,
    unfinished_jobs as unfinished_jobs,
    without_repeats as without_repeats,
)
from .reproducing import (
    ReproduceResult as ReproduceResult,
    all_recipes as all_recipes,
    clear_failed_runs as clear_failed_runs,
    find_recipes as find_recipes,
    reproduce as reproduce,
)
from .workspace import (
    FULL_SCALE as FULL_SCALE,
    Workspace as Workspace,
    open_workspace as open_workspace,
    override_scale as override_scale,
    quick_scale as quick_scale,
)
