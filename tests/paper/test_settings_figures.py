"""The table of imbalance ratios: the paper's numbers, and which source stands in which column."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.data import benchmarks
from longshift.paper.published_tables import paper_table
from longshift.paper.recipe import Results
from longshift.paper.reproducing import find_recipes
from longshift.paper.workspace import FULL_SCALE, Workspace
from longshift.report.table import Table
from longshift.training import OpenDataset
from tests.settings.made import manifest

MISPRINTED = {
    ("VLCS", "TotalHeavyTail", "C"),
    *(("PACS", "Duality", target) for target in "ACP"),
}  # docs/guides/settings.md


def ratios_of(name: str) -> Table:
    known = benchmarks.get_benchmark(name)
    data = manifest({known.domains[key]: row for key, row in known.totals.items()}, name)
    space = Workspace(OpenDataset(name, data), name, Path("nowhere"), FULL_SCALE, ("erm",), data.domain_names)
    (recipe,) = find_recipes(["ratios"])
    (table,) = recipe.make(Results(space, (), {}))
    assert isinstance(table, Table)
    return table


@pytest.mark.parametrize("name", ["VLCS", "PACS", "OfficeHome"])
def test_ratios_are_the_papers_in_its_order(name: str) -> None:
    table, known = ratios_of(name), benchmarks.get_benchmark(name)
    measured = {
        (row.name, column.key["setting"], column.key["measure"]): row.cells[j].value
        for row in table.rows
        for j, column in enumerate(table.columns)
    }
    paper = paper_table("setting_ratios")
    compared = 0
    for line in paper[paper["dataset"] == name].to_dict("records"):
        if (name, line["setting"], line["target"]) in MISPRINTED:
            continue
        titles = {"class_ratio": "CR", "domain_ratio": "DR"}
        titles |= {f"source_class_ratio_{i}": f"ECR {i}" for i in (1, 2, 3)}
        for column, title in titles.items():
            ours = measured[known.domains[line["target"]], line["setting"], title]
            assert ours == pytest.approx(line[column], abs=0.01)  # some digits are rounded, some cut off
            compared += 1
    assert compared == {"VLCS": 11, "PACS": 9, "OfficeHome": 8}[name] * 5


def test_an_order_of_sources_other_than_that_of_the_names_is_noted() -> None:
    assert ratios_of("PACS").notes == ()
    assert len(ratios_of("VLCS").notes) == 1  # the published counts of GINIDG have sun before pascal_voc
