"""What recipes make, as files: tables as Markdown, CSV and LaTeX, figures as PNG and SVG with their numbers as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from longshift.files import write_text
from longshift.paper.recipe import Output, Picture, Recipe
from longshift.report import LATEX_PACKAGES, csv_tables, escape, latex_table, markdown_table
from longshift.text import csv_cell

TABLE_FILES, FIGURE_FILES = ("md", "csv", "tex"), ("png", "svg", "csv", "md")


def write_output(output: Output, folder: Path, raw: bool = False) -> list[Path]:
    """NAME.md, NAME.csv, NAME.tex of a table; NAME.png, NAME.svg, NAME.csv, NAME.md (caption) of a figure.

    `raw`: CSV cells without a quote in front of what a spreadsheet would run.
    """
    base = folder / output.name
    if isinstance(output, Picture):
        return _write_picture(output, base, raw)
    write_text(base.with_suffix(".md"), markdown_table(output))
    write_text(base.with_suffix(".csv"), csv_tables([output], raw))
    write_text(base.with_suffix(".tex"), LATEX_PACKAGES + latex_table(output))
    return [base.with_suffix(f".{ending}") for ending in TABLE_FILES]


def _write_picture(picture: Picture, base: Path, raw: bool) -> list[Path]:
    for kind in ("png", "svg"):
        picture.drawing.save(base.with_suffix(f".{kind}"), dpi=160)
    write_text(
        base.with_suffix(".csv"),
        picture.data.map(lambda value: csv_cell(value, raw)).to_csv(
            index=False, lineterminator="\n", float_format="%.8g"
        ),
    )
    text = f"### {escape(picture.title)}\n\n![{escape(picture.title)}]({base.name}.svg)\n\n{escape(picture.caption)}\n"
    write_text(base.with_suffix(".md"), text)
    return [base.with_suffix(f".{kind}") for kind in FIGURE_FILES]


def write_overview(recipes: Sequence[Recipe], made: dict[str, list[str]], notes: dict[str, str], folder: Path) -> Path:
    """README.md: every result under the paper's label, or why it is not there."""
    lines = ["# Results by the paper's labels", ""]
    for recipe in recipes:
        lines += [f"## {recipe.label}: {escape(recipe.title)} (`{recipe.name}`)", ""]
        if recipe.name in notes:
            lines += [f"Not made: {escape(notes[recipe.name])}", ""]
        for name in dict.fromkeys(made.get(recipe.name, [])):
            path = folder / f"{name}.md"
            if path.exists():
                lines += [path.read_text(encoding="utf-8").strip(), ""]
        if recipe.name not in notes and not made.get(recipe.name):
            lines += [f"Not made yet: `longshift reproduce {recipe.name}`.", ""]
    write_text(folder / "README.md", "\n".join(lines))
    return folder / "README.md"
