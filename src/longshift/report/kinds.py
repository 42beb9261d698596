"""The kinds of tables of a report, each a registered function from runs to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from longshift.analysis import Relation, relate, relate_within
from longshift.array_types import FloatArray
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.registry import Registry
from longshift.report.runs import MissingRuns, each_once, find_missing
from longshift.report.table import Cell, Column, Table, TableRow, float_or_none, method_rows, slug, with_places
from longshift.report.titles import (
    GROUPS,
    method_title,
    order_datasets,
    order_methods,
    order_places,
    order_settings,
    words,
)
from longshift.sweep import Rule, averages, choose, per_target, standard_error
from longshift.text import counted

PAIRED_MEASURES = {"validation_accuracy": "Validation", "target_accuracy": "Target", "target_few": "Few"}
PAIR = ["dataset", "setting", "target", "trial"]
ALL = ("all", "all")  # instead of a dataset and a setting
ACCURACY = "target_accuracy"
CELL = ["dataset", "setting", "target"]
QUANTITIES = {  # with the sign that the theory expects
    "target_margin": ("Margin on the target", "+"),
    "validation_margin": ("Margin on validation", "+"),
    "posterior_target": ("Posterior discrepancy to the target", "-"),
    "posterior_sources": ("Posterior discrepancy among sources", "-"),
}
THEORY_COLUMNS = tuple(  # narrow enough for a terminal of 80 columns
    Column(title, "", {"measure": measure}, None)
    for measure, title in (
        ("n", "n"), ("pearson", "r"), ("pearson_low", "from"), ("pearson_high", "to"), ("pearson_p", "p"),
        ("spearman", "rho"), ("spearman_p", "p"),
    )
)  # fmt: skip
FLAT = "does not vary"
FEW = "too few points"


@dataclass(frozen=True, eq=False)
class ReportRuns:
    """The runs of a report and its options: what a kind of table is made from.

    Attributes:
        frame: All runs, also those without numbers, as `collect(path, missing=True)` returns them.
        rule: How the weights of each run and the best draw of each trial are chosen.
        against: The method that others are compared with; empty if none was named.
        folders: Where each run is kept, by fingerprint; empty for a table of runs.

    Example:
        >>> import pandas as pd
        >>> ReportRuns(pd.DataFrame({"method": ["erm"]}), against="erm").rule
        'validation'
    """

    frame: pd.DataFrame
    rule: Rule = "validation"
    against: str = ""
    folders: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def chosen(self) -> pd.DataFrame:
        """The best draw of each trial."""
        return choose(self.frame, self.rule)

    @cached_property
    def missing(self) -> MissingRuns:
        """Runs without numbers."""
        return find_missing(self.frame)


Build = Callable[[ReportRuns], Sequence[Table]]


@dataclass(frozen=True)
class TableKind:
    """A kind of table; see `register_table`."""

    name: str
    description: str
    build: Build
    title: str
    intro: str
    default: bool


KINDS: Registry[TableKind] = Registry("kind of table")


def register_table(
    name: str, description: str, *, title: str = "", intro: str = "", default: bool = True
) -> Callable[[Build], Build]:
    """Register a function as a kind of table of `longshift report`.

    Args:
        name: What `--table` calls it.
        description: One line for `longshift report --help` and the documentation.
        title: The heading of its section on the page; by default the name.
        intro: A sentence below the heading.
        default: Whether it is among the tables that are made when no kind is named.

    Returns:
        A decorator that returns the function unchanged.

    Raises:
        LongshiftError: The name is taken.

    Example:
        >>> from longshift.report import Cell, Column, TableRow, Table, register_table
        >>> @register_table("runs-per-method", "number of finished runs of each method", default=False)
        ... def runs_per_method(runs):
        ...     counts = runs.frame["method"].value_counts()
        ...     rows = tuple(TableRow(m, m, "", (Cell(n, digits=0),)) for m, n in counts.items())
        ...     return [Table("runs", "runs-per-method", "Runs", (Column("runs"),), rows)]
    """

    def register(build: Build) -> Build:
        KINDS.add(name, TableKind(name, description, build, title or name.capitalize(), intro, default))
        return build

    return register


def table_kinds() -> tuple[TableKind, ...]:
    """Return all registered kinds, in the order of the report."""
    return tuple(KINDS.values())


def build_tables(runs: ReportRuns | pd.DataFrame, kinds: Sequence[str] = ()) -> list[Table]:
    """Return the tables of the given kinds, by default of all that are made by default."""
    given = runs if isinstance(runs, ReportRuns) else ReportRuns(runs)
    wanted = [KINDS.find(name) for name in kinds] or [kind for kind in table_kinds() if kind.default]
    states = given.frame["status"].value_counts()
    if not states.get("done"):
        found = ", ".join(f"{n} {state}" for state, n in states.items()) or "none at all"
        raise LongshiftError(f"no finished run to report on; found {found}. See `longshift sweep status`.")
    tables = [table for kind in wanted for table in kind.build(given)]
    if not tables:
        raise LongshiftError(f"these runs have no numbers for a table of {', '.join(kind.name for kind in wanted)}")
    return tables


def average_tables(chosen: pd.DataFrame, missing: MissingRuns) -> list[Table]:
    """One table per setting: average, many, medium and few of each dataset, averaged over targets."""
    found = averages(chosen, [f"target_{m}" for m in GROUPS]).assign(target="")
    tables = []
    for setting in order_settings(found["setting"]):
        columns = [
            Column(title, dataset, _key(dataset, setting, "", f"target_{m}"))
            for dataset in order_datasets(found.loc[found["setting"] == setting, "dataset"])
            for m, title in GROUPS.items()
        ]
        title = f"Target accuracy (%) under {setting}"
        tables.append(_accuracy_table(f"average-{slug(setting)}", title, columns, found, chosen, missing))
    return tables


def target_tables(chosen: pd.DataFrame, missing: MissingRuns) -> list[Table]:
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
        tables.append(_accuracy_table(name, title, columns, found, chosen, missing))
    return tables


def worst_tables(chosen: pd.DataFrame, missing: MissingRuns) -> list[Table]:
    """One table per setting: accuracy of the worst source domain on held-out samples, per target."""
    if (chosen["rule"] == "oracle").any():
        return []  # source domains are not evaluated along the way
    found = per_target(chosen, ["test_worst_domain"])
    tables = []
    for setting in order_settings(found.loc[found["test_worst_domain"].notna(), "setting"]):
        part = found[found["setting"] == setting]
        columns = [
            Column(target, dataset, _key(dataset, setting, target, "test_worst_domain"))
            for dataset in order_datasets(part["dataset"])
            for target in sorted(part.loc[part["dataset"] == dataset, "target"].unique())
        ]
        title = f"Worst-domain in-distribution accuracy (%) under {setting}"
        tables.append(_accuracy_table(f"worst-{slug(setting)}", title, columns, found, chosen, missing))
    return tables


def _key(dataset: str, setting: str, target: str, measure: str) -> dict[str, str]:
    return {"dataset": dataset, "setting": setting, "target": target, "measure": measure}


def _accuracy_table(
    name: str, title: str, columns: Sequence[Column], found: pd.DataFrame, chosen: pd.DataFrame, missing: MissingRuns
) -> Table:
    """Numbers of the paper's kind: percent, one decimal, with a note if less stands behind one than elsewhere."""
    setting, datasets = columns[0].key["setting"], {column.key["dataset"] for column in columns}
    found = found[(found["setting"] == setting) & found["dataset"].isin(datasets)]
    counts = chosen[chosen["setting"] == setting].groupby("dataset", observed=True)["target"].nunique()
    targets = {name: int(counts[name]) for name in order_datasets(map(str, counts.index))}
    # Draws that each trial was the best of, on average; the number of a trial is over all targets or on one.
    parts = found["dataset"].map(targets).where(found["target"] == "", 1)
    found = found.assign(draws=(found["runs"] / (found["trials"] * parts)).where(found["trials"] > 0, 0.0))
    trials, draws = int(found["trials"].max()), float(found["draws"].max())
    records = {(r["dataset"], r["target"], r["method"]): r for r in found.to_dict("records")}

    def cell(method: str, column: Column) -> Cell:
        row = records.get((column.key["dataset"], column.key["target"], method))
        if row is None:
            return Cell(note="not run here")
        measure, own, lost = column.key["measure"], int(row["trials"]), int(row["trials_missing"])
        value, stderr = float_or_none(100 * row[measure]), float_or_none(100 * row[f"{measure}_stderr"])
        note = "no class in this group" if own else "no complete trial"
        if value is not None:
            note = words(
                "depth_note", trials=own, of_trials=max(trials, own + lost), fewer_trials=own < trials or lost > 0,
                missing=int(row["missing"]), diverged=int(row["diverged"]), draws=row["draws"], of_draws=draws,
            )  # fmt: skip
        return Cell(value, stderr if value is not None else None, note=note, trials=own, runs=int(row["runs"]))

    rows = method_rows(found["method"], lambda method: (cell(method, column) for column in columns))
    kind, rule = name.partition("-")[0], str(found["rule"].iloc[0])
    caption = words("accuracy_caption", kind=kind, targets=targets, trials=trials, draws=round(draws), rule=rule)
    notes = with_spread_note(rows, missing.of(setting, datasets))
    return with_places(Table(name, kind, title, tuple(columns), rows, caption, rule, notes))


def with_spread_note(rows: Sequence[TableRow], missing: MissingRuns) -> tuple[str, ...]:
    """The notes of a table: what is missing, and before it why there is no standard error."""
    one = all(cell.trials <= 1 for row in rows for cell in row.cells)
    return (*(["One trial: there is no standard error."] if one else []), *missing.notes())


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
    notes = (words("devices_note", devices=devices),) if devices else ()
    title = "Time and memory of a training step"
    return [Table("cost", "cost", title, tuple(columns), rows, words("cost_caption"), notes=notes)]


def paired_tables(chosen: pd.DataFrame, against: str) -> list[Table]:
    """One table: each method minus `against` in the same target and trial, so that easy and hard targets cancel.

    For every dataset and setting and, if there are several, over all.
    """
    known = order_methods(chosen["method"])
    spelled = {word.casefold(): name for name in reversed(known) for word in (method_title(name), name)}
    if against.casefold() not in spelled:
        raise UsageError(f"--against: {unknown_name('row', against, known)}")
    against = against if against in known else spelled[against.casefold()]
    parts = {(d, s): chosen[(chosen["dataset"] == d) & (chosen["setting"] == s)] for d, s in order_places(chosen)}
    places = len(parts)
    if places > 1:
        parts[ALL] = chosen
    several = chosen["dataset"].nunique() > 1
    columns = tuple(
        Column(title, "All" if place == ALL else f"{place[0]}, {place[1]}" if several else place[1],
               {"dataset": place[0], "setting": place[1], "measure": measure}, None)
        for place in parts
        for measure, title in PAIRED_MEASURES.items()
    )  # fmt: skip

    def cell(part: pd.DataFrame, method: str, measure: str) -> Cell:
        mine, other = (part[part["method"] == name].set_index(PAIR)[measure] for name in (method, against))
        gaps = (mine - other).dropna()
        if gaps.empty:
            return Cell(note="no pair with both numbers")
        stderr = float_or_none(100 * standard_error(gaps, ddof=1))
        return Cell(100 * float(gaps.mean()), stderr, digits=2, signed=True, runs=len(gaps))

    rows = method_rows(
        (method for method in known if method != against),
        lambda m: (cell(part, m, measure) for part in parts.values() for measure in PAIRED_MEASURES),
    )
    alone = len(PAIRED_MEASURES) * places  # the columns after these are over all
    most = max((cell.runs for row in rows for cell in row.cells[:alone]), default=0)
    every = max((cell.runs for row in rows for cell in row.cells[alone:]), default=0)
    rule = str(chosen["rule"].iloc[0])
    caption = words("paired_caption", against=against, pairs=most, over_all=every, several=several, rule=rule)
    return [Table("paired", "paired", f"Paired differences from {method_title(against)}", columns, rows, caption, rule)]


# Do margins and posterior discrepancies go with target accuracy?


def theory_runs(chosen: pd.DataFrame) -> pd.DataFrame:
    """The chosen runs with a target accuracy, each once.

    Averaged weights are left out, they are those of the same runs; so is a variant that rests on another row's run.
    """
    return each_once(chosen[chosen[ACCURACY].notna()])


def measured(runs: pd.DataFrame) -> list[str]:
    """The quantities that vary over the runs, which have a number in three or more of them."""
    found = {name: runs[name].dropna().round(12) for name in QUANTITIES if name in runs}
    return [name for name, values in found.items() if len(values) >= 3 and values.nunique() > 1]


def theory_tables(chosen: pd.DataFrame) -> list[Table]:
    """One table per quantity: over all runs, in cells, over means of methods, and setting by setting."""
    runs = theory_runs(chosen)
    names = measured(runs)
    lacking = [title for name, (title, _) in QUANTITIES.items() if name not in names]
    rule = str(chosen["rule"].iloc[0])
    tables: list[Table] = []
    for name in names:
        title, sign = QUANTITIES[name]
        caption = words("theory_caption", first=QUANTITIES[names[0]][0] if tables else "", rule=rule)
        notes = [words("margin_note")] if name == "target_margin" else []
        notes += [words("lacking_note", lacking=lacking)] if lacking and name == names[-1] else []
        tables.append(
            Table(
                f"theory-{slug(name)}", "theory", f"{title} and target accuracy (expected sign: {sign})",
                THEORY_COLUMNS, tuple(_rows(runs, name)), caption, rule, tuple(notes), head="Points",
            )
        )  # fmt: skip
    return tables


def _rows(runs: pd.DataFrame, name: str) -> Iterator[TableRow]:
    known = runs[runs[name].notna()]
    yield _row(name, "all", "all runs", known)
    places = [tuple(place) for place in known[CELL].itertuples(index=False)]
    if len(set(places)) > 1:
        found, cells = relate_within(_values(known, name), _values(known, ACCURACY), places)
        yield _relation_row(name, "within", f"in {counted(cells, 'cell')}", found, len(known))
    yield _row(name, "means", "means", averages(known, [name, ACCURACY]).dropna(subset=[name, ACCURACY]))
    for key, ordered in (("setting", order_settings(known["setting"])), ("dataset", order_datasets(known["dataset"]))):
        for value in ordered if len(ordered) > 1 else ():
            yield _row(name, value, value, known[known[key] == value])


def _row(name: str, scope: str, title: str, part: pd.DataFrame) -> TableRow:
    return _relation_row(name, scope, title, relate(_values(part, name), _values(part, ACCURACY)), len(part))


def _relation_row(name: str, scope: str, title: str, found: Relation | None, points: int) -> TableRow:
    cells = [Cell(points, digits=0, runs=points), *[Cell(note=FEW, runs=points)] * 6]
    if found is not None:
        one, other, n = found.pearson, found.spearman, found.pearson.n
        why = FLAT if np.isnan(one.r) else FEW
        cells = [Cell(n, digits=0, runs=n)]
        for value, is_p in ((one.r, 0), (one.low, 0), (one.high, 0), (one.p, 1), (other.r, 0), (other.p, 1)):
            note = why if np.isnan(value) else ""
            cells.append(Cell(float_or_none(value), None, None, note, 3, not is_p, runs=n, least=0.001 * is_p))
    return TableRow(f"{name}: {scope}", title, "", tuple(cells))


def _values(frame: pd.DataFrame, name: str) -> FloatArray:
    return frame[name].to_numpy(dtype=np.float64)


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
    intro="The theory bounds the risk on an unseen domain by terms that decrease with the margin and increase with the "
    "posterior discrepancy: the Jensen-Shannon divergence between the mean predictions for a class in two domains.",
)(lambda runs: theory_tables(runs.chosen))  # fmt: skip
