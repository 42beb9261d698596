"""Accuracy and time of all methods: Tables 1 to 3, 9 and 12 to 20, and Fig. 11, which tests their differences."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from longshift.errors import LongshiftError
from longshift.paper.published_tables import averages_beside, overall_results
from longshift.paper.recipe import Impossible, Output, Picture, Recipe, Results, caption
from longshift.paper.studies import ABLATIONS, variant_jobs
from longshift.paper.workspace import Workspace
from longshift.report import (
    Significance,
    average_tables,
    cost_tables,
    method_title,
    order_methods,
    rank_methods,
    significance,
    target_tables,
    worst_tables,
)
from longshift.settings import published_settings, setting_for
from longshift.sweep import Job

MILD_RATIO = 10.0
COSTLY = ("rdm", "pgrad", "tcri", "bsoftmax", "ginidg", "boda", "samaltdg", "ndcl")


def mild(workspace: Workspace) -> tuple[str, float | None]:
    """GINIDG's published counts, or for other data a mild imbalance in its place: name and ratio."""
    if workspace.benchmark and "GINIDG" in published_settings(workspace.benchmark):
        return "GINIDG", None
    try:
        for target in workspace.targets:
            setting_for(workspace.manifest, "Cross", target, benchmark=workspace.benchmark, ratio=MILD_RATIO)
    except LongshiftError:
        return "Cross", None  # the data are too few for a stated ratio
    return "Cross", MILD_RATIO


def mild_note(workspace: Workspace) -> tuple[str, ...]:
    """A note where GINIDG is replaced."""
    name, ratio = mild(workspace)
    return () if name == "GINIDG" else (caption("ginidg", ratio=ratio),)


def table_jobs(workspace: Workspace, setting: str) -> list[Job]:
    """All methods under a setting."""
    if setting == "GINIDG":
        name, ratio = mild(workspace)
        return workspace.grid(workspace.methods, [name], ratio=ratio)
    return workspace.grid(workspace.methods, [setting])


def all_jobs(workspace: Workspace) -> list[Job]:
    """All methods under all three settings."""
    return [job for setting in ("GINIDG", "TotalHeavyTail", "Duality") for job in table_jobs(workspace, setting)]


def average_recipe(name: str, label: str, setting: str) -> Recipe:
    """Average, many, medium, few of every method under one setting."""

    def make(results: Results) -> list[Output]:
        made = average_tables(results.chosen, results.missing)[0]
        notes = mild_note(results.workspace) if setting == "GINIDG" else ()
        table = replace(made, name=name, notes=(*made.notes, *notes))
        return [table, *averages_beside(table, results.workspace.benchmark)]

    return Recipe(
        name, label, f"target accuracy of all methods under {setting}", "table",
        lambda workspace: table_jobs(workspace, setting), make, paper=f"{name}_average",
    )  # fmt: skip


def _worst(results: Results) -> list[Output]:
    tables = worst_tables(results.chosen, results.missing)
    if not tables:
        raise Impossible("no source domain has a sample left for the in-distribution test")
    return [replace(tables[0], name="worst-domain")]


def cost_jobs(workspace: Workspace) -> list[Job]:
    """The paper's eight methods and three ablations under TotalHeavyTail: runs that other tables need as well."""
    parts = [v for v in ABLATIONS if v.label in ("NDCL-NoCon", "NDCL-NoAug", "NDCL-NoConst")]
    return workspace.grid(workspace.chosen_methods(COSTLY), ["TotalHeavyTail"]) + [
        job for job in variant_jobs(workspace, parts) if job.run["setting"] == "TotalHeavyTail"
    ]


def _cost(results: Results) -> list[Output]:
    tables = cost_tables(results.frame)
    if not tables:
        raise LongshiftError("no run is finished")
    return [replace(tables[0], title="Time of a training step (milliseconds)")]


def _detailed(results: Results) -> list[Output]:
    notes = mild_note(results.workspace)
    return [
        replace(t, name=f"detailed-{t.name.split('-')[-1]}", notes=(*t.notes, *(notes if "Cross" in t.title else ())))
        for t in target_tables(results.chosen, results.missing)
    ]


def paper_scores() -> pd.DataFrame:
    """The paper's Tables 1 to 3: one row per column of theirs (dataset, setting, group of classes)."""
    found = overall_results()
    scores = found.pivot_table(index=["dataset", "setting", "group"], columns="method", values="mean")
    return scores[order_methods(str(name) for name in scores.columns)]


def diagram(found: Significance, name: str, heading: str) -> Picture:
    """The critical-difference diagram of a test."""
    from longshift.report import rank_diagram  # matplotlib takes a second to import

    test, difference = found.test, found.critical_difference
    ranks = {method_title(method): rank for method, rank in test.ranks.items()}
    groups = [[method_title(method) for method in group] for group in found.groups]
    drawing = rank_diagram(ranks, difference, groups, test.cases, heading, method_title("ndcl"))
    text = caption("friedman", test=test, difference=difference, paper=name == "friedman-paper")
    data = pd.DataFrame({"method": list(test.ranks), "rank": list(test.ranks.values())})
    return Picture(name, heading, drawing, text, data.assign(cases=test.cases, critical_difference=difference))


def _friedman(results: Results) -> list[Output]:
    found, (paper, _) = rank_methods(results.chosen), significance(paper_scores())
    if found.significance is None or paper is None:
        raise Impossible(f"no test is possible: {found.no_test}")
    return [
        diagram(found.significance, "friedman", f"Average ranks on {results.workspace.name}"),
        diagram(paper, "friedman-paper", "Average ranks that follow from the paper's Tables 1 to 3"),
    ]


RECIPES = (
    average_recipe("ginidg", "Tab. 1", "GINIDG"),
    average_recipe("totalheavytail", "Tab. 2", "TotalHeavyTail"),
    average_recipe("duality", "Tab. 3", "Duality"),
    Recipe("cost", "Tab. 9", "training time of a batch", "table", cost_jobs, _cost, paper="cost"),
    Recipe(
        "worst-domain", "Tab. 12", "in-distribution accuracy of the worst source domain under Duality", "table",
        lambda workspace: table_jobs(workspace, "Duality"), _worst, paper="worst_domain",
    ),
    Recipe("detailed", "Tab. 13-20", "target accuracy of all methods, per target", "table", all_jobs, _detailed),
    Recipe(
        "friedman", "Fig. 11", "average ranks, Friedman and Nemenyi tests", "figure", all_jobs, _friedman,
        paper="friedman",
    ),
)  # fmt: skip
