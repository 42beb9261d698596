"""Accuracy of single classes, and what they are taken for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from longshift.report.figures import class_bars, confusion_map
from longshift.report.html_page import Section, figure
from longshift.report.run_records import Record, class_accuracy, sum_confusion
from longshift.report.titles import method_title
from longshift.text import counted

NARROW = 20  # classes whose confusions fit into half the page


def class_section(records: Mapping[str, Sequence[Record]], name: str = "", noun: str = "domain") -> Section:
    """Target accuracy of each class, runs together: bars of the first method, marks of the others."""
    first = next(iter(records.values()))[0]
    classes, split = first.classes, first.result["split"]
    values = {method_title(method): class_accuracy(runs) for method, runs in records.items()}
    # The split of each target differs a little; the mean number of samples orders the classes.
    every = [np.asarray(r.result["split"]["counts"]).sum(axis=0) for runs in records.values() for r in runs]
    same = all(len(c) == len(classes) for c in every)
    counts = [int(n) for n in np.mean(every, axis=0)] if same else None
    agree = len({tuple(r.result["split"]["shots"]) for runs in records.values() for r in runs}) == 1
    svg = class_bars(classes, values, split["shots"] if agree else None, counts)
    number = counted(len({r.folder for runs in records.values() for r in runs}), "run")
    caption = (
        f"Percent right of all samples of a class at unseen {noun}s, the runs of a method taken together ({number}). "
        "Largest class first."
    )
    return Section("Accuracy of each class", figure(svg, caption), name=name)


def confusion_section(records: Sequence[Record], name: str = "") -> Section:
    """The confusion matrix of one method, summed over targets and trials."""
    total = sum_confusion(records)
    svg = confusion_map(records[0].classes, [[int(n) for n in row] for row in total])
    caption = (
        f"{records[0].title}, {counted(len(records), 'run')} together, percent of the true class. Blue: right. "
        "Orange: wrong; shades follow the square root, so that rare confusions can be seen."
    )
    wide = len(records[0].classes) > NARROW
    return Section("What is taken for what", figure(svg, caption), name=name, wide=wide)
