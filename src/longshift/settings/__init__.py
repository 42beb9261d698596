"""How imbalance is made: published and generated settings, and the splits they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.settings.generator_base import (
        CountsGenerator as CountsGenerator,
        Generator as Generator,
        Pool as Pool,
    )
    from longshift.settings.generators import (
        Balanced as Balanced,
        Cross as Cross,
        Duality as Duality,
        Natural as Natural,
        TailGenerator as TailGenerator,
        TotalHeavyTail as TotalHeavyTail,
        register_generator as register_generator,
        setting_names as setting_names,
    )
    from longshift.settings.imbalance_ratios import Ratios as Ratios, ratios as ratios
    from longshift.settings.lookup import setting_for as setting_for
    from longshift.settings.own_counts import explicit_setting as explicit_setting
    from longshift.settings.published_counts import published as published, published_settings as published_settings
    from longshift.settings.setting import Setting as Setting
    from longshift.settings.shots import shot_groups as shot_groups
    from longshift.settings.split import (
        Split as Split,
        load_split as load_split,
        make_split as make_split,
        save_split as save_split,
    )

if TYPE_CHECKING:  # shared with the other packages of longshift, not public
    from longshift.settings.generators import GENERATORS as GENERATORS, canonical_setting as canonical_setting
    from longshift.settings.lookup import (
        copies_to_keep_together as copies_to_keep_together,
        find_target as find_target,
        recognize as recognize,
    )
    from longshift.settings.published_counts import paper_generator as paper_generator
    from longshift.settings.setting import NO_TARGET as NO_TARGET
    from longshift.settings.shots import SHOTS as SHOTS
    from longshift.settings.split import recipe_of as recipe_of
    from longshift.settings.split_file import (
        DamagedRecipe as DamagedRecipe,
        SplitRecipe as SplitRecipe,
        is_split_file as is_split_file,
        read_recipe as read_recipe,
    )
    from longshift.settings.usable_samples import usable_counts as usable_counts

__all__, __getattr__, __dir__ = lazy_exports(__name__)
