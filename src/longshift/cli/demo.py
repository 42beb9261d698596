"""`longshift demo`: four methods on embedded features of real images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longshift.cli.common import QuietFlag, console, say, tell
from longshift.data import EMBEDDED, PACS_FEATURES
from longshift.errors import LongshiftError, UsageError, unknown_name


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the runs and index.html; default: demo, or demo-digits.")
    ] = None,
    data: Annotated[
        str,
        typer.Option(metavar="pacs-features|digits", help="Embedded data to train on; digits: images, two methods."),
    ] = PACS_FEATURES,
    trials: Annotated[int, typer.Option(min=1, max=100, help="Repeat each run with this many seeds.")] = 3,
    steps: Annotated[int, typer.Option(min=1, help="Training steps per run.")] = 150,
    quiet: QuietFlag = False,
) -> None:
    """Compare ERM, BSoftmax, NDCL and NDCL-plus on embedded features of PACS and write one page of results.

    Two imbalance settings, four unseen domains, three trials: 96 runs, one to three minutes on two processors. It needs
    no download. After an interruption, the same command resumes.

    Example:

        longshift demo                     # then open demo/index.html
    """
    if data not in EMBEDDED:
        raise UsageError(f"--data: {unknown_name('embedded dataset', data, EMBEDDED)}")
    from longshift.cli.sweep import run
    from longshift.demo import demo_page, demo_sweep, read_demo
    from longshift.io import require_writable, write_text
    from longshift.report import build_tables, print_report, write_page

    folder = out or Path("demo" if data == PACS_FEATURES else f"demo-{data}")
    given, spec, page = demo_sweep(data, trials, steps), folder / "sweep.toml", folder / "index.html"
    for file in (spec, page):
        require_writable(file)
    if spec.exists() and spec.read_bytes() != given.encode():
        raise LongshiftError(
            f"Expected the sweep of this demonstration, got another one in {spec}. Choose another --out or remove "
            f"{folder}"
        )
    write_text(spec, given)
    run(folder, quiet=quiet)
    found = read_demo(folder)
    write_page(demo_page(found, page, data), page)
    for table in build_tables(found.runs, ("average",)):
        print_report(table, console)
    say(found.rescue.sentence())
    tell(f"written: {page}")
