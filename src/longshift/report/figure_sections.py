"""Parts of a page that show a figure. Each function takes plain results and returns a `Section`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup

from longshift.array_types import FloatArray, IntArray
from longshift.metrics import margins
from longshift.report.figures import (
    Drawing,
    Line,
    Points,
    SplitCounts,
    class_bars,
    confusion_map,
    line_chart,
    rank_diagram,
    scatter,
    split_bars,
)  # fmt: skip
from longshift.report.findings import in_words, trials_words, unranked_words
from longshift.report.html_page import Section, figure, fold, join_html, paragraphs, table_html
from longshift.report.ranking import Ranking
from longshift.report.run_lengths import curve_groups
from longshift.report.run_records import KEEP_PREDICTIONS, Record, class_accuracy, sum_confusion
from longshift.report.table import Table, float_or_none
from longshift.report.theory import ACCURACY, QUANTITIES, measured, theory_runs
from longshift.report.titles import FAMILIES, family, method_title
from longshift.results import standard_error
from longshift.text import counted

MISTAKES = 3  # most frequent ones that are named
NARROW = 20  # classes whose confusions fit into half the page
POINTS = 101  # of a curve of margins
SHOWN = 2  # training sets side by side; the others are folded away
THEORY_DRAWN = ("posterior_target", "target_margin")


def class_section(records: Mapping[str, Sequence[Record]], name: str = "", noun: str = "domain") -> Section:
    """Target accuracy of each class over all runs: bars for the first method, marks for the others."""
    first = next(iter(records.values()))[0]
    values = {method_title(method): class_accuracy(runs) for method, runs in records.items()}
    listed = [record for runs in records.values() for record in runs]
    # The split of each target differs a little; the mean number of samples orders the classes.
    every = [np.asarray(record.result["split"]["counts"]).sum(axis=0) for record in listed]
    same = all(len(counts) == len(first.classes) for counts in every)
    counts = [int(n) for n in np.mean(every, axis=0)] if same else None
    agree = len({tuple(record.result["split"]["shots"]) for record in listed}) == 1
    drawing = class_bars(first.classes, values, first.result["split"]["shots"] if agree else None, counts)
    sizes = sorted({len({record.folder for record in runs}) for runs in records.values()})
    each = f"{sizes[0]} to {counted(sizes[-1], 'run')}" if len(sizes) > 1 else counted(sizes[0], "run")
    caption = (
        f"Percent of a class's samples at unseen {noun}s that are classified correctly, over all runs of a method "
        f"({each}{' per method' if len(records) > 1 else ''}). Largest class first."
    )
    return Section("Accuracy of each class", figure(drawing, caption), name=name)


def confusion_section(records: Sequence[Record], name: str = "") -> Section:
    """The confusion matrix of one method, summed over targets and trials."""
    total = sum_confusion(records)
    drawing = confusion_map(records[0].classes, [[int(n) for n in row] for row in total])
    caption = (
        f"{records[0].title}, sum over {counted(len(records), 'run')}, percent of the true class. Blue: correct. "
        "Orange: misclassified; shades follow the square root, so that rare confusions are visible."
    )
    wide = len(records[0].classes) > NARROW
    return Section("Confusion matrix", figure(drawing, caption), name=name, wide=wide)


def confusions_by_target(records: Sequence[Record], name: str = "", noun: str = "domain") -> Section:
    """The most frequent mistakes at each target, with the confusion matrix of each folded away."""
    classes = records[0].classes
    parts = []
    for target in dict.fromkeys(record.target for record in records):
        found = sum_confusion([record for record in records if record.target == target])
        right, n = int(np.trace(found)), int(found.sum())
        mistakes = _mistakes(classes, found)
        said = f"Most frequent mistakes: {'; '.join(mistakes)}." if mistakes else "No mistakes."
        drawing = confusion_map(classes, [[int(m) for m in row] for row in found])
        parts.append(paragraphs(f"{target}: {right} of {counted(n, 'sample')} correct. {said}"))
        parts.append(fold(f"Confusion matrix of {target}", figure(drawing, "Percent of the true class.")))
    return Section(f"Confusion at each {noun}", join_html(*parts), name=name)


def _mistakes(classes: Sequence[str], confusion: IntArray) -> list[str]:
    """The most frequent mistakes in words, such as "dog as horse (23 of 80)"."""
    wrong = confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES]
    cells = [divmod(int(place), len(classes)) for place in order]
    totals = confusion.sum(axis=1)
    return [f"{classes[i]} as {classes[k]} ({wrong[i, k]} of {totals[i]})" for i, k in cells if wrong[i, k]]


def target_margins(records: Sequence[Record]) -> FloatArray | None:
    """The margins p_y - max_{k != y} p_k of all kept predictions on the target; None if no run kept any."""
    found = [record.predictions() for record in records]
    parts = [margins(f["target_logits"], f["target_labels"]) for f in found if f and "target_logits" in f]
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts]) if parts else None


def margin_section(given: Mapping[str, FloatArray | None], name: str = "") -> Section:
    """Pr[margin <= delta] over delta, by method; a lower curve means larger margins."""
    known = {method: values for method, values in given.items() if values is not None}
    if not known:
        text = f"Margins need the predictions of single samples, and no run kept them: {KEEP_PREDICTIONS}."
        return Section("Margins", paragraphs(text), name=name)
    at = np.linspace(-1, 1, POINTS)
    lines = []
    for method, values in known.items():
        below = np.searchsorted(np.sort(values), at, side="right") / len(values)
        lines.append(Line(method, [float(x) for x in at.round(2)], [float(y) for y in below]))
    drawing = line_chart(lines, "margin δ", "samples with a margin of at most δ", y_range=(0.0, 1.0))
    averages = ", ".join(f"{method} {values.mean():.3f}" for method, values in known.items())
    caption = (
        "Margin: probability of the true class minus the largest of the others; below 0 the sample is misclassified. "
        f"Lower curves are better. Average margin: {averages}."
    )
    return Section("Margins", figure(drawing, caption), name=name)


def _mean_line(name: str, values: Mapping[int, Sequence[float]]) -> Line:
    """The mean at each step, with its standard error."""
    means = [float(np.mean(found)) for found in values.values()]
    return Line(
        name, list(values), means, [float_or_none(standard_error(pd.Series(v))) or 0.0 for v in values.values()]
    )


def validation_section(records: Mapping[str, Sequence[Record]], name: str = "") -> Section:
    """Accuracy on the balanced validation set along training, mean over targets and trials with its standard error."""
    lines = []
    for method, runs in records.items():
        steps: dict[int, list[float]] = {}
        for record in runs:
            for row in record.metrics():
                steps.setdefault(int(row["step"]), []).append(float(row["validation"]["accuracy"]))
        # A step that only some runs have would distort the mean.
        steps = {step: values for step, values in sorted(steps.items()) if len(values) == len(runs)}
        if steps:
            lines.append(_mean_line(method_title(method), steps))
    drawing = line_chart(lines, "step", "validation accuracy")
    caption = "Balanced validation set of the training domains; mean over targets and trials, band: standard error."
    return Section("Along training", figure(drawing, caption), name=name)


def length_section(tables: Sequence[Table], runs: pd.DataFrame) -> Section:
    """The curves of all settings and the tables of kind "length"; long tables are folded away."""
    groups = curve_groups(runs)
    caption = (
        f"Balanced validation set of the training domains, {counted(sum(len(g.runs) for g in groups), 'run')}: mean "
        "over all finished runs of a setting, band: standard error."
    )
    lines = [_mean_line(group.title, {step: group.values(step) for step in group.steps}) for group in groups]
    parts = [figure(line_chart(lines, "step", "validation accuracy"), caption)]
    parts += [fold(table.title, table_html(table)) if table.long else table_html(table) for table in tables]
    intro = "Validation accuracy had stopped rising where the last third of training added next to nothing."
    return Section("Run length", join_html(*parts), intro, "length")


def rank_section(result: Ranking) -> Section:
    """Average ranks with the bars of Nemenyi's test, or why there is no test."""
    found = result.significance
    if found is None:
        return Section("Ranks", paragraphs(f"No significance test: {result.why_not}."), name="ranks")
    ranks = {method_title(name): rank for name, rank in found.test.ranks.items()}
    groups = [[method_title(name) for name in group] for group in found.groups]
    drawing = rank_diagram(ranks, found.critical_difference, groups, found.test.cases)
    test = found.test
    caption = (
        f"Average rank of target accuracy over {test.cases} cases (dataset, setting, target); 1 is the best. Friedman "
        f"chi² = {test.chi2:.2f} (p = {test.chi2_p:.2g}), {test.f_words()}. "
        "Methods joined by a bar do not differ significantly (Nemenyi, 5%)."
    )
    if result.left_out:
        names = in_words([method_title(name) for name in result.left_out], 12)
        caption += f" Left out because they lack some of the cases or trials: {names}."
    if result.cases_left_out:
        caption += f" Left out because methods lack them: {counted(result.cases_left_out, 'case')}."
    caption = " ".join(filter(None, [caption, trials_words(result), unranked_words(result)]))
    return Section("Ranks", figure(drawing, caption), name="ranks")


def split_section(splits: Sequence[SplitCounts], name: str = "") -> Section:
    """One bar chart per training set."""
    drawn = [figure(split_bars(split), f"{split.title}: {split.counts.sum()} samples.") for split in splits]
    body = _grid(drawn[:SHOWN])
    if len(drawn) > SHOWN:
        body = join_html(body, fold(f"{len(drawn) - SHOWN} more targets", _grid(drawn[SHOWN:])))
    return Section("Training data", body, "Training samples of each class, by source domain.", name, wide=True)


def theory_section(tables: Sequence[Table], chosen: pd.DataFrame) -> Section:
    """The tables of kind "theory", and one point per run for the two quantities of the bound."""
    runs = theory_runs(chosen)
    pictures = [
        figure(
            theory_scatter(runs, name),
            f"{QUANTITIES[name][0]} and target accuracy, {counted(int(runs[name].notna().sum()), 'run')}.",
        )
        for name in THEORY_DRAWN
        if name in measured(runs)
    ]
    intro = (
        "The theory bounds the risk on an unseen domain by terms that decrease with the margin and increase with the "
        "posterior discrepancy: the Jensen-Shannon divergence between the mean predictions for a class in two domains."
    )
    return Section("Theory", join_html(_grid(pictures), *map(table_html, tables)), intro, "theory")


def theory_scatter(runs: pd.DataFrame, name: str) -> Drawing:
    """A quantity against target accuracy, one point per run, colored by family of methods."""
    known = runs[runs[name].notna()]
    groups = []
    for kind, (key, title) in enumerate(FAMILIES.items()):
        part = known[known["method"].map(lambda method, key=key: family(str(method)) == key).astype(bool)]
        names = [
            f"{method_title(str(r['method']))}, {r['dataset']}, {r['setting']}, {r['target']}, trial {r['trial']}"
            for r in part.to_dict("records")
        ]
        groups.append(Points(title, [*map(float, part[name])], [*map(float, part[ACCURACY])], names, kind))
    return scatter(groups, QUANTITIES[name][0].casefold(), "target accuracy")


def _grid(parts: Sequence[Markup]) -> Markup:
    return Markup('<div class="grid">{}</div>').format(join_html(*parts)) if parts else Markup()
