"""The model card: one Markdown page to keep with the model."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longshift.data import read_vector_source
from longshift.fitting.data_summary import lines, named_lines
from longshift.fitting.facts import FitSummary, hardest_site
from longshift.fitting.page import CalibrationGap
from longshift.inference import LEVEL, SiteAdaptation, SiteKnowledge
from longshift.io import write_text
from longshift.methods import get_method
from longshift.report import escape
from longshift.templates import render


def write_card(path: Path, summary: FitSummary, final: Mapping[str, Any], knowledge: SiteKnowledge | None) -> None:
    """Write MODEL_CARD.md next to the final model, whose result and knowledge about new sites are given."""
    adaptation = knowledge.adaptation if knowledge else None
    text = card(summary, path.parent, final["environment"], calibration_gap(knowledge), adaptation)
    write_text(path, text + "\n")


def card(
    summary: FitSummary, folder: Path, environment: Mapping[str, str], gap: CalibrationGap | None = None,
    adaptation: SiteAdaptation | None = None,
) -> str:  # fmt: skip
    """The text of the card; `gap`: how far probabilities were off at the held-out sites, where it was measured."""
    data, config = summary.data, summary.training.config
    info = get_method(config.method).info
    worst, unsure = hardest_site(summary.own)
    return render(
        "longshift.fitting",
        "card.md.j2",
        summary=summary,
        data=data,
        config=config,
        info=info,
        base=get_method(info.preset_of).info if info.preset_of else None,
        environment=environment,
        gap=gap,
        adaptation=adaptation,
        level=LEVEL,
        worst=worst,
        worst_unsure=unsure,
        data_lines=[*data.statements(), *data.warnings()],
        interval_lines=lines("interval.txt.j2", summary=summary, level=LEVEL),
        training_lines=named_lines("training.txt.j2", training=summary.training),
        source=read_vector_source(config.data) if config.vectors else None,
        quoted=json.dumps(str(folder), ensure_ascii=False),
        argument=shlex.quote(str(folder)),
        escape=escape,
    )


def calibration_gap(knowledge: SiteKnowledge | None) -> CalibrationGap | None:
    """Over all samples of the held-out sites."""
    held_out = knowledge.held_out if knowledge else ()
    n = sum(site.signals.n for site in held_out)
    if not n:
        return None
    probability = sum(site.signals.n * site.signals.confidence for site in held_out) / n
    return CalibrationGap(probability, sum(site.signals.n * site.accuracy for site in held_out) / n)
