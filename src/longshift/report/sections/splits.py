"""What the training sets look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from longshift.report.figures import split_bars
from longshift.report.html_page import Section, figure, fold, stack

SHOWN = 2  # pictures side by side; the others are folded away


@dataclass(frozen=True)
class SplitPicture:
    """A training set: `counts[source][class]`."""

    title: str
    classes: Sequence[str]
    sources: Sequence[str]
    counts: Sequence[Sequence[int]]
    shots: Sequence[str] | None = None


def split_section(splits: Sequence[SplitPicture], name: str = "") -> Section:
    """One bar chart a split."""
    drawn = [
        figure(split_bars(s.classes, s.sources, s.counts, s.shots), f"{s.title}: {sum(map(sum, s.counts))} samples.")
        for s in splits
    ]
    body = Markup('<div class="grid">{}</div>').format(stack(*drawn[:SHOWN]))
    if len(drawn) > SHOWN:
        rest = Markup('<div class="grid">{}</div>').format(stack(*drawn[SHOWN:]))
        body = stack(body, fold(f"{len(drawn) - SHOWN} more targets", rest))
    intro = "Training samples of each class, by the domain they come from."
    return Section("Training data", body, intro, name, wide=True)
