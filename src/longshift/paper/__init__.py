"""The numbers of the NDCL paper and the recipes that reproduce them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.paper.chosen_runs import read_results as read_results
    from longshift.paper.protocol_size import (
        FULL_SCALE as FULL_SCALE,
        override_scale as override_scale,
        quick_scale as quick_scale,
    )
    from longshift.paper.published_tables import overall_results as overall_results, paper_table as paper_table
    from longshift.paper.recipe import Recipe as Recipe
    from longshift.paper.recipe_list import all_recipes as all_recipes, find_recipes as find_recipes
    from longshift.paper.recipe_runs import unfinished_jobs as unfinished_jobs, without_repeats as without_repeats
    from longshift.paper.recipe_status import status_of as status_of
    from longshift.paper.reproducing import (
        ReproduceResult as ReproduceResult,
        clear_failed_runs as clear_failed_runs,
        reproduce as reproduce,
    )
    from longshift.paper.run_costs import (
        cost_group as cost_group,
        known_costs as known_costs,
        measure_costs as measure_costs,
        stored_costs as stored_costs,
    )
    from longshift.paper.workspace import Workspace as Workspace, open_workspace as open_workspace

__all__, __getattr__, __dir__ = lazy_exports(__name__)
