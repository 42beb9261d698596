"""How imbalance is made: published and generated settings, and the splits they give."""

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
from longshift.settings.setting import SETTING_NAMES, Setting, canonical_setting
from longshift.settings.shots import shot_groups
from longshift.settings.split import Split, make_split

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
    "TotalHeavyTail",
    "canonical_setting",
    "generate_all",
    "make_split",
    "paper_generator",
    "published",
    "ratios",
    "shot_groups",
]
