"""`longshift report`: tables, comparison with the paper, and the HTML page, from finished runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

import longshift.report as reports
from longshift.cli.common import JsonFlag, caution, console, print_json, say, tell
from longshift.errors import UsageError, unknown_name
from longshift.io import refuse_overwrite, require_writable
from longshift.text import printable

if TYPE_CHECKING:
    import pandas as pd


class Command(TyperCommand):
    """The verb; its help lists the registered kinds of tables, which take a second to import."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Add the kinds of tables."""
        kinds = "\n\n".join(f"    {kind.name:<10} {kind.description}" for kind in reports.table_kinds())
        self.help = f"{self.help}\n\nKinds of tables:\n\n{kinds}\n"
        super().format_help(ctx, formatter)


def report(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Sweeps, folders of runs or tables of runs.")],
    format_: Annotated[
        Literal["terminal", "markdown", "latex", "csv"], typer.Option("--format", help="Format of the printed tables.")
    ] = "terminal",
    table: Annotated[str, typer.Option(help="Print one kind of table (listed above), or all.")] = "all",
    selection: Annotated[
        Literal["validation", "last", "oracle"],
        typer.Option(
            help="Step to report; validation: as in the protocol; last: the last one; oracle: selected on the target.",
        ),
    ] = "validation",
    against: Annotated[str, typer.Option(help="Add a table of the differences from this method.")] = "",
    setting: Annotated[list[str] | None, typer.Option(help="Use only runs of this setting; repeatable.")] = None,
    draws: Annotated[
        int | None, typer.Option(min=1, help="Use only the first draws of hyper-parameters; 1: only the defaults.")
    ] = None,
    compare: Annotated[Literal["paper"] | None, typer.Option(help="Compare with the published numbers.")] = None,
    ranked: Annotated[
        Literal["methods", "variants"], typer.Option(help="Rows to rank; variants: methods and variants.")
    ] = "variants",
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write tables as Markdown, LaTeX and CSV to this folder.")] = None,
    data: Annotated[
        str | None, typer.Option(help="Read the images of --html from here, if they moved since training.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make tables and a page from finished runs.

    PATH is a sweep, a folder of runs, or a table of runs (runs.parquet, or a folder with one). Several paths
    give one report on all their runs; a run that two of them have counts once.

    Examples:

        longshift report sweeps/first                                  # summary and all tables, on the terminal

        longshift report sweeps/first sweeps/second                    # two sweeps in one report

        longshift report sweeps/first --table average --format latex   # one kind of table, for a paper

        longshift report sweeps/first --html report.html               # one page with everything, no network needed

        longshift report sweeps/first --compare paper --out tables     # with the published numbers, as files

        longshift report results/pacs-frozen                           # from published results, without data or runs

        longshift report results/pacs-frozen --draws 1 --against erm   # default hyper-parameters; differences from ERM
    """
    from longshift.sweep import collect

    known = [kind.name for kind in reports.table_kinds()]
    if table not in (*known, "all"):
        raise UsageError(f"--table: {unknown_name('table', table, [*known, 'all'])}")
    defaults = [kind.name for kind in reports.table_kinds() if kind.default or (kind.name == "paired" and against)]
    kinds = defaults if table == "all" else [table]
    if "paired" in kinds and not against:
        raise UsageError("--table paired needs --against METHOD")
    for file in filter(None, (html, out and out / "runs.csv")):
        require_writable(file)
        refuse_overwrite(file, paths)
    for path in paths:
        _check_path(path)
    frame = reports.filter_runs(
        reports.join_runs([collect(path, missing=True) for path in paths]), setting or (), draws
    )
    for dataset, versions in reports.mixed_versions(frame).items():
        text = reports.words("mixed_versions", dataset=dataset, versions=versions)
        caution(f"warning: {text} Compare their numbers with care.")
    # Finding the folders reads the plan of a sweep, which tables of numbers do not need.
    folders = {k: v for path in paths for k, v in reports.run_folders(path).items()} if html or len(kinds) == 1 else {}
    runs = reports.ReportRuns(frame, selection, against, folders)
    tables, missing = reports.build_tables(runs, kinds), runs.missing
    agreement: list[reports.Table] = []
    compared = None
    if compare:
        paper = _paper(frame)
        if any(one.kind in ("average", "worst") for one in tables):
            agreement, compared = reports.compare(tables, paper, sorted(set(frame["backbone"]) - {""}))
    comparison = reports.words("comparison", facts=compared) if compared else ""
    shown = [*tables, *agreement]
    if out:
        reports.save_tables(shown, frame, missing, out)
    if html:
        command = " ".join(["longshift", *map(shlex.quote, sys.argv[1:])])
        page = reports.report_page(runs, shown, html, compared if agreement else None, data, command, ranked)
        reports.write_page(page, html)
    if as_json:
        print_json(
            {
                "paths": [str(path) for path in paths],
                "selection": selection,
                "runs": int((frame["status"] == "done").sum()),
                "tables": [reports.as_json(t) for t in shown],
                "missing": {"count": missing.count, "expected": missing.expected, "runs": _records(missing.frame)},
                "findings": reports.findings(reports.report_facts(runs, ranked)),
                "comparison": comparison,
            }
        )
        return
    if format_ == "terminal" and (html or table == "all"):
        found = reports.findings(reports.report_facts(runs, ranked))
        if found:
            say("In short", "bold")
            say("\n".join(f"- {sentence}" for sentence in found) + "\n")
    if not html or format_ != "terminal":
        _print(shown, format_)
    for line in filter(None, (comparison, *missing.notes())):
        tell(line)
    for written in filter(None, (html, out)):
        tell(f"written: {written}")


def _check_path(path: Path) -> None:
    """Refuse a folder of `fit` or `reproduce`, whose runs are further down; the model of a fit has seen all sites."""
    if any((path / name).exists() for name in ("sweep.toml", "runs.parquet")):
        return
    for below in (path / "sites", path / "store" / "jobs"):
        if below.is_dir():
            raise UsageError(
                f"{path} has no runs of its own. For tables of those in it: longshift report {shlex.quote(str(below))}"
            )


def _print(tables: Sequence[reports.Table], format_: str) -> None:
    if format_ == "terminal":
        # Notes under one table, such as a list of missing runs, are not repeated under the next.
        shown: set[str] = set()
        for one in tables:
            reports.print_report(replace(one, notes=tuple(note for note in one.notes if note not in shown)), console)
            shown.update(one.notes)
    elif format_ == "markdown":
        typer.echo(printable("\n".join(map(reports.markdown_table, tables))), nl=False)
    elif format_ == "latex":
        typer.echo(printable(reports.latex_document(tables)), nl=False)
    else:
        typer.echo(printable(reports.csv_tables(tables)), nl=False)


def _paper(runs: pd.DataFrame) -> reports.Published:
    """The paper's numbers, with datasets and targets spelled as in the runs."""
    import pandas as pd

    from longshift.data import benchmarks
    from longshift.paper import overall_results, paper_table

    known = benchmarks.all_benchmarks()
    averages, worst = [], []
    for dataset, benchmark in sorted(set(zip(runs["dataset"], runs["benchmark"], strict=True))):
        found = [name for name in known if benchmarks.plain(name) in map(benchmarks.plain, (benchmark, dataset))]
        if not found:
            continue
        there, rows = overall_results(), paper_table("worst_domain")
        averages.append(there[there["dataset"] == found[0]].assign(dataset=dataset))
        for target in sorted(set(runs.loc[runs["dataset"] == dataset, "target"])):
            letter = known[found[0]].domain_spellings.get(benchmarks.plain(target))
            here = rows[(rows["dataset"] == found[0]) & (rows["target"] == letter)]
            worst.append(here.assign(dataset=dataset, target=target))
    # Without a benchmark among the runs, keep the paper's names, so that the message can list them.
    return reports.published(
        "the paper",
        pd.concat(averages or [overall_results()], ignore_index=True),
        pd.concat(worst or [paper_table("worst_domain")], ignore_index=True),
    )


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): v if isinstance(v, str) else int(v) for k, v in row.items()} for row in frame.to_dict("records")]
