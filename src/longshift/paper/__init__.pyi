from .chosen_runs import read_results as read_results
from .protocol_size import FULL_SCALE as FULL_SCALE, override_scale as override_scale, quick_scale as quick_scale
from .published_tables import overall_results as overall_results, paper_table as paper_table
from .recipe import Recipe as Recipe
from .recipe_list import all_recipes as all_recipes, find_recipes as find_recipes
from .recipe_runs import unfinished_jobs as unfinished_jobs, without_repeats as without_repeats
from .recipe_status import status_of as status_of
from .reproducing import (
    ReproduceResult as ReproduceResult,
    clear_failed_runs as clear_failed_runs,
    reproduce as reproduce,
)
from .run_costs import (
    cost_group as cost_group,
    known_costs as known_costs,
    measure_costs as measure_costs,
    stored_costs as stored_costs,
)
from .workspace import Workspace as Workspace, open_workspace as open_workspace
