"""The verbs `longshift data inspect | verify`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from longshift.cli.common import (
    DataArgument,
    JsonFlag,
    QuietFlag,
    caution,
    print_json,
    print_table,
    progress,
    say_lines,
    tell,
)
from longshift.data import (
    DataProblem,
    Manifest,
    benchmarks,
    layout_problems,
    load_dataset,
    looks_like_split,
    no_shared_class,
    verify,
)
from longshift.templates import render
from longshift.text import counted

MOST = 10  # warnings of one kind

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Count and check the images of a dataset.\n\nA dataset is a folder `domain/class/image.jpg`, the "
    "same in a `.zip`, a `.csv` or `.parquet` with columns path (or image), label, domain, a Hugging Face dataset "
    "(a folder of save_to_disk, or `hf://owner/name`), vectors (`.npz`, `.parquet`), or one of the words `digits` and "
    "`pacs-features`, which name embedded data.\n\n"
    "Example:\n\n    longshift data inspect digits",
)


@app.command()
def inspect(path: DataArgument, json: JsonFlag = False) -> None:
    """Count the images (or vectors) of every class in every domain.

    Example:

        longshift data inspect PACS.zip
    """
    manifest = load_dataset(path)
    _warn(manifest)
    if json:
        print_json(manifest.counts())
        return
    table = manifest.count_table()
    rows: list[list[object]] = [
        [name, *row, sum(row)] for name, row in zip(manifest.classes, table.T.tolist(), strict=True)
    ]
    rows.append(["total", *table.sum(1).tolist(), int(table.sum())])
    print_table(
        f"{manifest.name}: {counted(len(manifest), manifest.noun)}, "
        f"{counted(len(manifest.domain_names), 'domain')}, "
        f"{counted(len(manifest.classes), 'class', 'classes')}",
        ["class", *manifest.domain_names, "total"],
        rows,
    )


def _warn(manifest: Manifest) -> None:
    """Warn on standard error about problems that would appear later."""
    apart = no_shared_class(manifest)
    by_kind: dict[str, list[DataProblem]] = {}
    for problem in layout_problems(manifest):
        if not (apart and problem.kind == "empty class"):  # then nearly every class is missing nearly everywhere
            by_kind.setdefault(problem.kind, []).append(problem)
    text = render(
        "longshift.cli", "data_inspect.txt.j2", manifest=manifest, split_names=looks_like_split(manifest.domain_names),
        apart=apart, by_kind=by_kind, most=MOST,
    )  # fmt: skip
    for line in text.splitlines():
        caution(line) if line.startswith("warning: ") else tell(line)


@app.command(name="verify")
def verify_command(
    path: DataArgument,
    benchmark: Annotated[
        str | None, typer.Option(help="Also compare the counts with a benchmark, such as PACS.")
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Decode every image and list all problems; the exit code is 1 if there are any.

    Example:

        longshift data verify PACS.zip --benchmark PACS
    """
    known = benchmarks.get_benchmark(benchmark) if benchmark else None
    manifest = load_dataset(path)
    differences = benchmarks.compare_counts(manifest, known.name) if known else []
    with progress("verify", len(manifest), quiet) as tick:
        problems = verify(manifest, tick)
    if json:
        print_json(
            {
                "images": len(manifest),
                "problems": [asdict(problem) for problem in problems],
                "differences": [difference._asdict() for difference in differences],
            }
        )
    else:
        if problems:
            rows = [[problem.kind, problem.path, problem.detail] for problem in problems]
            print_table(counted(len(problems), "problem"), ["kind", "path", "detail"], rows)
        if known and differences:
            title = f"{counted(len(differences), 'difference')} from {known.name}"
            print_table(title, ["domain", "class", "expected", "found"], differences)
        facts = {"manifest": manifest, "problems": problems, "known": known, "differences": differences}
        say_lines(render("longshift.cli", "data_verify.txt.j2", **facts))
    if problems or (known and not all(known.explains(difference) for difference in differences)):
        raise typer.Exit(1)
