"""LaTeX formulas as drawings: they look the same everywhere, without a script or a font from elsewhere."""

from __future__ import annotations

import functools
import html as escapes
import re

from ziamath.config import config
from ziamath.zmath import Latex

SIZE = 20  # drawing units per em
config.svg2 = False  # paths instead of references to symbols, whose names would clash on a page
config.precision = 2
# What the Markdown extension `pymdownx.arithmatex` writes for $...$ and $$...$$.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)


def draw_formulas(html: str) -> str:
    """Replace the formulas of a page.

    Args:
        html: The content of a page.

    Returns:
        The content with SVG drawings instead of LaTeX. Their label for screen readers is the LaTeX source.
    """
    html = BLOCK.sub(lambda match: f'<div class="formula">{_drawing(match[1], False)}</div>', html)
    return INLINE.sub(lambda match: _drawing(match[1], True), html)


@functools.cache
def _drawing(formula: str, inline: bool) -> str:
    source = escapes.unescape(formula).strip()
    drawn = Latex(source, size=SIZE, inline=inline)
    root = drawn.svgxml()
    width, height = (float(root.get(name, "0")) / SIZE for name in ("width", "height"))
    body = re.sub(r"<svg[^>]*>(.*)</svg>", r"\1", drawn.svg(), flags=re.DOTALL)
    style = f"width:{width:.2f}em;height:{height:.2f}em;vertical-align:{drawn.getyofst() / SIZE:.2f}em"
    label = f'role="img" aria-label="{escapes.escape(source, quote=True)}"'
    return f'<svg class="math" {label} viewBox="{root.get("viewBox")}" style="{style}">{body}</svg>'
