"""The choice of NDCL-plus by its written rules (docs/results/protocol.md): `python -m results.style_choice [FOLDER]`.

Reads the finished runs of the sweep in FOLDER (round 1, results/pacs-mobilenetv2/style-choice) and looks at validation
accuracy only. Once each candidate has all its runs, prints their means, writes the sweep file of round 2 with the
better half, and, once round 2 is finished, names the winner with its hyper-parameters. Published runs are judged
without the images.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from longshift.data import get_benchmark
from longshift.io import read_toml
from longshift.sweep import collect, data_elsewhere, runs_file

TIE = 0.2  # points
PLAIN = Path(__file__).parent / "pacs-mobilenetv2" / "style-choice"


PLACE = ["dataset", "setting", "target", "trial", "draw"]


def sweep_file(folder: Path) -> dict[str, Any]:
    """The tables of a round; the variants are its candidates, the simplest first."""
    return read_toml(folder / "sweep.toml")


def runs_per_candidate(sweep: dict[str, Any]) -> int:
    """How many runs a candidate has; the targets are the domains of a benchmark, so that no images are needed."""
    domains = sum(len(get_benchmark(dataset["benchmark"]).domains) for dataset in sweep["datasets"])
    return len(sweep["settings"]) * domains * int(sweep["trials"]) * int(sweep["draws"])


def validation(folder: Path) -> pd.DataFrame:
    """Mean validation accuracy of each candidate in points, also of averaged weights, and the number of runs."""
    frame = collect(folder)
    frame = frame[frame["status"] == "done"]
    frame = frame.assign(points=100 * frame["validation_accuracy"], ema=frame["method"].str.endswith("+ema"))
    frame["candidate"] = frame["method"].str.removesuffix("+ema")
    table = frame.pivot_table("points", "candidate", "ema", aggfunc="mean")
    table.columns = ["ema" if ema else "validation" for ema in table.columns]
    runs = frame[~frame["ema"]].drop_duplicates(["candidate", *PLACE]).groupby("candidate").size()
    table = table.assign(runs=runs).reindex([variant["name"] for variant in sweep_file(folder)["variants"]])
    return table.assign(runs=table["runs"].fillna(0).astype(int))


def missing_runs(folder: Path, table: pd.DataFrame) -> str:
    """Which candidates of a round lack runs; "" if none does."""
    expected = runs_per_candidate(sweep_file(folder))
    lacking = [f"{runs} of {name}" for name, runs in table["runs"].items() if runs < expected]
    if not lacking:
        return ""
    return (
        f"Expected {expected} finished runs of each candidate, got {', '.join(lacking)}. "
        f"Finish them: longshift sweep run {folder}"
    )


def survivors(means: pd.Series) -> list[str]:
    """The better half (of an odd number: the smaller half), in order of simplicity; ties go to the simpler."""
    kept = set(means.sort_values(ascending=False, kind="stable").index[: len(means) // 2])
    return [name for name in means.index if name in kept]


def winner(means: pd.Series) -> str:
    """The simplest candidate within `TIE` points of the best."""
    return str(means.index[means >= means.max() - TIE][0])


def write_finalists(folder: Path, names: list[str]) -> Path:
    """The sweep file of round 2: that of round 1 with the survivors and three trials."""
    head, *variants = (folder / "sweep.toml").read_text(encoding="utf-8").split("\n[[variants]]\n")
    kept = [text for text in variants if any(text.startswith(f'name = "{name}"\n') for name in names)]
    head = head[head.index("settings") :].replace("trials = 1", 'trials = 3\nstore = ".."  # round 1 is trial 0')
    head = head.replace('"../../../', '"../../../../')
    text = "# Round 2: the better half of round 1, with trials 1 and 2. Written by results/style_choice.py.\n"
    file = folder / "finalists" / "sweep.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text + "\n[[variants]]\n".join([head, *kept]), encoding="utf-8")
    return file


def values(finalists: Path, name: str) -> str:
    """The hyper-parameters and the style of a candidate, which the confirmation uses as those of NDCL-plus."""
    sweep = sweep_file(finalists)
    (own,) = (variant for variant in sweep["variants"] if variant["name"] == name)
    return json.dumps({"hparams": {**sweep["run"]["hparams"], **own.get("hparams", {})}, "style": own["style"]})


def main(arguments: list[str] | None = None) -> None:
    """Show a round, prepare or judge the next."""
    given = sys.argv[1:] if arguments is None else arguments
    folder = Path(given[0]) if given else PLAIN
    first = validation(folder)
    if missing := missing_runs(folder, first):  # half of them would choose others, and the file of round 2 would change
        raise SystemExit(f"Round 1 is not finished. {missing}")
    first = first.assign(survives=first.index.isin(survivors(first["validation"])))
    sys.stdout.write(f"round 1\n{first.round(2).to_string()}\n")
    file = write_finalists(folder, survivors(first["validation"]))
    sys.stdout.write(f"wrote {file}\n")
    if runs_file(file.parent) is None and data_elsewhere(file.parent):
        return  # not begun: without its data, the jobs of a sweep cannot be listed
    second = validation(file.parent)
    if missing := missing_runs(file.parent, second):
        sys.stdout.write(f"Round 2 is not finished. {missing}\n")
        return
    best = winner(second["validation"])
    sys.stdout.write(f"round 2\n{second.round(2).to_string()}\nwinner: {best}, {values(file.parent, best)}\n")


if __name__ == "__main__":
    main()
