# Used by the other packages of longshift; not public.
from .generators import (
    GENERATORS as GENERATORS,
    Balanced as Balanced,
    CountsGenerator as CountsGenerator,
    Cross as Cross,
    Duality as Duality,
    Generator as Generator,
    Natural as Natural,
    Pool as Pool,
    TailGenerator as TailGenerator,
    TotalHeavyTail as TotalHeavyTail,
    canonical_setting as canonical_setting,
    register_generator as register_generator,
    setting_names as setting_names,
)
from .lookup import (
    find_target as find_target,
    recognize as recognize,
    samples_kept_together as samples_kept_together,
    setting_for as setting_for,
)
from .own_counts import explicit_setting as explicit_setting
from .published_counts import (
    paper_generator as paper_generator,
    published as published,
    published_settings as published_settings,
)
from .setting import (
    NATURAL_SHARE as NATURAL_SHARE,
    NO_TARGET as NO_TARGET,
    SHOTS as SHOTS,
    Ratios as Ratios,
    Setting as Setting,
    ratios as ratios,
    shot_groups as shot_groups,
    usable_counts as usable_counts,
)
from .split import (
    Split as Split,
    load_split as load_split,
    make_split as make_split,
    save_split as save_split,
)
from .split_file import (
    SplitRecipe as SplitRecipe,
    is_split_file as is_split_file,
    read_recipe as read_recipe,
)

__all__ = [
    "Balanced",
    "CountsGenerator",
    "Cross",
    "Duality",
    "Generator",
    "Natural",
    "Pool",
    "Ratios",
    "Setting",
    "Split",
    "TailGenerator",
    "TotalHeavyTail",
    "explicit_setting",
    "load_split",
    "make_split",
    "published",
    "published_settings",
    "ratios",
    "register_generator",
    "save_split",
    "setting_for",
    "setting_names",
    "shot_groups",
]
