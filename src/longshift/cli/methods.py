"""`longshift methods`: what can be trained, and every hyper-parameter."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from longshift.cli.common import JsonFlag, console, print_json, print_table, say, say_lines
from longshift.methods import FAMILIES, cost_cell, cost_note, method_infos, method_summary
from longshift.text import counted

WIDE = 120  # columns of a terminal


def methods(
    name: Annotated[str | None, typer.Argument(help="Method to describe; default: list all methods.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the methods, or show one with all its hyper-parameters.

    Examples:

        longshift methods                    # all of them

        longshift methods ndcl               # one, with defaults, allowed values and meanings

        longshift --plugin my_file.py methods mine    # one of your own

        longshift methods --json
    """
    if name is None:
        rows = [method_summary(info) for info in method_infos()]
        print_json(rows) if as_json else _list(rows)
        return
    # Imported here, because PyTorch takes seconds to load and a list does not need it.
    from longshift.methods import get_method, method_details

    details = method_details(get_method(name))
    print_json(details) if as_json else _show(details)


def _list(rows: list[dict[str, Any]]) -> None:
    # On a narrow terminal the papers would leave ten letters per line for the ideas; `methods NAME` shows them too.
    paper = ("paper",) if console.width >= WIDE else ()
    columns = ("name", "title", "family", "idea", *paper, "step cost")
    cells = [[*(row[key] for key in columns[:-1]), cost_cell(row["step_cost"])] for row in rows]
    families = ", ".join(f"{key} = {text}" for key, text in FAMILIES.items())
    caption = f"Families: {families}.\n{cost_note()}\nShow one with its paper: longshift methods NAME"
    presets = sum(bool(row["preset_of"]) for row in rows)
    title = f"{len(rows) - presets} methods" + (f" and {counted(presets, 'preset')}" if presets else "")
    print_table(title, columns, cells, caption)


def _show(method: dict[str, Any]) -> None:
    from longshift.methods import format_value
    from longshift.templates import render

    cost = f"{cost_note().rstrip('.')}: {cost_cell(method['step_cost'])}" if method["step_cost"] else ""
    say_lines(render("longshift.cli", "method.txt.j2", method=method, family=FAMILIES[method["family"]], cost=cost))
    rows = [
        (name, format_value(hp["default"]), hp["range"], hp["limits"], hp["meaning"])
        for name, hp in method["hyper_parameters"].items()
    ]
    caption = "random search = what a random search draws from, U(a, b) is uniform; allowed = what --set accepts"
    print_table("Hyper-parameters", ("name", "default", "random search", "allowed", "meaning"), rows, caption)
    for name, instead in method["not_used"].items():
        say(f"{name} has no effect; use {instead}.")
    others = [
        (context, name, format_value(other["default"]), other["range"])
        for name, hp in method["hyper_parameters"].items()
        for context, other in hp["variants"].items()
    ]
    if others:
        caption = "small = vectors, images of 64 pixels or less without pretrained weights; otherwise a benchmark"
        print_table("Where they differ", ("context", "name", "default", "random search"), sorted(others), caption)
    for text in method["repairs"]:
        say(f"Repair: {text}")
    say(f"Change one: longshift train --method {method['name']} --set NAME=VALUE ...")
