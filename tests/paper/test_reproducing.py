"""Recipes from runs to files: a small cut of all kinds, numbers by other means, and unhappy inputs."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from scipy.stats import mannwhitneyu, pearsonr

from longshift.analysis import domain_outputs
from longshift.errors import UsageError
from longshift.paper.failures import class_rates
from longshift.paper.published_tables import averages_beside, paper_rows
from longshift.paper.recipe import predictions_file, read_results
from longshift.paper.reproducing import (
    RecipeStatus,
    ReproduceResult,
    StatusList,
    all_recipes,
    find_recipes,
    jobs_of,
    list_status,
    reproduce,
    unfinished_jobs,
    write_output,
)
from longshift.paper.workspace import Scale, Workspace, open_workspace, quick_scale
from longshift.report.table import Cell, Column, Table, TableRow
from longshift.sweep import Slot
from longshift.templates import render
from longshift.training import Runtime
from tests.golden import check_golden

SLOTS = [Slot("cpu", 1)]
CUT = (
    "totalheavytail", "quantitative", "pearson", "prior", "per-class", "friedman", "failure-misaligned",
    "failure-absorbed", "settings-duality",
)  # fmt: skip


def tiny_scale() -> Scale:
    quick = quick_scale("digits")
    return replace(quick, steps=2, trials=1, targets=1, exponents=(-1,), rhos=(0.2,))


def workspace(out: Path, methods: tuple[str, ...] = ("erm", "bsoftmax", "ndcl"), **changes: Any) -> Workspace:
    return open_workspace("digits", replace(tiny_scale(), **changes), out, methods=methods)


def make(space: Workspace, *names: str) -> ReproduceResult:
    return reproduce(space, find_recipes(names), SLOTS, Runtime(device="cpu"))


def cells(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, ReproduceResult]:
    """Nine recipes at two steps a run."""
    space = workspace(tmp_path_factory.mktemp("cut"))
    return space, make(space, *CUT)


@pytest.fixture
def copied(cut: tuple[Workspace, ReproduceResult], tmp_path: Path) -> Workspace:
    """The same runs, free to be spoilt. Files of counts keep their place, which runs are named by."""
    shutil.copytree(cut[0].out, tmp_path / "copy")
    return replace(cut[0], out=tmp_path / "copy")


def test_every_recipe_has_a_name_and_a_label_of_its_own() -> None:
    names, labels = [r.name for r in all_recipes()], [r.label for r in all_recipes()]
    assert len(set(names)) == len(set(labels)) == len(names) == 22
    assert labels[0] == "Tab. 1"
    assert labels[-1] == "Fig. 11"


def test_find_recipes_by_name_or_label() -> None:
    assert [r.name for r in find_recipes(["Tab. 4", "fig11", "ablation"])] == ["ablation", "friedman"]
    with pytest.raises(UsageError, match="ablation"):
        find_recipes(["ablatoin"])


@pytest.mark.slow
def test_all_of_the_cut_is_written(cut: tuple[Workspace, ReproduceResult]) -> None:
    space, made = cut
    assert not made.failed
    assert not made.impossible
    assert not made.failed_runs
    assert set(made.files) == set(CUT)
    for recipe in find_recipes(CUT):
        endings = {path.suffix for path in made.files[recipe.name]}
        assert endings >= ({".md", ".csv", ".tex"} if recipe.kind == "table" else {".png", ".svg", ".csv"})
        assert all(path.stat().st_size > 0 for path in made.files[recipe.name])
        assert list_status(space, [recipe]).recipes[0].state == "done"
    overview = (space.out / "README.md").read_text(encoding="utf-8")
    assert all(recipe.label in overview for recipe in all_recipes())


@pytest.mark.slow
def test_recipes_share_runs(cut: tuple[Workspace, ReproduceResult]) -> None:
    space, _ = cut
    assert not unfinished_jobs(space, jobs_of(space, find_recipes(["duality", "detailed"])))
    again = make(space, "duality", "worst-domain", "detailed")
    assert not again.failed
    results = list(space.store.jobs.glob("*/result.json"))
    assert len(results) == 9 + 2 + 2  # 3 methods x 3 settings, and 2 rows of each failure study


def outputs(space: Workspace, method: str, setting: str) -> dict[str, Any]:
    job = next(
        j for j in find_recipes(["totalheavytail", "duality"])[setting == "Duality"].jobs(space) if j.method == method
    )
    path = predictions_file(space, job.fingerprint)
    assert path is not None
    with np.load(path) as found:
        return {name: found[name] for name in found.files}


def posterior_by_hand(arrays: dict[str, Any]) -> float:
    held = {
        name: np.concatenate([arrays[f"{part}_{name}"] for part in ("validation", "test")])
        for name in ("logits", "labels", "domains")
    }
    p, goal = softmax(held["logits"].astype(float), 1), softmax(arrays["target_logits"].astype(float), 1)
    per_class = []
    for k in range(10):
        target = goal[arrays["target_labels"] == k].mean(0)
        rows = [p[(held["labels"] == k) & (held["domains"] == d)].mean(0) for d in np.unique(held["domains"])]
        per_class.append(np.mean([jensenshannon(row, target) ** 2 for row in rows]))
    return float(np.mean(per_class))


@pytest.mark.slow
def test_quantities_by_hand(cut: tuple[Workspace, ReproduceResult]) -> None:
    space, _ = cut
    found = {(r["setting"], r["method"], r["measure"]): float(r["mean"]) for r in cells(space.out, "quantitative")}
    points: dict[str, list[float]] = {"margin": [], "small_margin": [], "posterior": [], "accuracy": []}
    for setting in ("TotalHeavyTail", "Duality"):
        for method in ("bsoftmax", "ndcl"):
            arrays = outputs(space, method, setting)
            p, y = softmax(arrays["target_logits"].astype(float), 1), arrays["target_labels"]
            margins = [row[k] - max(np.delete(row, k)) for row, k in zip(p, y, strict=True)]
            values = {
                "margin": np.mean(margins), "small_margin": np.mean(np.array(margins) <= 0),
                "posterior": posterior_by_hand(arrays), "accuracy": np.mean(p.argmax(1) == y),
            }  # fmt: skip
            for name, value in values.items():
                points[name].append(float(value))
                if name != "accuracy":
                    assert found[setting, method, name] == pytest.approx(value, rel=1e-4, abs=1e-6)
    table = {(r["measure"], r["method"]): float(r["mean"]) for r in cells(space.out, "pearson")}
    for name in ("margin", "small_margin", "posterior"):
        r, p_value = pearsonr(points[name], points["accuracy"])
        assert table[name, "correlation"] == pytest.approx(r, rel=1e-3, abs=1e-4)
        assert table[name, "p_value"] == pytest.approx(p_value, rel=1e-2, abs=1e-4)


def test_area_under_a_roc_curve_is_the_share_of_pairs_in_order() -> None:
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    _, curves, areas = class_rates(domain_outputs("d", logits, labels), [2, 0, 1])
    p = softmax(logits, 1)
    for row, k in enumerate([2, 0, 1]):
        u = mannwhitneyu(p[labels == k, k], p[labels != k, k]).statistic
        assert areas[row] == pytest.approx(u / ((labels == k).sum() * (labels != k).sum()))
        assert (np.diff(curves[row]) >= 0).all()


# -- unhappy inputs ------------------------------------------------------------------------------------------------


def spoil(space: Workspace, change: Any, method: str = "ndcl") -> str:
    """Rewrite the predictions of every run of a method; the name of the one that is read first."""
    jobs = [j for j in find_recipes(["quantitative"])[0].jobs(space) if j.method == method]
    for job in jobs:
        path = predictions_file(space, job.fingerprint)
        assert path is not None
        with np.load(path) as found:
            arrays = {name: found[name].copy() for name in found.files}
        np.savez(path, **change(arrays))
    return next(j.id for j in jobs if j.run["setting"] == "Duality")


def drop(arrays: dict[str, Any], part: str, gone: Any) -> dict[str, Any]:
    return {name: values[~gone] if name.startswith(part) else values for name, values in arrays.items()}


@pytest.mark.slow
def test_nan_logits_are_refused_with_the_runs_name(copied: Workspace) -> None:
    def broken(arrays: dict[str, Any]) -> dict[str, Any]:
        arrays["target_logits"][3, 1] = np.nan
        return arrays

    name = spoil(copied, broken)
    made = make(copied, "quantitative", "totalheavytail")
    assert set(made.files) == {"totalheavytail"}  # the others go on
    assert name in made.failed["quantitative"]


@pytest.mark.slow
def test_a_class_absent_from_the_target(copied: Workspace) -> None:
    for method in ("bsoftmax", "ndcl"):
        spoil(copied, lambda a: drop(a, "target", a["target_labels"] == 4), method)
    made = make(copied, "per-class", "quantitative", "pearson")
    assert not made.failed
    values = [r for r in cells(copied.out, "per-class") if r["class"] == "4"]
    assert values
    assert all(r["mean"] == "" for r in values)
    assert all(r["mean"] for r in cells(copied.out, "quantitative"))


@pytest.mark.slow
def test_one_method_only(copied: Workspace) -> None:
    alone = replace(copied, methods=("erm",))
    made = make(alone, "friedman", "totalheavytail", "rho", "quantitative", "ablation")
    assert set(made.impossible) == {"ablation", "friedman", "rho", "quantitative"}
    assert set(made.files) == {"totalheavytail"}


@pytest.mark.slow
def test_predictions_of_chosen_runs_are_made_again_where_draws_compete(tmp_path: Path) -> None:
    space = workspace(tmp_path, methods=("bsoftmax",), draws=2)
    made = make(space, "quantitative")
    assert not made.failed
    jobs = find_recipes(["quantitative"])[0].jobs(space)
    results = read_results(space, jobs)
    chosen = {str(name) for name in results.chosen["fingerprint"]}
    assert len(jobs) == 4
    assert len(chosen) == 2  # one draw of two, under each setting
    assert {j.fingerprint for j in jobs if predictions_file(space, j.fingerprint)} == chosen
    assert not list(space.store.jobs.glob("*/predictions.npz"))
    for name in chosen:  # the same run twice is the same model
        with np.load(predictions_file(space, name) or "") as arrays:
            right = float((arrays["target_logits"].argmax(1) == arrays["target_labels"]).mean())
        assert right == pytest.approx(results.result(name)["selected"]["target"]["accuracy"])


def test_the_papers_numbers_beside_measured_ones() -> None:
    key = {"dataset": "OfficeHome", "setting": "Duality", "target": ""}
    columns = (Column("Average", "OfficeHome", {**key, "measure": "target_accuracy"}),)
    rows = tuple(
        TableRow(name, name.upper(), "", (Cell(value, 0.1, runs=3),)) for name, value in (("erm", 50.0), ("ndcl", 56.7))
    )
    table = Table("duality", "average", "x", columns, rows, rule="validation")
    beside, agreement = averages_beside(table, "OfficeHome")
    assert (beside.name, agreement.name) == ("duality-beside-paper", "duality-agreement")
    shown = [[cell.value for cell in row.cells] for row in beside.rows]
    assert shown == [pytest.approx([50.0, 52.3, -2.3]), pytest.approx([56.7, 55.7, 1.0])]  # Tab. 3: 52.3 and 55.7
    assert averages_beside(table, None) == averages_beside(table, "DomainNet") == []
    assert len(paper_rows("ablation", "OfficeHome")) == 6 * 2 * 4
    assert paper_rows("ablation", "PACS").empty
    assert paper_rows("pearson", "OfficeHome").empty


def test_cells_that_a_spreadsheet_would_run_are_quoted(tmp_path: Path) -> None:
    table = Table("t", "average", "T", (Column("a"),), (TableRow("=1+1", "=1+1", "", (Cell(1.0),)),))
    write_output(table, tmp_path)
    assert cells(tmp_path, "t")[0]["method"] == "'=1+1"


def test_words_of_the_list() -> None:
    recipes = [
        RecipeStatus("ablation", "Tab. 4", "ablation of NDCL", 4, 2, 1, "partly", ()),
        RecipeStatus("ratios", "Tab. 5", "imbalance ratios", 0, 0, 0, "done", ("ratios.md",)),
    ]
    space = {"name": "digits", "scale": {"name": "quick"}, "out": "reproduce/digits/quick"}
    found = StatusList(4, 1, tuple(recipes))
    check_golden("reproduce_list.txt", render("longshift.paper", "status.txt.j2", workspace=space, found=found))
