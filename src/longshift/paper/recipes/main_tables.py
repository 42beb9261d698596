"""Tables 1 to 3, the detailed tables per target, the worst domain, and the cost of a batch."""

from __future__ import annotations

from dataclasses import replace

from longshift.errors import LongshiftError
from longshift.paper.chosen_runs import Results
from longshift.paper.published_tables import averages_beside
from longshift.paper.recipe import Impossible, Output, Recipe
from longshift.paper.recipes.variants import ABLATIONS, variant_jobs
from longshift.paper.workspace import Workspace
from longshift.report import average_tables, cost_tables, target_tables, worst_tables
from longshift.settings import published_settings, setting_for
from longshift.sweep import Job

MILD_RATIO = 10.0
STAND_IN = (
    "The counts of GINIDG are published for VLCS and PACS only. Here a mild imbalance that differs between the domains "
    "stands in for it: Cross"
)
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
    """What to say where GINIDG is replaced."""
    name, ratio = mild(workspace)
    if name == "GINIDG":
        return ()
    return (f"{STAND_IN} at {ratio:g}:1." if ratio else f"{STAND_IN} at the ratio that the data allow.",)


def table_jobs(workspace: Workspace, setting: str) -> list[Job]:
    """All methods under a setting."""
    if setting == "GINIDG":
        name, ratio = mild(workspace)
        return workspace.grid(workspace.methods, [name], ratio=ratio)
    return workspace.grid(workspace.methods, [setting])


def all_jobs(workspace: Workspace) -> list[Job]:
    """All methods under all three settings."""
    return [job for setting in ("GINIDG", "TotalHeavyTail", "Duality") for job in table_jobs(workspace, setting)]


def _average(results: Results, name: str, notes: tuple[str, ...]) -> list[Output]:
    made = average_tables(results.chosen, results.missing)[0]
    table = replace(made, name=name, notes=(*made.notes, *notes))
    return [table, *averages_beside(table, results.workspace.benchmark)]


def average_recipe(name: str, label: str, setting: str, paper: str) -> Recipe:
    """Average, many, medium, few of every method under one setting."""
    return Recipe(
        name, label, f"target accuracy of all methods under {setting}", "table",
        lambda workspace: table_jobs(workspace, setting),
        lambda results: _average(results, name, mild_note(results.workspace) if setting == "GINIDG" else ()),
        paper=paper,
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


def main_recipes() -> list[Recipe]:
    """Those in this file."""
    return [
        average_recipe("ginidg", "Tab. 1", "GINIDG", "ginidg_average"),
        average_recipe("totalheavytail", "Tab. 2", "TotalHeavyTail", "totalheavytail_average"),
        average_recipe("duality", "Tab. 3", "Duality", "duality_average"),
        Recipe("cost", "Tab. 9", "training time of a batch", "table", cost_jobs, _cost, paper="cost"),
        Recipe(
            "worst-domain", "Tab. 12", "in-distribution accuracy of the worst source domain under Duality", "table",
            lambda workspace: table_jobs(workspace, "Duality"), _worst, paper="worst_domain",
        ),
        Recipe("detailed", "Tab. 13-20", "target accuracy of all methods, per target", "table", all_jobs, _detailed),
    ]  # fmt: skip
