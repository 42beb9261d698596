"""Words from templates: a verb computes facts (dataclasses), and a Jinja template in its package turns them into text.

A package keeps its templates in a folder `templates` beside its modules. `NAME.html.j2` is escaped; other templates
(`NAME.txt.j2`, `NAME.md.j2`) are plain text. The filters are those of `longshift.text`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from longshift import text

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(package: str) -> Environment:
    """The templates of a package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # takes longer to import than `--help` may take

    made = Environment(
        loader=PackageLoader(package),
        autoescape=lambda name: bool(name and name.endswith(".html.j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    from_text = (text.about, text.agree, text.any_of, text.counted, text.decimal, text.duration, text.listed, text.some)
    made.filters |= {function.__name__: function for function in from_text}
    made.filters |= {"percent": lambda value, digits=0: f"{100 * value:.{digits}f}"}
    return made


def render(package: str, template: str, **values: object) -> str:
    """Return a template of a package, filled in.

    Args:
        package: The package with a folder `templates`, such as `longshift.inference`.
        template: The file's name, such as `predict.txt.j2`.
        values: What the template shows.

    Returns:
        The text.
    """
    return environment(package).get_template(template).render(**values)
