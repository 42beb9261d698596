"""Measured numbers compared with published ones: differences, and whether the methods come in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from scipy import stats

from longshift.report.table import Cell, Column, Table, TableRow, slug
from longshift.report.titles import family, method_title, words

MEASURES = {"target_accuracy": "average", "target_many": "many", "target_medium": "medium", "target_few": "few"}
PLACED = ("average", "target", "worst")  # kinds of tables whose columns are of one dataset and setting
PublishedKey = tuple[str, str, str, str, str]  # kind, dataset, setting, target or group, method


@dataclass(frozen=True)
class Published:
    """Numbers from elsewhere. `source` names it; values are (mean, standard error or None) in percent."""

    source: str
    backbone: str  # that they were measured with
    values: Mapping[PublishedKey, tuple[float, float | None]]


def published(source: str, averages: pd.DataFrame, worst: pd.DataFrame, backbone: str = "ResNet-50") -> Published:
    """From frames with columns method, dataset, setting, group (or target), mean, stderr.

    Targets of `worst` must be spelled as the measured ones are.
    """
    values: dict[PublishedKey, tuple[float, float | None]] = {}
    for kind, frame, part in (("average", averages, "group"), ("worst", worst, "target")):
        columns = [frame[name] for name in ("dataset", "setting", part, "method", "mean", "stderr")]
        for dataset, setting, detail, method, mean, stderr in zip(*columns, strict=True):
            key = (kind, str(dataset), str(setting), str(detail), str(method))
            values[key] = (float(mean), None if pd.isna(stderr) else float(stderr))
    return Published(source, backbone, values)


@dataclass(frozen=True)
class Comparison:
    """What a comparison with published numbers found."""

    against: Published  # the published numbers
    numbers: int  # how many numbers were compared; 0 if there is none in common
    close: int  # how many of them lie within one point
    # Rows of the agreement of averages: whether the methods come in the same order, by dataset and setting
    orders: tuple[TableRow, ...]
    measured: tuple[tuple[str, str], ...]  # the pairs of dataset and setting that were measured
    backbones: tuple[str, ...] = ()  # what the runs were measured with

    @property
    def published(self) -> list[tuple[str, str]]:
        """The pairs of dataset and setting that were published."""
        return sorted({key[1:3] for key in self.against.values})


def compare(
    tables: Sequence[Table], against: Published, backbones: Sequence[str] = ()
) -> tuple[list[Table], Comparison]:
    """Tables of agreement and of measured, published and difference; and what they show."""
    found: list[Table] = []
    agreement: list[TableRow] = []
    for table in tables:
        for place in dict.fromkeys(map(_place, table.columns)) if table.kind in ("average", "worst") else ():
            made = _beside(table, place, against)
            if made is not None:
                found.append(made)
                agreement += _agreement(made)
    here = tuple(sorted({_place(c) for t in tables for c in t.columns if t.kind in PLACED}))
    differences = [cell.value for table in found for row in table.rows for cell in row.cells[2::3]]
    shown = [abs(round(value, 1)) for value in differences if value is not None]
    close = sum(value <= 1 for value in shown)
    orders = tuple(row for row in agreement if row.title.endswith(": Average") and row.cells[3].value is not None)
    facts = Comparison(against, len(shown), close, orders, here, tuple(backbones))
    if not found:
        return [], facts
    titles = ("methods (n)", "mean difference", "mean |difference|", "Spearman", "Kendall")
    measures = ("methods", "mean_difference", "mean_absolute_difference", "spearman", "kendall")
    heads = tuple(Column(t, "", {"measure": m}, None) for t, m in zip(titles, measures, strict=True))
    title, caption = f"Agreement with {against.source}", words("agreement_caption")
    summary = Table("agreement", "agreement", title, heads, tuple(agreement), caption, head="Column")
    return [summary, *found], facts


def _place(column: Column) -> tuple[str, str]:
    return column.key["dataset"], column.key["setting"]


def _beside(table: Table, place: tuple[str, str], against: Published) -> Table | None:
    dataset, setting = place
    columns = [j for j, column in enumerate(table.columns) if _place(column) == place]
    rows, used = [], 0
    for row in table.rows:
        cells: list[Cell] = []
        for j in columns:
            column, cell = table.columns[j], row.cells[j]
            detail = MEASURES.get(column.key["measure"]) if table.kind == "average" else column.key["target"]
            there = against.values.get((table.kind, dataset, setting, str(detail), row.name))
            other = Cell(*there) if there else Cell(note=f"not in {against.source}")
            difference = Cell(cell.value - there[0], signed=True) if there and cell.value is not None else Cell()
            used += difference.value is not None
            cells += [replace(cell, place=None), other, difference]
        if any(cell.value is not None for cell in cells[1::3]):
            rows.append(TableRow(row.name, method_title(row.name), family(row.name), tuple(cells)))
    if not used:
        return None
    kept = {row.name for row in rows}
    names = [row.title for row in table.rows if row.name not in kept]
    absent = [words("unpublished_note", source=against.source, names=names)] if names else []
    titles = [
        Column(title, table.columns[j].title, {**table.columns[j].key, "part": title}, None)
        for j in columns
        for title in ("measured", "published", "difference")
    ]
    what = "target accuracy" if table.kind == "average" else "worst-domain in-distribution accuracy"
    return Table(
        f"paper-{table.kind}-{slug(dataset)}-{slug(setting)}", "paper",
        f"{dataset} under {setting}: {what} (%) compared with {against.source}", tuple(titles), tuple(rows),
        words("published_caption", against=against, rule=table.rule), table.rule, (*absent, *table.notes),
    )  # fmt: skip


def _agreement(table: Table) -> Iterator[TableRow]:
    for j in range(0, len(table.columns), 3):
        pairs = [(row.cells[j].value, row.cells[j + 1].value) for row in table.rows]
        values = [(a, b) for a, b in pairs if a is not None and b is not None]
        if not values:
            continue
        differences = pd.Series([a - b for a, b in values])
        rho, tau = rank_correlation([a for a, _ in values], [b for _, b in values])
        why = "" if rho is not None else "fewer than 3 methods, or all equal"
        cells = (
            Cell(len(values), digits=0),
            Cell(float(differences.mean()), signed=True),
            Cell(float(differences.abs().mean())),
            Cell(rho, digits=2, note=why),
            Cell(tau, digits=2, note=why),
        )
        key, column = table.columns[j].key, table.columns[j]
        worst = " (worst domain)" if key["measure"] == "test_worst_domain" else ""
        name = f"{key['dataset']}, {key['setting']}: {column.group}{worst}"
        yield TableRow(name, name, f"{key['dataset']} {key['setting']}", cells)


def rank_correlation(measured: Sequence[float], there: Sequence[float]) -> tuple[float | None, float | None]:
    """Spearman's rho and Kendall's tau-b; None for fewer than three pairs or where one side is all equal."""
    if len(measured) < 3 or len(set(measured)) < 2 or len(set(there)) < 2:
        return None, None
    rho, tau = stats.spearmanr(measured, there).statistic, stats.kendalltau(measured, there).statistic
    return float(rho), float(tau)
