"""`longshift split`: make, show and draw imbalanced splits."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from longshift.cli.common import DataArgument, JsonFlag, print_json, print_table, say, say_lines
from longshift.cli.run_options import run_fields, with_options
from longshift.data import Manifest, load_dataset
from longshift.errors import UsageError
from longshift.io import refuse_overwrite, require_writable
from longshift.settings import (
    SHOTS,
    Split,
    SplitRecipe,
    is_split_file,
    make_split,
    ratios,
    read_recipe,
    samples_kept_together,
    save_split,
    setting_for,
    setting_names,
)
from longshift.templates import render

DataOrSplit = Annotated[str, typer.Argument(help="A dataset as for `split make`, or a split file (.json).")]
# The options of a run that decide its split.
OPTIONS = run_fields(
    ("setting", "target", "split_seed", "benchmark", "shrink", "ratio", "validation"),
    setting="Name of a setting, such as TotalHeavyTail, or a .json or .csv file of counts.",
    target='Domain to hold out, by its folder or short name ("A").',
    benchmark="Use the published counts of this benchmark; `none`: generate. By default recognized by the names in the "
    "data.",
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make, show and draw imbalanced splits: training, balanced validation, in-distribution test, target."
    "\n\nStart with `longshift split show digits --setting TotalHeavyTail --target ink`.",
)


@app.command()
@with_options(options=OPTIONS)
def make(
    data: DataArgument,
    options: dict[str, Any],
    out: Annotated[Path, typer.Option("--out", "-o", help="Split file to write.")] = Path("split.json"),
    json: JsonFlag = False,
) -> None:
    """Make a split and save it as a small file with a hash.

    Examples:

        longshift split make digits --setting TotalHeavyTail --target ink --out ink.json

        longshift split make PACS.zip -s Duality -t photo --split-seed 1     # the published counts

        longshift split make my/images -s Cross -t hospital_b --ratio 50     # generated counts

        longshift split make my/images -s counts.csv -t hospital_b           # a table domain,class,count
    """
    refuse_overwrite(out, [path for path in (data, options.get("setting", "")) if os.path.isfile(path)])
    require_writable(out)
    manifest = load_dataset(data)
    split = _make(manifest, options)
    save_split(split, out)
    if json:
        print_json({"path": str(out)} | as_json(split))
        return
    print_recipe(split)
    say(f"wrote {out}")


@app.command()
@with_options(options=OPTIONS)
def show(
    data: DataOrSplit,
    options: dict[str, Any],
    json: JsonFlag = False,
) -> None:
    """Show the counts of a split, its many, medium and few classes and its imbalance ratios.

    Examples:

        longshift split show digits --setting Duality --target ink

        longshift split show split.json --json     # a saved split; the dataset is not needed
    """
    recipe = _saved(data, options) if is_split_file(Path(data)) else _make(load_dataset(data), options)
    if json:
        print_json(as_json(recipe))
    else:
        print_recipe(recipe)


@app.command()
@with_options(options=OPTIONS)
def plot(
    data: DataOrSplit,
    options: dict[str, Any],
    out: Annotated[Path, typer.Option("--out", "-o", help="Picture (PNG) to write.")] = Path("split.png"),
) -> None:
    """Draw the training samples per class and source domain; without --target, a panel for each target.

    Examples:

        longshift split plot digits --setting TotalHeavyTail --out split.png

        longshift split plot PACS.zip -s Duality -t photo -o photo.png

        longshift split plot split.json
    """
    from longshift.report import split_panels  # matplotlib takes a second to import

    refuse_overwrite(out, [path for path in (data, options.get("setting", "")) if os.path.isfile(path)])
    require_writable(out)
    if is_split_file(Path(data)):
        recipes: list[SplitRecipe] = [_saved(data, options)]
    else:
        manifest = load_dataset(data)
        targets = (options["target"],) if "target" in options else manifest.domain_names
        recipes = [_make(manifest, {**options, "target": target}) for target in targets]
    split_panels(recipes).save(out)
    say(f"wrote {out}")


def _make(manifest: Manifest, options: Mapping[str, Any]) -> Split:
    values = dict(options)
    seed, shrink = values.pop("split_seed", 0), values.pop("shrink", False)
    if "setting" not in values:
        raise UsageError(
            f"Expected --setting with a name ({', '.join(setting_names())}) or a .json/.csv of counts, got none."
        )
    if "target" not in values:
        raise UsageError(f"Expected --target with one of: {', '.join(manifest.domain_names)}")
    groups = samples_kept_together(manifest)
    return make_split(manifest, setting_for(manifest, **values), seed, shrink, groups=groups)


def _saved(path: str, options: Mapping[str, Any]) -> SplitRecipe:
    if options:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise UsageError(f"{given} cannot be combined with a saved split ({path})")
    return read_recipe(Path(path))


def as_json(recipe: SplitRecipe) -> dict[str, Any]:
    """A recipe with its shots and ratios; an infinite ratio (a class without samples) is null."""
    found = ratios(recipe.counts, recipe.sources)
    return recipe.as_json() | {
        "shots": dict(zip(recipe.classes, recipe.shots, strict=True)),
        "CR": _finite(found.cr),
        "DR": _finite(found.dr),
        "ECR": {source: _finite(value) for source, value in found.ecr.items()},
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def print_recipe(recipe: SplitRecipe) -> None:
    """Print the counts as a table, largest class first, and their ratios."""
    order = sorted(range(len(recipe.classes)), key=lambda k: (-int(recipe.counts[:, k].sum()), k))
    rows: list[list[object]] = [
        [recipe.classes[k], *(int(n) for n in recipe.counts[:, k]), int(recipe.counts[:, k].sum()), recipe.shots[k]]
        for k in order
    ]
    title = f"{recipe.dataset}, {recipe.setting}, target {recipe.target}"
    print_table(title, ["class", *recipe.sources, "all", "shot"], rows)
    found = ratios(recipe.counts, recipe.sources)
    say_lines(render("longshift.cli", "split.txt.j2", recipe=recipe, ratios=found, shots=SHOTS))
