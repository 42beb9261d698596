"""All recipes, in the order of the paper: first what is in its tables, then its figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from longshift.errors import UsageError, unknown_name
from longshift.paper.recipe import Recipe
from longshift.paper.recipes.failures import failure_recipes
from longshift.paper.recipes.friedman import friedman_recipes
from longshift.paper.recipes.main_tables import main_recipes
from longshift.paper.recipes.parameter_figures import parameter_recipes
from longshift.paper.recipes.per_class import per_class_recipes
from longshift.paper.recipes.settings_figures import settings_recipes
from longshift.paper.recipes.theory_tables import theory_recipes
from longshift.paper.recipes.variants import variant_recipes


@cache
def all_recipes() -> tuple[Recipe, ...]:
    """Every recipe."""
    found = [
        *main_recipes(), *variant_recipes(), *theory_recipes(), *settings_recipes(), *per_class_recipes(),
        *parameter_recipes(), *failure_recipes(), *friedman_recipes(),
    ]  # fmt: skip
    return tuple(sorted(found, key=_place))


def find_recipes(names: Sequence[str]) -> list[Recipe]:
    """Recipes by their names, or by the paper's labels ("Tab. 4", "fig4")."""
    known = {recipe.name: recipe for recipe in all_recipes()}
    labels = {_plain(recipe.label): recipe for recipe in all_recipes()}
    found: dict[str, Recipe] = {}
    for name in names:
        recipe = known.get(name.casefold()) or labels.get(_plain(name))
        if recipe is None:
            raise UsageError(unknown_name("recipe", name, known) + "; see: longshift reproduce --list")
        found[recipe.name] = recipe
    return list(found.values())


def _place(recipe: Recipe) -> tuple[bool, int]:
    number = re.search(r"\d+", recipe.label)
    return recipe.kind == "figure", int(number[0]) if number else 0


def _plain(label: str) -> str:
    return re.sub(r"[^a-z0-9-]", "", label.casefold())
