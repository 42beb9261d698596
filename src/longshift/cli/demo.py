"""`longshift demo`: ERM against NDCL on the embedded data, in about two minutes."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from longshift.cli.common import QuietFlag, console, say, tell
from longshift.errors import LongshiftError


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs, the pictures and index.html.")] = Path("demo"),
    quiet: QuietFlag = False,
) -> None:
    """Train ERM and NDCL on the embedded digits and write one page of results.

    Two imbalance settings, four unseen styles, three seeds: 48 small runs, about two minutes on two processors.
    No download. After an interruption, the same command resumes.

    Example:

        longshift demo --out demo          # then open demo/index.html
    """
    from longshift.cli.sweep import run
    from longshift.data import load_dataset
    from longshift.demo import SETTINGS, demo_page, what_to_look_at
    from longshift.files import write_text
    from longshift.report import build_tables, print_report, split_panels, write_page
    from longshift.settings import make_split, recipe_of, setting_for
    from longshift.sweep import collect

    given = (resources.files("longshift.demo") / "sweep.toml").read_text(encoding="utf-8")
    spec = out / "sweep.toml"
    if spec.exists() and spec.read_text(encoding="utf-8") != given:
        raise LongshiftError(
            f"Expected the sweep of this version's demonstration, got {spec}. Choose another --out or remove {out}"
        )
    write_text(spec, given)
    digits = load_dataset("digits")
    for setting in SETTINGS:
        splits = [make_split(digits, setting_for(digits, setting, t, ratio=10)) for t in digits.domain_names]
        recipes = [recipe_of(split, digits) for split in splits]
        split_panels(recipes).save(out / f"split-{setting}.png")
    run(out, quiet=quiet)
    runs = collect(out)
    for table in build_tables(runs, ("average",)):
        print_report(table, console)
    for sentence in what_to_look_at(runs):
        say(sentence)
    write_page(demo_page(out, out / "index.html"), out / "index.html")
    tell(f"written: {out / 'index.html'}")
