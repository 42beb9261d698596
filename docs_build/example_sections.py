"""An extension of Griffe, which reads the docstrings: examples are shown as code."""

from __future__ import annotations

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Griffe knows the section `Examples:` only; it would show `Example:` as quoted text."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rename the section."""
        if obj.docstring is not None:
            obj.docstring.value = rename_examples(obj.docstring.value)


def rename_examples(text: str) -> str:
    """The docstring with the name that Griffe knows."""
    return re.sub(r"^(\s*)Example:\s*$", r"\1Examples:", text, flags=re.MULTILINE)
