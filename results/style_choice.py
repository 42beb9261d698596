"""The choice of NDCL-plus by its written rules (docs/results/protocol.md): `python -m results.style_choice [FOLDER]`.

Reads the finished runs of the sweep in FOLDER (round 1, results/pacs-mobilenetv2/style-choice) and looks at validation
accuracy only. Prints the mean of each candidate, writes the sweep file of round 2 with the better half, and, once round
2 is finished, names the winner with its hyper-parameters.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from longshift.sweep import collect, load_plan

TIE = 0.2  # points
PLAIN = Path(__file__).parent / "pacs-mobilenetv2" / "style-choice"


def validation(folder: Path) -> pd.DataFrame:
    """Mean validation accuracy of each candidate in points, also of averaged weights, and the number of runs."""
    frame = collect(folder)
    frame = frame.assign(points=100 * frame["validation_accuracy"], ema=frame["method"].str.endswith("+ema"))
    frame["candidate"] = frame["method"].str.removesuffix("+ema")
    table = frame.pivot_table("points", "candidate", "ema", aggfunc="mean")
    table.columns = ["ema" if ema else "validation" for ema in table.columns]
    order = list(dict.fromkeys(job.method for job in load_plan(folder).jobs))  # as in the sweep file: simplest first
    return table.assign(runs=frame[~frame.ema].groupby("candidate").size()).reindex(order).dropna(how="all")


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
    """The hyper-parameters of a candidate, which the confirmation uses as those of NDCL-plus."""
    run = next(job.run for job in load_plan(finalists).jobs if job.method == name)
    return json.dumps(run["hparams"])


def main() -> None:
    """Show a round, prepare or judge the next."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PLAIN
    first = validation(folder)
    first = first.assign(survives=first.index.isin(survivors(first["validation"])))
    sys.stdout.write(f"round 1\n{first.round(2).to_string()}\n")
    file = write_finalists(folder, survivors(first["validation"]))
    sys.stdout.write(f"wrote {file}\n")
    second = validation(file.parent)
    if int(second["runs"].min()) < len(load_plan(file.parent).jobs) // len(second):
        return
    best = winner(second["validation"])
    sys.stdout.write(f"round 2\n{second.round(2).to_string()}\nwinner: {best}, {values(file.parent, best)}\n")


if __name__ == "__main__":
    main()
