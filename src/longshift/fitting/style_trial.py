"""Whether a fit mixes styles: measured, by training with and without it on the other sites of each held-out site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from longshift.fitting.site_scores import SiteScore
from longshift.text import any_of
from longshift.training import RunConfig

OFF = "none"


def styles_to_try(config: RunConfig, given: Mapping[str, object]) -> tuple[str, ...]:
    """Off and the method's default; nothing to try if the user chose or if the method does not mix styles here."""
    default = config.method_config().style
    return () if "style" in given or default == OFF else (OFF, default)


def untried_reason(config: RunConfig, given: Mapping[str, object]) -> str:
    """Why styles are or are not mixed without a trial; "" if they are tried or if the method never mixes styles."""
    if styles_to_try(config, given):
        return ""
    if "style" in given:
        return f"Style mixing is {_switch(config.method_config().style)}, as requested."
    if config.method_class.Config.hyper_parameters()["style"].default == OFF:
        return ""
    if config.vectors:
        return "Style mixing, a part of this method, is off: vectors have no style."
    where = "when only a head is trained" if config.frozen else "for small images without pretrained weights"
    return f"Style mixing, a part of this method, is off by default {where}."


def better_style(
    scores: Mapping[str, Sequence[SiteScore]], diverged: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, str]:
    """The style with the best accuracy averaged over classes at held-out sites (off in a tie), and the reason.

    Args:
        scores: Scores of each style that can be chosen.
        diverged: Held-out sites at which training with a style diverged; a style with such a site has no scores.
    """
    means = {style: float(np.mean([score.balanced for score in rows])) for style, rows in scores.items()}
    chosen = max(means, key=lambda style: (means[style], style == OFF))
    lost = {style: sites for style, sites in (diverged or {}).items() if style not in means}
    if lost:
        runs = " and ".join(
            f"training {'without it' if style == OFF else 'with it'} diverged when {any_of(sites)} was held out"
            for style, sites in lost.items()
        )
        reason = f"Style mixing is {_switch(chosen)}: {runs}. To choose it yourself, use --set style=..."
        return chosen, reason
    on = max(value for style, value in means.items() if style != OFF)
    reason = (
        f"Style mixing is {_switch(chosen)}: accuracy averaged over classes at held-out sites is {100 * on:.1f} % "
        f"with it and {100 * means[OFF]:.1f} % without it. The expected accuracy is that of the better of the two and "
        "therefore slightly optimistic. To choose it yourself, use --set style=..."
    )
    return chosen, reason


def _switch(style: str) -> str:
    return "off" if style == OFF else f"on (style={style})"
