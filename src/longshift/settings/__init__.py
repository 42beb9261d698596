"""How imbalance is made: published and generated settings, and the splits they give."""

from longshift.settings.explicit import explicit_setting
from longshift.settings.generators import (
    GENERATORS,
    Balanced,
    Cross,
    Duality,
    Generator,
    Natural,
    TotalHeavyTail,
    generate_all,
)
from longshift.settings.paper import paper_generator, published
from longshift.settings.ratios import Ratios, ratios
from longshift.settings.recipe import SplitRecipe, read_recipe
from longshift.settings.resolve import find_target, recognise, setting_for
from longshift.settings.setting import SETTING_NAMES, Setting, canonical_setting
from longshift.settings.shots import shot_groups
from longshift.settings.split import Split, load_split, make_split, recipe_of, save_split

__all__ = [
    "GENERATORS",
    "SETTING_NAMES",
    "Balanced",
    "Cross",
    "Duality",
    "Generator",
    "Natural",
    "Ratios",
    "Setting",
    "Split",
    "SplitRecipe",
    "TotalHeavyTail",
    "canonical_setting",
    "explicit_setting",
    "find_target",
    "generate_all",
    "load_split",
    "make_split",
    "paper_generator",
    "published",
    "ratios",
    "read_recipe",
    "recipe_of",
    "recognise",
    "save_split",
    "setting_for",
    "shot_groups",
]
