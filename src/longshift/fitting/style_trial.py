"""Whether a fit mixes styles: measured, by training with and without it on the other sites of each held-out site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from longshift.fitting.site_scores import SiteScore, certainty
from longshift.text import any_of, counted, some
from longshift.training import RunConfig

OFF = "none"
TIE = 1e-6  # of accuracy: rounding errors of means are smaller, and four digits of percent show all that is larger
OVERRIDE = "To choose it yourself, use --style.mix none or --style.mix both."
ONE_SOURCE = "With two sites, these runs mix styles within one site, while a final model mixes them across both sites."
Floats = npt.NDArray[np.float64]


def styles_to_try(config: RunConfig, given: Mapping[str, object]) -> tuple[str, ...]:
    """Off and the method's default; nothing to try if the user chose or if the method does not mix styles here."""
    style = config.style_config()
    return () if "mix" in given or style is None else (OFF, style.mix)


def untried_reason(config: RunConfig, given: Mapping[str, object]) -> str:
    """Why styles are or are not mixed without a trial; "" if they are tried or if the method never mixes styles."""
    if styles_to_try(config, given):
        return ""
    if "mix" in given:
        return f"Style mixing is {_switch(str(given['mix']))}, as requested."
    if config.method_class.Style.hyper_parameters()["mix"].default == OFF:
        return ""
    if config.vectors:
        return "Style mixing, a part of this method, is off: vectors have no style."
    where, how = "for small images without pretrained weights", "--style.mix both"
    if config.frozen:
        where, how = "when only a head is trained", "--style.mix both --views 4"
    return f"Style mixing, a part of this method, is off by default {where}; {how} turns it on."


def trial_sentence(sites: int) -> str:
    """What is tried first, why, and how to skip it; said before the training."""
    return (
        f"First, {'each' if sites > 1 else 'the'} site is held out twice, with style mixing and without it, because it "
        "depends on the data whether that helps; --style.mix none or --style.mix both saves "
        f"{sites} of these runs."
    )


def better_style(
    scores: Mapping[str, Sequence[SiteScore]],
    diverged: Mapping[str, Sequence[str]] | None = None,
    one_source: bool = False,
) -> tuple[str, str]:
    """The style with the best accuracy averaged over classes at held-out sites (off in a tie), and the reason.

    Args:
        scores: Scores of each style that can be chosen.
        diverged: Held-out sites at which training with a style diverged; a style with such a site has no scores.
        one_source: Whether each run was trained on a single site.
    """
    lost = {style: sites for style, sites in (diverged or {}).items() if style not in scores}
    if lost:
        (chosen,) = scores
        runs = " and ".join(
            f"training {'without it' if style == OFF else 'with it'} diverged when {any_of(sites)} was held out"
            for style, sites in lost.items()
        )
        return chosen, f"Style mixing is {_switch(chosen)}: {runs}. {OVERRIDE}"
    (style,) = scores.keys() - {OFF}
    on, off = (np.array([score.balanced for score in scores[name]]) for name in (style, OFF))
    gain = float(on.mean() - off.mean())
    tie, chosen = abs(gain) < TIE, style if gain >= TIE else OFF
    sites = [score.site for score in scores[OFF]]
    where = f"at the held-out site {some(sites)}" if len(sites) == 1 else f"and {len(sites)} held-out sites"
    sentences = [
        f"Style mixing is {_switch(chosen)}: accuracy averaged over classes {where} is "
        f"{_both(100 * on.mean(), 100 * off.mean(), tie)}{_wins(on, off, with_it=chosen != OFF or tie)}."
    ]
    if not tie:
        sentences.append(certainty(on - off))
    if one_source:  # an image of another site is the partner only where there is another site
        sentences.append(ONE_SOURCE)
    if not tie:
        sentences.append("The expected accuracy is that of the better of the two and therefore slightly optimistic.")
    return chosen, " ".join((*sentences, OVERRIDE))


def _both(on: float, off: float, tie: bool) -> str:
    """Both accuracies in percent, with enough digits to tell them apart."""
    shown = [(f"{on:.{digits}f}", f"{off:.{digits}f}") for digits in range(1, 5)]
    first, second = next((pair for pair in shown if pair[0] != pair[1]), shown[-1]) if not tie else shown[0]
    return f"{first}% with it and {second}% without it" + (": equal, so it stays off" if tie else "")


def _wins(on: Floats, off: Floats, with_it: bool) -> str:
    """At how many of several sites it was higher, equal and lower with one of the two."""
    gains = on - off if with_it else off - on
    if len(gains) == 1 or np.abs(gains).max() < TIE:
        return ""
    better, worse = int((gains >= TIE).sum()), int((gains <= -TIE).sum())
    counts = [f"higher {'with' if with_it else 'without'} it at {counted(better, 'site')}"]
    counts += [f"{word} at {n}" for word, n in (("equal", len(gains) - better - worse), ("lower", worse)) if n]
    return f"; {', '.join(counts)}"


def _switch(style: str) -> str:
    return "off" if style == OFF else f"on (style.mix={style})"
