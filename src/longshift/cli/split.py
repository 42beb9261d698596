"""`longshift split`: make, show and draw imbalanced splits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from longshift.cli.common import JsonFlag, console, print_json, print_table
from longshift.data import Manifest, load_dataset
from longshift.errors import UsageError
from longshift.settings import (
    SHOTS,
    Split,
    SplitRecipe,
    is_split_file,
    make_split,
    ratios,
    read_recipe,
    recipe_of,
    save_split,
    setting_for,
    setting_names,
)

Data = Annotated[str, typer.Argument(help="A folder domain/class/image, a .zip, .csv or .parquet, or `digits`.")]
DataOrSplit = Annotated[str, typer.Argument(help="A dataset as for `split make`, or a split file (.json).")]
SettingOption = Annotated[
    str | None,
    typer.Option("--setting", "-s", help="Name of a setting, such as TotalHeavyTail, or a .json/.csv of counts."),
]
TargetOption = Annotated[
    str | None, typer.Option("--target", "-t", help='The domain nobody has seen, by its folder or short name ("A").')
]
SeedOption = Annotated[int, typer.Option("--split-seed", help="Choose other files, with the same counts.")]
BenchmarkOption = Annotated[
    str | None,
    typer.Option(help="VLCS, PACS, OfficeHome or DomainNet: use its published counts; `none`: generate. "
                      "By default recognized by the names of domains and classes."),
]  # fmt: skip
ShrinkFlag = Annotated[bool, typer.Option("--shrink", help="Use fewer samples where the data has too few.")]
RatioOption = Annotated[
    float | None, typer.Option(help="Generate the setting with the largest class this many times the smallest.")
]
ValidationOption = Annotated[int | None, typer.Option(help="Validation samples per class and source domain.")]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make, show and draw imbalanced splits: training, balanced validation, in-distribution test, target."
    "\n\nStart with `longshift split show digits --setting TotalHeavyTail --target ink`.",
)


def register(main: typer.Typer) -> None:
    """Add the verbs."""
    main.add_typer(app, name="split")


@app.command()
def make(
    data: Data,
    setting: SettingOption = None,
    target: TargetOption = None,
    seed: SeedOption = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the split file goes.")] = Path("split.json"),
    benchmark: BenchmarkOption = None,
    shrink: ShrinkFlag = False,
    ratio: RatioOption = None,
    validation: ValidationOption = None,
    json: JsonFlag = False,
) -> None:
    """Make a split and save it as a small file with a hash.

    `longshift split make digits --setting TotalHeavyTail --target ink --out ink.json`

    `longshift split make PACS.zip -s Duality -t photo --split-seed 1` uses the published counts.

    `longshift split make my/images -s Cross -t hospital_b --ratio 50` makes its own counts.

    `longshift split make my/images -s counts.csv -t hospital_b` takes a table domain,class,count.
    """
    manifest = load_dataset(data)
    split = _make(manifest, setting, target, seed, benchmark, shrink, ratio, validation)
    save_split(split, manifest, out)
    recipe = recipe_of(split, manifest)
    if json:
        print_json({"path": str(out)} | as_json(recipe))
        return
    print_recipe(recipe)
    console.print(f"wrote {out}", markup=False, highlight=False)


@app.command()
def show(
    data: DataOrSplit,
    setting: SettingOption = None,
    target: TargetOption = None,
    seed: SeedOption = 0,
    benchmark: BenchmarkOption = None,
    shrink: ShrinkFlag = False,
    ratio: RatioOption = None,
    validation: ValidationOption = None,
    json: JsonFlag = False,
) -> None:
    """Show the counts of a split, its many, medium and few classes and its imbalance ratios.

    `longshift split show digits --setting Duality --target ink`

    `longshift split show split.json --json` reads a saved split; the dataset is not needed.
    """
    recipe = (
        _saved(data, setting, target)
        if is_split_file(Path(data))
        else _recipe(load_dataset(data), setting, target, seed, benchmark, shrink, ratio, validation)
    )
    if json:
        print_json(as_json(recipe))
    else:
        print_recipe(recipe)


@app.command()
def plot(
    data: DataOrSplit,
    setting: SettingOption = None,
    target: TargetOption = None,
    seed: SeedOption = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the picture (PNG) goes.")] = Path("split.png"),
    benchmark: BenchmarkOption = None,
    shrink: ShrinkFlag = False,
    ratio: RatioOption = None,
    validation: ValidationOption = None,
) -> None:
    """Draw the training samples per class and source domain; without --target, a panel for each target.

    `longshift split plot digits --setting TotalHeavyTail --out split.png`

    `longshift split plot PACS.zip -s Duality -t photo -o photo.png`

    `longshift split plot split.json`
    """
    from longshift.report import split_panels  # matplotlib takes a second to import

    if is_split_file(Path(data)):
        recipes = [_saved(data, setting, target)]
    else:
        manifest = load_dataset(data)
        targets: tuple[str, ...] = manifest.domain_names if target is None else (target,)
        recipes = [_recipe(manifest, setting, t, seed, benchmark, shrink, ratio, validation) for t in targets]
    split_panels(recipes).save(out)
    console.print(f"wrote {out}", markup=False, highlight=False)


def _make(
    manifest: Manifest,
    setting: str | None,
    target: str | None,
    seed: int,
    benchmark: str | None,
    shrink: bool,
    ratio: float | None,
    validation: int | None,
) -> Split:
    if setting is None:
        raise UsageError(
            f"Expected --setting with a name ({', '.join(setting_names())}) or a .json/.csv of counts, got none."
        )
    if target is None:
        raise UsageError(f"Expected --target with one of: {', '.join(manifest.domain_names)}")
    wanted = setting_for(manifest, setting, target, benchmark=benchmark, ratio=ratio, validation=validation)
    return make_split(manifest, wanted, seed, shrink)


def _recipe(manifest: Manifest, *arguments: Any) -> SplitRecipe:
    return recipe_of(_make(manifest, *arguments), manifest)


def _saved(path: str, setting: str | None, target: str | None) -> SplitRecipe:
    if setting is not None or target is not None:
        raise UsageError(f"{path} is a saved split with its own setting and target; leave --setting and --target out")
    return read_recipe(Path(path))


def as_json(recipe: SplitRecipe) -> dict[str, Any]:
    """A recipe with what can be read off it; an infinite ratio (a class without samples) is null."""
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
    """The counts as a table, classes ordered by size, and below it what they amount to."""
    order = sorted(range(len(recipe.classes)), key=lambda k: (-int(recipe.counts[:, k].sum()), k))
    rows: list[list[object]] = [
        [recipe.classes[k], *(int(n) for n in recipe.counts[:, k]), int(recipe.counts[:, k].sum()), recipe.shots[k]]
        for k in order
    ]
    title = f"{recipe.dataset}, {recipe.setting}, target {recipe.target}"
    print_table(title, ["class", *recipe.sources, "all", "shot"], rows)
    found = ratios(recipe.counts, recipe.sources)
    groups = ", ".join(f"{recipe.shots.count(shot)} {shot}" for shot in SHOTS)
    each = ", ".join(f"{source} {value:.2f}" for source, value in found.ecr.items())
    lines = (
        f"seed       {recipe.split_seed}",
        f"samples    {', '.join(f'{n} {part}' for part, n in recipe.sizes.items())}",
        f"classes    {groups} (more than {recipe.many:g} / fewer than {recipe.few:g} training samples per source)",
        f"ratios     CR {found.cr:.2f} (classes), DR {found.dr:.2f} (sources), ECR {each}",
        f"hash       {recipe.fingerprint[:16]}",
    )
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
