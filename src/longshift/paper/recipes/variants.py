"""Tables whose rows are variants of a method: ablation, domain-level resampling, contrastive objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from longshift.paper.chosen_runs import Results
from longshift.paper.recipe import Impossible, Output, Recipe
from longshift.paper.workspace import Workspace
from longshift.report import Row, average_tables
from longshift.sweep import Job

SETTINGS = ("TotalHeavyTail", "Duality")


@dataclass(frozen=True)
class Variant:
    """A row: what it is called, and the runs behind it."""

    label: str
    method: str
    hparams: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    block: str = ""  # rows of one block stand together


ABLATIONS = (
    Variant("ERM (baseline)", "erm", block="baseline"),
    Variant("NDCL-NoWeight", "ndcl", {"ablation": "no_weight"}, block="without"),
    Variant("NDCL-NoCon", "ndcl", {"ablation": "no_con"}, block="without"),
    Variant("NDCL-NoConst", "ndcl", {"ablation": "no_const"}, block="without"),
    Variant("NDCL-NoAug", "ndcl", {"ablation": "no_aug"}, block="without"),
    Variant("NDCL", "ndcl", block="whole"),
)
CONTRASTS = (
    Variant("NDCL, InfoNCE", "ndcl", {"contrast": "infonce"}, block="positives"),
    Variant("NDCL, SupCon", "ndcl", {"contrast": "supcon"}, block="positives"),
    Variant("NDCL, SupCon-ND", "ndcl", {"contrast": "supcon_nd"}, block="negatives"),
    Variant("NDCL, InfoNCE-ND", "ndcl", block="negatives"),
)
RESAMPLING = (
    Variant("BSoftmax, applied", "bsoftmax"),
    Variant("BSoftmax, omitted", "bsoftmax", keys={"sampling": "pooled"}),
)


def variant_jobs(workspace: Workspace, variants: Sequence[Variant]) -> list[Job]:
    """The runs of some variants under both settings of the paper's studies; none without the method they vary."""
    if variants[-1].method not in workspace.methods:
        return []
    return [
        job
        for v in variants
        if v.method in workspace.methods
        for job in workspace.grid([v.method], SETTINGS, v.hparams, v.label, **v.keys)
    ]


def variant_table(results: Results, variants: Sequence[Variant], name: str, title: str, note: str) -> list[Output]:
    """One table with the settings side by side, its rows in the order of the variants."""
    if not results.jobs:
        raise Impossible(f"it is a study of {variants[-1].method}, which does not take part")
    tables = average_tables(results.chosen, results.missing)
    columns = [replace(column, group=column.key["setting"]) for table in tables for column in table.columns]
    # Every variant is planned under every setting, so each table has its row, if only with dashes.
    found = [{row.name: row.cells for row in table.rows} for table in tables]
    rows = tuple(
        Row(v.label, v.label, v.block, tuple(cell for part in found for cell in part[v.label]))
        for v in variants
        if all(v.label in part for part in found)
    )
    notes = dict.fromkeys([*(text for table in tables for text in table.notes), *filter(None, [note])])
    return [
        replace(
            tables[0], name=name, title=title, columns=tuple(columns), rows=rows, head="Variant", notes=tuple(notes)
        )
    ]


def variant_recipes() -> list[Recipe]:
    """Those in this file."""
    parts = (
        ("ablation", "Tab. 4", "ablation of NDCL", ABLATIONS, ""),
        (
            "resampling", "Tab. 6", "domain-level resampling applied or omitted on BSoftmax", RESAMPLING,
            "Omitted: batches of the same size come from the pooled training data, which then count as one domain.",
        ),
        ("contrast", "Tab. 8", "contrastive objectives inside NDCL", CONTRASTS, ""),
    )  # fmt: skip

    def recipe(name: str, label: str, title: str, variants: tuple[Variant, ...], note: str) -> Recipe:
        return Recipe(
            name, label, title, "table",
            lambda workspace: variant_jobs(workspace, variants),
            lambda results: variant_table(
                results, variants, name, f"Target accuracy (%): {title}, {results.workspace.name}", note
            ),
            paper=name,
        )  # fmt: skip

    return [recipe(*part) for part in parts]
