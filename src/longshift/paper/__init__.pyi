from .published_tables import overall_results as overall_results, paper_table as paper_table
from .recipe import Recipe as Recipe
from .reproducing import (
    ReproduceResult as ReproduceResult,
    all_recipes as all_recipes,
    clear_failed_runs as clear_failed_runs,
    find_recipes as find_recipes,
    jobs_of as jobs_of,
    list_status as list_status,
    reproduce as reproduce,
    unfinished_jobs as unfinished_jobs,
)
from .workspace import (
    FULL_SCALE as FULL_SCALE,
    Workspace as Workspace,
    open_workspace as open_workspace,
    override_scale as override_scale,
    quick_scale as quick_scale,
)
