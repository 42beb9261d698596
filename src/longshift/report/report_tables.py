"""The built-in tables of a report: average/many/medium/few, per target, worst domain, cost, and those of siblings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from longshift.report.bound_tables import bound_tables
from longshift.report.missing_runs import Missing
from longshift.report.paired_differences import paired_tables
from longshift.report.run_lengths import length_tables, why_no_lengths
from longshift.report.table import Cell, Column, Row, Table, float_or_none, method_rows, slug, with_places
from longshift.report.table_registry import ReportRuns, check_runs, find_kinds, register_table
from longshift.report.theory import theory_tables, why_no_theory
from longshift.report.titles import GROUPS, RULES, order_datasets, order_places, order_settings
from longshift.results import averages, per_target
from longshift.text import counted

SPREAD = "mean ± standard error over trials"
DIVISORS = "Standard errors of means have divisor n, as in the paper; those of differences have n - 1."


def build_tables(runs: ReportRuns | pd.DataFrame, kinds: Sequence[str] = ()) -> list[Table]:
    """Return the tables of the given kinds, by default of all that are made by default."""
    given = runs if isinstance(runs, ReportRuns) else ReportRuns(runs)
    check_runs(given.frame)
    return unique_names([table for kind in find_kinds(kinds) for table in kind.build(given)])


def omitted_tables(runs: ReportRuns | pd.DataFrame, kinds: Sequence[str] = ()) -> dict[str, str]:
    """Return the kinds of tables that these runs lack the numbers for, with a line that says so."""
    given = runs if isinstance(runs, ReportRuns) else ReportRuns(runs)
    found = {kind.name: kind.why_not(given) for kind in find_kinds(kinds)}
    return {kind: line for kind, line in found.items() if line}


def average_tables(chosen: pd.DataFrame, missing: Missing) -> list[Table]:
    """One table per setting: average, many, medium and few of each dataset, averaged over targets."""
    found = averages(chosen, [f"target_{m}" for m in GROUPS])
    tables = []
    for setting in order_settings(found["setting"]):
        targets = _targets(chosen, setting)
        columns = [
            Column(title, dataset, _key(dataset, setting, "", f"target_{m}"))
            for dataset in order_datasets(targets)
            for m, title in GROUPS.items()
        ]
        over = ", ".join(f"{targets[d]} of {d}" for d in order_datasets(targets))
        caption = f"Averaged inside each trial over the targets ({over}); {SPREAD}. {DIVISORS}"
        title = f"Target accuracy (%) under {setting}"
        tables.append(_table(f"average-{slug(setting)}", title, caption, columns, found, targets, missing))
    return tables


def target_tables(chosen: pd.DataFrame, missing: Missing) -> list[Table]:
    """One table per dataset and setting: accuracy on each target, and their average."""
    single, mean = per_target(chosen, ["target_accuracy"]), averages(chosen, ["target_accuracy"])
    found = pd.concat([single, mean.assign(target="")], ignore_index=True)
    tables = []
    for dataset, setting in order_places(found):
        here = single[(single["dataset"] == dataset) & (single["setting"] == setting)]
        columns = [
            Column(target or "Average", "Target" if target else "", _key(dataset, setting, target, "target_accuracy"))
            for target in [*sorted(here["target"].unique()), ""]
        ]
        name = f"target-{slug(dataset)}-{slug(setting)}"
        title = f"Target accuracy (%) on {dataset} under {setting}, per target"
        targets = _targets(chosen, setting)
        tables.append(_table(name, title, f"{SPREAD.capitalize()}.", columns, found, targets, missing))
    return tables


def worst_tables(chosen: pd.DataFrame, missing: Missing) -> list[Table]:
    """One table per setting: accuracy of the worst source domain on held-out samples, per target."""
    if (chosen["rule"] == "oracle").any():
        return []  # source domains are not evaluated along the way
    found = per_target(chosen, ["test_worst_domain"])
    caption = f"Column T: the source domain that does worst when T is the target. {SPREAD.capitalize()}."
    tables = []
    for setting in order_settings(found["setting"]):
        part = found[found["setting"] == setting]
        if part["test_worst_domain"].isna().all():
            continue
        columns = [
            Column(target, dataset, _key(dataset, setting, target, "test_worst_domain"))
            for dataset in order_datasets(part["dataset"])
            for target in sorted(part.loc[part["dataset"] == dataset, "target"].unique())
        ]
        title, targets = f"Worst-domain in-distribution accuracy (%) under {setting}", _targets(chosen, setting)
        tables.append(_table(f"worst-{slug(setting)}", title, caption, columns, found, targets, missing))
    return tables


def cost_tables(frame: pd.DataFrame) -> list[Table]:
    """One table: milliseconds per training step and, where measured, GPU memory, of each dataset."""
    good = frame[(frame["status"] == "done") & frame["seconds_per_step"].notna()]
    if good.empty:
        return []
    columns: list[Column] = []
    for dataset in order_datasets(good["dataset"]):
        columns.append(Column("ms per step", dataset, _key(dataset, "", "", "ms_per_step"), None))
        if good.loc[good["dataset"] == dataset, "memory_gib"].notna().any():
            columns.append(Column("memory (GiB)", dataset, _key(dataset, "", "", "memory_gib"), None))
    costs = good.assign(ms_per_step=good["seconds_per_step"] * 1000)

    def cell(method: str, column: Column) -> Cell:
        part = costs[(costs["method"] == method) & (costs["dataset"] == column.key["dataset"])]
        values = part[column.key["measure"]].dropna()
        note = "" if len(values) else "no finished run"
        digits = 1 if column.key["measure"] == "ms_per_step" else 2
        return Cell(float_or_none(values.mean()), note=note, digits=digits, runs=len(values))

    rows = method_rows(good["method"], lambda method: (cell(method, column) for column in columns))
    devices = sorted(set(good["device"]) - {""})
    notes = [f"Measured on: {'; '.join(devices)}."] if devices else []
    if len(devices) > 1:
        notes.append(
            "The runs come from different machines: compare times only between methods that ran on the same machines."
        )
    caption = "Mean over all finished runs, whatever their hyper-parameters; evaluation is not counted."
    title = "Time and memory of a training step"
    return [Table("cost", "cost", title, tuple(columns), rows, caption, notes=tuple(notes))]


def _table(
    name: str, title: str, caption: str, columns: Sequence[Column], found: pd.DataFrame,
    targets: Mapping[str, int], missing: Missing,
) -> Table:  # fmt: skip
    setting, datasets = columns[0].key["setting"], {column.key["dataset"] for column in columns}
    found = found[(found["setting"] == setting) & found["dataset"].isin(datasets)]
    keys = ["dataset", "target"] if "target" in found else ["dataset"]
    records = {(*(r[k] for k in keys), r["method"]): r for r in found.to_dict("records")}
    depths = {place: _depth(record, targets) for place, record in records.items()}
    trials, draws = (max(values) for values in zip(*depths.values(), strict=True))

    def cell(method: str, column: Column) -> Cell:
        place = (*(column.key[k] for k in keys), method)
        return _cell(records.get(place), column.key["measure"], depths.get(place, (0, 0.0)), (trials, draws))

    rows = method_rows(found["method"], lambda method: (cell(method, column) for column in columns))
    notes = with_spread_note(rows, missing.of(setting, datasets))
    rule = str(found["rule"].iloc[0])
    best = f"the best of {counted(round(draws), 'draw')} in each" if draws > 1 else "one draw in each"
    caption = f"{caption} {counted(trials, 'trial')}, {best}, unless marked. Selection: {rule} ({RULES[rule]})."
    return with_places(Table(name, name.partition("-")[0], title, tuple(columns), rows, caption, rule, notes))


def with_spread_note(rows: Sequence[Row], missing: Missing) -> tuple[str, ...]:
    """The notes of a table: what is missing, and before it why there is no standard error."""
    one = all(cell.trials <= 1 for row in rows for cell in row.cells)
    return (*(["One trial: there is no standard error."] if one else []), *missing.sentences())


def _targets(chosen: pd.DataFrame, setting: str) -> dict[str, int]:
    """How many targets each dataset has under a setting."""
    counts = chosen[chosen["setting"] == setting].groupby("dataset", observed=True)["target"].nunique()
    return {str(dataset): int(n) for dataset, n in counts.items()}


def _depth(row: Mapping[Hashable, Any], targets: Mapping[str, int]) -> tuple[int, float]:
    """Trials behind a number, and draws that each was the best of, on average."""
    trials = int(row["trials"])
    parts = 1 if row.get("target") else targets[str(row["dataset"])]
    return trials, float(row["runs"]) / (trials * parts) if trials else 0.0


def _cell(row: Mapping[Hashable, Any] | None, measure: str, depth: tuple[int, float], most: tuple[int, float]) -> Cell:
    """A number of the paper's kind: percent, one decimal, with a note if less stands behind it than elsewhere."""
    if row is None:
        return Cell(note="not run here")
    value, stderr = float_or_none(100 * row[measure]), float_or_none(100 * row[f"{measure}_stderr"])
    (trials, draws), runs, lost = depth, int(row["runs"]), int(row["trials_missing"])
    if value is None:
        return Cell(note="no class in this group" if trials else "no complete trial", trials=trials, runs=runs)
    notes = []
    if trials < most[0] or lost:
        notes.append(f"{trials} of {counted(max(most[0], trials + lost), 'trial')}")
    if row["missing"] or row["diverged"]:
        if not notes:
            parts = [f"{row[k]} {w}" for k, w in (("missing", "not finished"), ("diverged", "diverged")) if row[k]]
            notes.append(f"chosen among fewer draws ({', '.join(parts)})")
    elif draws < most[1]:
        notes.append(f"{draws:.3g} of {counted(round(most[1]), 'draw')}")
    return Cell(value, stderr, note=", ".join(notes), trials=trials, runs=runs)


def _key(dataset: str, setting: str, target: str, measure: str) -> dict[str, str]:
    return {"dataset": dataset, "setting": setting, "target": target, "measure": measure}


def unique_names(tables: Sequence[Table]) -> list[Table]:
    """Two datasets may differ only in signs that a file name does not keep; their tables get numbers."""
    seen: dict[str, int] = {}
    result = []
    for table in tables:
        seen[table.name] = seen.get(table.name, 0) + 1
        result.append(replace(table, name=f"{table.name}-{seen[table.name]}") if seen[table.name] > 1 else table)
    return result


register_table(
    "average", "average, many, medium and few of each dataset, averaged over targets",
    title="Average, many, medium, few",
    intro="Accuracy on domains never seen in training. Click a heading to sort.",
)(lambda runs: average_tables(runs.chosen, runs.missing))  # fmt: skip
register_table(
    "paired", "differences from the method of --against, trial by trial on the same target", title="Differences",
    default=False,
)(lambda runs: paired_tables(runs.chosen, runs.against))  # fmt: skip
register_table("target", "accuracy on each target", title="Target by target")(
    lambda runs: target_tables(runs.chosen, runs.missing)
)
register_table(
    "worst", "accuracy of the worst source domain on held-out samples", title="Worst domain",
    intro="Accuracy on held-out samples of the training domain with the lowest accuracy.",
)(lambda runs: worst_tables(runs.chosen, runs.missing))  # fmt: skip
register_table("cost", "time and memory per training step", title="Training cost")(lambda runs: cost_tables(runs.frame))
register_table(
    "theory", "correlation of margins and posterior discrepancies with target accuracy",
    why_not=lambda runs: why_no_theory(runs.chosen),
)(lambda runs: theory_tables(runs.chosen))  # fmt: skip
register_table(
    "length", "validation accuracy during training: were the runs long enough?", title="Run length",
    why_not=lambda runs: why_no_lengths(runs.frame),
)(lambda runs: length_tables(runs.frame))  # fmt: skip
register_table(
    "bound", "terms of the generalization bound, for runs with kept predictions", title="Generalization bound",
    default=False,
)(bound_tables)  # fmt: skip
