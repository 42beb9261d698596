"""The model card: one Markdown page to keep with the model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longshift.data import read_vector_source
from longshift.fitting.calibration_section import held_out_gap
from longshift.fitting.data_summary import DataSummary
from longshift.fitting.fit_summary import Summary
from longshift.fitting.plan import Plan
from longshift.fitting.site_scores import CLASS_ACCURACY, MOST, hardest_site
from longshift.inference import FINAL_FOLDER, HeldOutSite, read_knowledge
from longshift.io import write_text
from longshift.methods import get_method
from longshift.report import escape
from longshift.text import counted
from longshift.training import RunFolder, read_model_file


def write_card(path: Path, look: DataSummary, plan: Plan, summary: Summary, final: Mapping[str, Any]) -> None:
    """Write MODEL_CARD.md, once the final model and what is known about new sites are written."""
    model = RunFolder(path.parent / FINAL_FOLDER)
    knowledge = read_knowledge(model.path, read_model_file(model.description).weights, len(look.classes))
    write_text(path, card(look, plan, summary, final, path.parent, knowledge.held_out if knowledge else ()))


def card(
    look: DataSummary, plan: Plan, summary: Summary, final: Mapping[str, Any], folder: Path,
    held_out: Sequence[HeldOutSite],
) -> str:  # fmt: skip
    """The text of the card; without predictions at held-out sites, `held_out` is empty."""
    run = final["run"]
    worst, doubt = hardest_site(summary.own)
    alone = [c for c in summary.classes if c.alone]
    head = " Only a head on its features is trained." if run.get("trainable") == "head" else ""
    lines = [
        f"# Model card: {escape(look.name)}",
        "",
        f"This model classifies {look.noun} into {len(look.classes)} classes. It was trained on {len(look.sites)} "
        "sites and is meant for a new site.",
        "",
        *([f"**{summary.warning}**", ""] if summary.warning else []),
        "## Data",
        "",
        *[f"- {escape(sentence)}" for sentence in (*look.sentences(), *look.warnings())],
        "",
        "| site | " + " | ".join(escape(name) for name in look.classes) + " |",
        "|---" * (len(look.classes) + 1) + "|",
        *[
            f"| {escape(site)} | " + " | ".join(map(str, row)) + " |"
            for site, row in zip(look.sites, look.counts.tolist(), strict=True)
        ],
        "",
        "## Method",
        "",
        f"- {escape(_method(plan.method))}",
        f"- {escape(plan.reason)}{head} {run['steps']} steps, seed {run['train_seed']}, longshift "
        f"{final['environment']['longshift']}, torch {final['environment']['torch']}.",
        *([f"- {escape(plan.style_reason)}"] if plan.style_reason else []),
        *_vector_source(look, run["data"]),
        "- The weights were selected on a validation set with the same number of samples per class where there are "
        "enough. Probabilities are calibrated on it (temperature scaling).",
        "",
        "## Accuracy at a new site",
        "",
        f"- accuracy: **{summary.accuracy.words()}**",
        f"- averaged over classes: **{summary.balanced.words()}**",
        "",
        _how_measured(summary),
        "",
        "| held-out site | samples | accuracy | averaged over classes |",
        "|---|---|---|---|",
        *[f"| {escape(s.site)} | {s.n} | {100 * s.accuracy:.1f} | {100 * s.balanced:.1f} |" for s in summary.own],
        "",
        "## Lowest scores",
        "",
        f"- Hardest site: {escape(worst.site)} ({100 * worst.accuracy:.0f}% accuracy when held out"
        f"{f'; {doubt}' if doubt else ''}).",
        *[
            f"- Not measured: {escape(c.name)}. Only {escape(c.alone)} has it, so no training samples were left while "
            "that site was held out; its samples count as misclassified."
            for c in alone[:MOST]
        ],
        *(
            [f"- And {counted(len(alone) - MOST, 'more class', 'more classes')} that only one site has."]
            if len(alone) > MOST
            else []
        ),
        *[f"- Low-scoring class {escape(c.name)}: {escape(c.words())}." for c in summary.weak[:MOST]],
        *(
            [f"- And {counted(len(summary.weak) - MOST, 'more class', 'more classes')} with low scores: see the table."]
            if len(summary.weak) > MOST
            else []
        ),
        *([] if summary.weak else ["- No class is clearly weak."]),
        "",
        f"{CLASS_ACCURACY}:",
        "",
        "| class | samples | correct | % |",
        "|---|---|---|---|",
        *[f"| {escape(c.name)} | {c.n} | {c.right} | {100 * c.recall:.0f} |" for c in summary.classes],
        *(["", "## Compared with other methods", "", escape(summary.verdict)] if summary.verdict else []),
        "",
        "## Use",
        "",
        "```",
        f"longshift predict {shlex.quote(str(folder))} {look.new_site} --out predictions.csv",
        f"longshift export {shlex.quote(str(folder))} --out model.onnx",
        "```",
        "",
        "```python",
        "import longshift",
        f"found = longshift.predict({str(folder)!r}, [{look.new_site!r}])",
        "```",
        "",
        f"Probabilities are calibrated for the sites above. {calibration(held_out)} Check predictions that are marked "
        "unsure, and label a few samples from the new site to check the estimate. Where a mistake does harm, a person "
        "must make the decision.",
        "",
    ]
    return "\n".join(lines)


def calibration(held_out: Sequence[HeldOutSite]) -> str:
    """Whether probabilities were too high or too low at the held-out sites; every sample counts once."""
    n = sum(site.signals.n for site in held_out)
    if not n:
        return "At a new site, they may be too high or too low."
    confidence = sum(site.signals.n * site.signals.confidence for site in held_out) / n
    accuracy = sum(site.signals.n * site.accuracy for site in held_out) / n
    return f"{held_out_gap(confidence, accuracy, len(held_out))} At a new site, this may differ."


def _method(name: str) -> str:
    """What was trained; styles have a sentence of their own."""
    info = get_method(name).info
    source = info.paper
    if info.preset_of:
        base = get_method(info.preset_of).info
        source = f"a preset of {base.title}, {base.paper}"
    return f"{info.title} ({source}): {info.card or info.idea}."


def _vector_source(look: DataSummary, data: str) -> list[str]:
    source = read_vector_source(data) if look.noun == "vectors" else None
    if source is None:
        return []
    return [f"- The vectors are features of {escape(source.words())}; the model takes only vectors of this network."]


def _how_measured(summary: Summary) -> str:
    """How the expected accuracy was measured, and what its interval means."""
    if len(summary.own) == 1:
        return (
            f"Only {escape(summary.own[0].site)} was held out, and a model trained on the other sites was measured "
            "there. One site does not show how sites differ, so no interval is given: at another site the accuracy may "
            "be far from this."
        )
    return (
        "Each site was held out in turn, and a model trained on the others was measured there. "
        f"{summary.accuracy.meaning()} For a given new site, `longshift predict` estimates the accuracy there from the "
        "predictions."
    )
