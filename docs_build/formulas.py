"""LaTeX formulas as MathML: browsers draw it without a script or a font from elsewhere."""

from __future__ import annotations

import html as escapes
import re

from latex2mathml.converter import convert

# What the Markdown extension `pymdownx.arithmatex` writes for $...$ and $$...$$.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)


def formulas_to_mathml(html: str) -> str:
    """Replace the formulas of a page.

    Args:
        html: The content of a page.

    Returns:
        The content with MathML instead of LaTeX.
    """
    html = BLOCK.sub(lambda match: f'<div class="formula">{_mathml(match[1], "block")}</div>', html)
    return INLINE.sub(lambda match: _mathml(match[1], "inline"), html)


def _mathml(formula: str, display: str) -> str:
    return convert(escapes.unescape(formula).strip(), display=display)
