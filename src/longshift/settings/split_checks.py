"""Whether a split can be made: names and numbers of the setting, enough samples, the same data as before."""

from __future__ import annotations

import numpy as np

from longshift.data import Manifest
from longshift.errors import ConfigError, LongshiftError, unknown_name
from longshift.settings.setting import NO_TARGET, Setting
from longshift.settings.split_file import SplitRecipe
from longshift.settings.usable_samples import usable_table


def check_setting(manifest: Manifest, setting: Setting) -> None:
    """Raise for a setting whose names or numbers do not fit the dataset."""
    held_out = setting.target != NO_TARGET
    for noun, number, least, needed in (
        ("domains", len(manifest.domain_names), 1 + held_out, "2 domains (1 source and the target)"),
        ("classes", len(manifest.classes), 2, "2 classes"),
    ):
        if number < least:
            raise LongshiftError(
                f"a split needs at least {needed}, but {manifest.name} has {number}; "
                f"see its {noun} with: longshift data inspect"
            )
    mistakes = [
        unknown_name(f"domain of {manifest.name}", domain, manifest.domain_names)
        for domain in (setting.target, *setting.sources)
        if domain not in manifest.domain_names and domain != NO_TARGET
    ]
    mistakes += [
        unknown_name(f"class of {manifest.name}", name, manifest.classes)
        for name in setting.classes
        if name not in manifest.classes
    ]
    if not setting.sources:
        mistakes.append("no source domain is named; a split needs at least 1")
    if setting.target in setting.sources:
        mistakes.append(f"{setting.target} is the target and cannot be a source as well")
    mistakes += [
        f"{source}, {name}: expected a number of samples that is not negative, got {n}"
        for source, row in setting.counts.items()
        for name, n in row.items()
        if n < 0
    ]
    if setting.validation < 0:
        mistakes.append(f"validation: expected a number that is not negative, got {setting.validation}")
    if mistakes:
        raise ConfigError(mistakes, f"the setting {setting.name}")


def refuse_shortages(recipe: SplitRecipe) -> None:
    """Raise if the dataset has fewer samples than the split asks for."""
    # One sample at least must stay for the in-distribution test of a class that is there.
    asked = recipe.counts + recipe.validation
    one = "" if recipe.target == NO_TARGET else " + 1 test"
    asked = asked + (asked > 0) if one else asked
    lines = [
        f"  - {recipe.sources[d]}, {recipe.classes[k]}: {recipe.counts[d, k]} training + {recipe.validation[d, k]} "
        f"validation{one} = {asked[d, k]}, but there are {recipe.available[d, k]}: "
        f"{asked[d, k] - recipe.available[d, k]} too few"
        for d, k in zip(*np.nonzero(asked > recipe.available), strict=True)
    ]
    if lines:
        raise LongshiftError(
            f"{recipe.dataset} has too few samples for {len(lines)} of the {recipe.counts.size} counts of "
            f"{recipe.setting} with target {recipe.target}:\n"
            + "\n".join(lines)
            + "\nAdd --shrink (shrink=True) to use fewer samples, or request fewer."
        )


def list_differences(recipe: SplitRecipe, manifest: Manifest) -> list[str]:
    """How a manifest differs from the one that a recipe was made for, in names and numbers."""
    if recipe.classes != manifest.classes:
        lost = [name for name in recipe.classes if name not in manifest.classes]
        new = [name for name in manifest.classes if name not in recipe.classes]
        return [
            f"expected the {len(recipe.classes)} classes of the split, got {len(manifest.classes)}; "
            f"missing: {', '.join(lost) or 'none'}; new: {', '.join(new) or 'none'}"
        ]
    named = (*recipe.sources, recipe.target) if recipe.target != NO_TARGET else recipe.sources
    absent = [name for name in named if name not in manifest.domain_names]
    if absent:
        return [f"no domain {name!r}; it has {', '.join(manifest.domain_names)}" for name in absent]
    usable, whole = usable_table(manifest), manifest.count_table()
    expected = list(zip(named, [*recipe.available, recipe.target_available], strict=False))
    return [
        f"{domain}, {name}: expected {row[k]} samples, got {found}"
        for domain, row in expected
        for k, name in enumerate(recipe.classes)
        if (found := (whole if domain == recipe.target else usable)[manifest.domain_names.index(domain), k]) != row[k]
    ]
