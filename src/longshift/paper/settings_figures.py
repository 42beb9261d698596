"""Figs. 6 and 7 and Tab. 5: the imbalance itself, as bars and as ratios. No runs needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from longshift.paper.accuracy_tables import mild, mild_note
from longshift.paper.recipe import Output, Picture, Recipe, Results, caption
from longshift.paper.workspace import Workspace
from longshift.report import Cell, Column, Table, TableRow
from longshift.settings import Split, make_split, ratios, setting_for
from longshift.sweep import Job


def split_recipes(workspace: Workspace, setting: str, ratio: float | None = None) -> list[Split]:
    """The training set of each target, all targets of the dataset."""
    found = []
    for target in workspace.manifest.domain_names:
        made = setting_for(workspace.manifest, setting, target, benchmark=workspace.benchmark, ratio=ratio)
        found.append(make_split(workspace.manifest, made, 0, shrink=True))
    return found


def _bars(results: Results, name: str, setting: str) -> list[Output]:
    from longshift.report import split_panels

    recipes = split_recipes(results.workspace, setting)
    rows = [
        {"target": r.target, "source": source, "class": label, "count": int(r.counts[d, k]), "group": r.shots[k]}
        for r in recipes
        for d, source in enumerate(r.sources)
        for k, label in enumerate(r.classes)
    ]
    title = f"Training samples per class and source under {setting}, {results.workspace.name}"
    return [Picture(name, title, split_panels(recipes), caption("settings"), pd.DataFrame(rows))]


def _ratios(results: Results) -> list[Output]:
    workspace = results.workspace
    name, ratio = mild(workspace)
    parts = {name: split_recipes(workspace, name, ratio)}
    parts |= {setting: split_recipes(workspace, setting) for setting in ("TotalHeavyTail", "Duality")}
    most = max(len(r.sources) for found in parts.values() for r in found)
    titles = ["CR", "DR", *(f"ECR {d + 1}" for d in range(most))]
    columns = tuple(
        Column(title, setting, {"setting": setting, "measure": title}, None) for setting in parts for title in titles
    )
    rows = []
    for i, target in enumerate(workspace.manifest.domain_names):
        cells: list[Cell] = []
        for found in parts.values():
            values = ratios(found[i].counts, found[i].sources)
            for value in (values.cr, values.dr, *values.ecr.values()):
                empty = math.isinf(value)
                cells.append(Cell(note="a class or a source has no sample") if empty else Cell(value, digits=2))
            cells += [Cell(note="fewer sources")] * (most - len(values.ecr))
        rows.append(TableRow(target, target, "", tuple(cells)))
    notes = (*_other_orders(parts, workspace), *mild_note(workspace))
    title = f"Imbalance ratios of the training sets, {workspace.name}"
    return [Table("ratios", "ratios", title, columns, tuple(rows), caption("ratios"), notes=notes, head="Target")]


def _other_orders(parts: Mapping[str, Sequence[Split]], workspace: Workspace) -> Iterator[str]:
    """The sources behind ECR 1, 2, ... of settings that have them in an order of their own, as published counts may."""
    names = workspace.manifest.domain_names
    for setting, recipes in parts.items():
        own = [r for r in recipes if r.sources != tuple(name for name in names if name in r.sources)]
        if own:
            yield caption("ratios-sources", setting=setting, recipes=own)


def _negatives(results: Results) -> list[Output]:
    from longshift.report import negative_bars

    workspace = results.workspace
    found = split_recipes(workspace, "TotalHeavyTail")[workspace.manifest.domain_names.index(workspace.targets[0])]
    positives = found.counts.sum(axis=0)
    order = sorted(range(len(found.classes)), key=lambda k: (-int(positives[k]), k))
    names, values = [found.classes[k] for k in order], positives[order]
    rest = values.sum() - values
    heading = f"Samples of each class and of all others under TotalHeavyTail, {workspace.name}"
    text = caption(
        "negatives", target=found.target, positive_ratio=values.max() / max(values.min(), 1),
        negative_ratio=rest.max() / max(rest.min(), 1),
    )  # fmt: skip
    data = pd.DataFrame({"class": names, "positives": values, "negatives": rest})
    return [Picture("negatives", heading, negative_bars(names, values, rest, heading), text, data)]


def no_runs(workspace: Workspace) -> Sequence[Job]:
    """For what follows from the data alone."""
    return ()


RECIPES = (
    Recipe("negatives", "Fig. 2", "long-tailed positives, abundant negatives", "figure", no_runs, _negatives),
    Recipe("ratios", "Tab. 5", "imbalance ratios of the settings", "table", no_runs, _ratios, paper="setting_ratios"),
    Recipe(
        "settings-totalheavytail", "Fig. 6", "training samples under TotalHeavyTail", "figure", no_runs,
        lambda results: _bars(results, "settings-totalheavytail", "TotalHeavyTail"),
    ),
    Recipe(
        "settings-duality", "Fig. 7", "training samples under Duality", "figure", no_runs,
        lambda results: _bars(results, "settings-duality", "Duality"),
    ),
)  # fmt: skip
