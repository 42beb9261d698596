"""The choice of NDCL-plus by its rules in results/pacs-mobilenetv2/README.md, again: `python -m results.style_choice`.

Looks at validation accuracy only. Round 1 keeps the better half of the candidates, round 2 (with two more trials) the
simplest within `TIE` points of the best.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from longshift.io import read_toml

TIE = 0.2  # points
ROUNDS = [Path(__file__).parent / "pacs-mobilenetv2" / name for name in ("style-choice", "style-choice/finalists")]


def validation(folder: Path) -> pd.Series[float]:
    """Mean validation accuracy of each candidate in points, the simplest first."""
    frame = pd.read_parquet(folder / "runs.parquet")
    means = 100 * frame[frame["status"] == "done"].groupby("method")["validation_accuracy"].mean()
    return means.reindex(list(variants(folder)))


def variants(folder: Path) -> dict[str, dict[str, Any]]:
    """The candidates of a round by name."""
    return {variant["name"]: variant for variant in read_toml(folder / "sweep.toml")["variants"]}


def survivors(means: pd.Series[float]) -> list[str]:
    """The better half (of an odd number: the smaller half), in order of simplicity; ties go to the simpler."""
    kept = set(means.sort_values(ascending=False, kind="stable").index[: len(means) // 2])
    return [name for name in means.index if name in kept]


def winner(means: pd.Series[float]) -> str:
    """The simplest candidate within `TIE` points of the best."""
    return str(means.index[means >= means.max() - TIE][0])


def main() -> None:
    """Print both rounds and the winner."""
    for number, folder in enumerate(ROUNDS, 1):
        print(f"round {number}\n{validation(folder).round(2).to_string()}")
    best = winner(validation(ROUNDS[1]))
    print(f"winner: {best}, {variants(ROUNDS[1])[best]['style']}")


if __name__ == "__main__":
    main()
