"""Whether a fit mixes styles: measured, by training with and without it on the other sites of each held-out site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from longshift.fitting.site_scores import SiteScore
from longshift.training import RunConfig

OFF = "none"


def styles_to_try(config: RunConfig, given: Mapping[str, object]) -> tuple[str, ...]:
    """Off and the method's default; nothing to try if the user chose or if the method does not mix styles here."""
    default = config.method_config().style
    return () if "style" in given or default == OFF else (OFF, default)


def better_style(scores: Mapping[str, Sequence[SiteScore]]) -> tuple[str, str]:
    """The style with the best accuracy averaged over classes at held-out sites (off in a tie), and the reason."""
    means = {style: float(np.mean([score.balanced for score in rows])) for style, rows in scores.items()}
    off, on = means[OFF], max(value for style, value in means.items() if style != OFF)
    chosen = OFF if off >= on else next(style for style, value in means.items() if style != OFF and value == on)
    switch = "off" if chosen == OFF else f"on (style={chosen})"
    reason = (
        f"Style mixing is {switch}: accuracy averaged over classes at held-out sites is {100 * on:.1f} % with it and "
        f"{100 * off:.1f} % without it. The expected accuracy is that of the better of the two and therefore slightly "
        "optimistic. To choose it yourself, use --set style=..."
    )
    return chosen, reason
