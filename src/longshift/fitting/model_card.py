"""The model card: one Markdown page that should travel with the model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longshift.files import write_text
from longshift.fitting.data_summary import Look
from longshift.fitting.fit_summary import Summary
from longshift.fitting.plan import Plan
from longshift.fitting.site_scores import CLASS_ACCURACY, MOST
from longshift.methods import get_method
from longshift.report import LEVEL, escape


def write_card(path: Path, look: Look, plan: Plan, summary: Summary, final: Mapping[str, Any]) -> None:
    """Write MODEL_CARD.md."""
    write_text(path, card(look, plan, summary, final, path.parent))


def card(look: Look, plan: Plan, summary: Summary, final: Mapping[str, Any], folder: Path) -> str:
    """The text of the card."""
    info, run = get_method(plan.method).info, final["run"]
    alone = [c for c in summary.classes if c.alone]
    lines = [
        f"# Model card: {escape(look.name)}",
        "",
        f"A classifier of {len(look.classes)} classes of {look.noun}, trained on {len(look.sites)} sites, for a site "
        "not among them.",
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
        f"- {info.title} ({escape(info.paper)}): {escape(info.idea)}.",
        f"- {escape(plan.reason)} {run['steps']} steps, seed {run['train_seed']}, longshift "
        f"{final['environment']['longshift']}, torch {final['environment']['torch']}.",
        "- Weights were chosen on a validation set with the same number of samples of each class where there are "
        "enough; probabilities are calibrated on it (temperature scaling).",
        "",
        "## Expected accuracy at a new site",
        "",
        f"- right: **{summary.accuracy.words()}**",
        f"- averaged over classes: **{summary.balanced.words()}**",
        "",
        _how_measured(summary),
        "",
        "| held-out site | samples | accuracy | averaged over classes |",
        "|---|---|---|---|",
        *[f"| {escape(s.site)} | {s.n} | {100 * s.accuracy:.1f} | {100 * s.balanced:.1f} |" for s in summary.own],
        "",
        "## Weak points",
        "",
        f"- Lowest site while unseen: {escape(summary.worst_site.site)} "
        f"({100 * summary.worst_site.accuracy:.0f} % right).",
        *[
            f"- Not measured: {escape(c.name)}. Only {escape(c.alone)} has it, and while that site was held out "
            "nothing was left to learn it from; its samples count as wrong."
            for c in alone[:MOST]
        ],
        *([f"- And {len(alone) - MOST} more classes that only one site has."] if len(alone) > MOST else []),
        *[f"- Weak class {escape(c.name)}: {escape(c.words())}." for c in summary.weak[:MOST]],
        *([f"- And {len(summary.weak) - MOST} more weak classes: see the table."] if len(summary.weak) > MOST else []),
        *([] if summary.weak else ["- No class stands out."]),
        "",
        f"{CLASS_ACCURACY}:",
        "",
        "| class | samples | right | % |",
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
        "Probabilities are calibrated for the sites above; at a new site they tend to be too high. Look at what is "
        "marked unsure, and label a few samples of the new site to check the estimate. Not for decisions without "
        "a person where a mistake does harm.",
        "",
    ]
    return "\n".join(lines)


def _how_measured(summary: Summary) -> str:
    """Where the expected accuracy comes from, and what its interval means."""
    if len(summary.own) == 1:
        return (
            f"Only {escape(summary.own[0].site)} was held out, and a model trained on the other sites was measured "
            "there. The interval knows nothing of how sites differ: at another site the accuracy may lie well outside."
        )
    return (
        "Each site was held out in turn, and a model trained on the others was measured there. The interval holds "
        f"for one further site with probability {100 * LEVEL:.0f} %, if that site is drawn like these."
    )
