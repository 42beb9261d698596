"""`longshift demo`: a sweep on embedded data, and its report with a picture of the classes that gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated, Literal

import typer

import longshift.report as reports
from longshift.cli.common import QuietFlag, say, tell
from longshift.data import PACS_FEATURES
from longshift.errors import LongshiftError

BASELINE = "erm"
MEASURES = {"few": "target_few", "many": "target_many", "every": "target_accuracy"}
SETTINGS = {
    "TotalHeavyTail": "the same classes are rare everywhere",
    "Duality": "rare classes differ by domain",
}


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the runs and index.html; default: demo, or demo-digits.")
    ] = None,
    data: Annotated[
        Literal["pacs-features", "digits"], typer.Option(help="Embedded data; digits: images, two methods.")
    ] = "pacs-features",
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
    from longshift.cli.sweep import run
    from longshift.io import require_writable, write_text
    from longshift.sweep import collect

    folder = out or Path("demo" if data == PACS_FEATURES else f"demo-{data}")
    given, spec, page = demo_sweep(data, trials, steps), folder / "sweep.toml", folder / "index.html"
    for file in (spec, page):
        require_writable(file)
    if spec.exists() and spec.read_bytes() != given.encode():
        raise LongshiftError(f"{spec} holds another sweep. Choose another --out, or remove {folder}")
    write_text(spec, given)
    run(folder, quiet=quiet)
    runs = reports.ReportRuns(collect(folder, missing=True), folders=reports.run_folders(folder))
    facts = demo_facts(runs)
    reports.write_page(demo_page(runs, facts, page, data), page)
    say(facts.words("finding")[0])
    tell(f"written: {page}")


def demo_sweep(data: str, trials: int, steps: int) -> str:
    """The sweep file of the demonstration on an embedded dataset."""
    text = (resources.files("longshift.cli") / f"demo_{data}.toml").read_text(encoding="utf-8")
    return Template(text).substitute(trials=trials, steps=steps, eval_every=max(steps // 6, 1))


@dataclass(frozen=True)
class BeforeAfter:
    """Percent with ERM and with the other method, at unseen domains, mean over settings, targets and trials."""

    before: float
    after: float

    @property
    def gain(self) -> float:
        """In points."""
        return self.after - self.before


@dataclass(frozen=True, eq=False)
class DemoFacts:
    """ERM against the other method with the best average rank: `few`, `many`: classes by their training samples."""

    method: str
    few: BeforeAfter
    many: BeforeAfter
    every: BeforeAfter
    records: Sequence[reports.Record] = ()

    def words(self, part: str, data: str = "") -> list[str]:
        """The paragraphs of a part of `demo.txt.j2`."""
        from longshift.templates import render

        facts = {**vars(self), "method": reports.method_title(self.method)}
        text = render("longshift.cli", "demo.txt.j2", part=part, data=data, **facts)
        return [" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip()]


def demo_facts(runs: reports.ReportRuns) -> DemoFacts:
    """What the runs of a demonstration show."""
    from longshift.sweep import averages

    chosen = runs.chosen
    order = reports.rank_methods(chosen).order
    method = next(name for name in order if name != BASELINE)
    means = 100 * averages(chosen).groupby("method", observed=True)[list(MEASURES.values())].mean()
    pairs = {name: BeforeAfter(*(float(means[key][m]) for m in (BASELINE, method))) for name, key in MEASURES.items()}
    records = reports.read_records(chosen, runs.folders, [BASELINE, method])
    return DemoFacts(method, records=records, **pairs)


def demo_page(runs: reports.ReportRuns, facts: DemoFacts, page: Path, data: str) -> reports.Page:
    """The report of the runs, to be written to `page`, below the finding and the picture of the classes."""
    command = "longshift demo" if data == PACS_FEATURES else f"longshift demo --data {data}"
    made = reports.report_page(
        runs, reports.build_tables(runs, ("average", "target", "worst", "cost")), page, command=command
    )
    charts = []
    for setting in reports.order_settings([record.setting for record in facts.records]):
        here = [record for record in facts.records if record.setting == setting]
        shown = {m: [record for record in here if record.method == m] for m in (BASELINE, facts.method)}
        name = reports.paragraphs(f"{setting}: {SETTINGS[setting]}")
        charts.append(reports.join_html(name, reports.class_section(shown).body))
    lead = reports.join_html(reports.paragraphs(*facts.words("finding")), reports.side_by_side(*charts))
    look = reports.Section("What to look at", reports.paragraphs(*facts.words("look", data)), name="look")
    names = [reports.method_title(name) for name in reports.order_methods(runs.chosen["method"].unique())]
    title = f"Rare classes in unseen domains: {', '.join(names[:-1])} and {names[-1]}"
    return replace(made, title=title, lead=lead, facts=(), sections=[look, *made.sections])
