"""Fig. 11: do the methods differ, and which? Friedman, Nemenyi, and Wilcoxon with Holm's correction."""

from __future__ import annotations

import pandas as pd

from longshift.errors import LongshiftError
from longshift.paper.chosen_runs import Results
from longshift.paper.published_tables import overall_results
from longshift.paper.recipe import Impossible, Output, Picture, Recipe
from longshift.paper.recipes.main_tables import all_jobs
from longshift.report import Cell, Column, Row, Table, method_title, order_methods
from longshift.results import per_target
from longshift.text import counted

ALPHA = 0.05


def measured_scores(results: Results) -> pd.DataFrame:
    """Target accuracy: one row per case (setting, target), one column per method.

    Cases that no method has are left out, then methods with gaps, and then trials that some of the methods lack.
    """
    from longshift.report import common_trials

    single = per_target(results.chosen, ["target_accuracy"])
    scores = single.pivot_table(
        index=["dataset", "setting", "target"], columns="method", values="target_accuracy", dropna=False
    )
    scores = scores[order_methods(str(name) for name in scores.columns)].dropna(how="all").dropna(axis=1)
    shared, _ = common_trials(results.chosen, scores)
    return shared.groupby(level=list(scores.index.names), sort=False).mean()


def paper_scores() -> pd.DataFrame:
    """The paper's Tables 1 to 3: one row per column of theirs (dataset, setting, group of classes)."""
    found = overall_results()
    scores = found.pivot_table(index=["dataset", "setting", "group"], columns="method", values="mean")
    return scores[order_methods(str(name) for name in scores.columns)]


def diagram(scores: pd.DataFrame, name: str, heading: str, what: str) -> Picture:
    """The critical-difference diagram of some scores."""
    from longshift.analysis import friedman, nemenyi_critical_difference, rank_groups
    from longshift.report import rank_diagram

    try:
        test = friedman(scores)
        difference = nemenyi_critical_difference(scores.shape[1], scores.shape[0], ALPHA)
    except LongshiftError as error:
        raise Impossible(str(error)) from error
    ranks = {method_title(method): rank for method, rank in test.ranks.items()}
    groups = rank_groups(ranks, difference)
    drawing = rank_diagram(ranks, difference, groups, test.cases, heading, method_title("ndcl"))
    caption = (
        f"{what} Rank 1 is best; methods that a bar joins differ by less than the critical difference {difference:.2f} "
        f"(Nemenyi, alpha = {ALPHA}). Friedman: chi2 = {test.chi2:.1f} (p = {test.chi2_p:.2g}); {test.f_words()}; "
        f"{test.cases} cases."
    )
    data = pd.DataFrame({"method": list(test.ranks), "rank": list(test.ranks.values())})
    return Picture(name, heading, drawing, caption, data.assign(cases=test.cases, critical_difference=difference))


def pairs_table(scores: pd.DataFrame) -> Table:
    """NDCL, or the method with the best rank where it takes no part, against each other one by Wilcoxon's test."""
    from longshift.analysis import friedman, wilcoxon_holm

    test = friedman(scores)
    first = "ndcl" if "ndcl" in test.ranks else next(iter(test.ranks))
    titles = {"difference": "mean difference", "p": "p", "p_holm": "p (Holm)"}
    columns = tuple(Column(title, "", {"measure": measure}, None) for measure, title in titles.items())
    rows = []
    for pair in wilcoxon_holm(scores, against=first):
        other = pair.worse if pair.better == first else pair.better
        gap = 100 * float((scores[first] - scores[other]).mean())
        cells = (Cell(gap, signed=True), *(Cell(p, digits=4, least=0.0001) for p in (pair.p, pair.p_holm)))
        rows.append(Row(other, method_title(other), "", cells))
    title = f"{method_title(first)} against each method, Wilcoxon's signed-rank test"
    caption = (
        f"Over {counted(len(scores), 'case')} (setting and target); differences are in points of target "
        f"accuracy, positive where {method_title(first)} is better; Holm's correction is for all {len(rows)} tests."
    )
    return Table("friedman-pairs", "significance", title, columns, tuple(rows), caption)


def _make(results: Results) -> list[Output]:
    scores = measured_scores(results)
    if scores.shape[1] < 2:
        raise Impossible(f"no test is possible: it compares at least 2 methods, found {scores.shape[1]}")
    own = diagram(
        scores, "friedman", f"Average ranks on {results.workspace.name}",
        f"Ranks of target accuracy over {scores.shape[0]} cases (setting and target).",
    )  # fmt: skip
    published = paper_scores()
    theirs = diagram(
        published, "friedman-paper", "Average ranks that follow from the paper's Tables 1 to 3",
        f"Ranks over the {len(published)} columns of the paper's Tables 1 to 3 (average, many, medium and few).",
    )  # fmt: skip
    return [own, theirs, pairs_table(scores)]


def friedman_recipes() -> list[Recipe]:
    """The one in this file."""
    return [
        Recipe(
            "friedman", "Fig. 11", "average ranks, Friedman and Nemenyi tests", "figure", all_jobs, _make,
            paper="friedman",
        )
    ]  # fmt: skip
