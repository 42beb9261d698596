"""Frozen embeddings: a table of vectors from any foundation model, trained on with several methods in seconds.

    python examples/embeddings.py                       # a made-up table
    python examples/embeddings.py mine.npz --target C   # your own: arrays x (N, D), label, domain

Any method that needs only a loss (and the others too) works on vectors as it does on images.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import longshift


def make_table(path: Path, n: int = 3000, length: int = 64, classes: int = 8) -> None:
    """What `np.savez` of your own embeddings would look like: long-tailed classes, four sites with shifts."""
    rng = np.random.default_rng(0)
    frequency = 0.6 ** np.arange(classes)
    y = rng.choice(classes, n, p=frequency / frequency.sum())
    site = rng.integers(0, 4, n)
    x = rng.normal(size=(classes, length))[y] * 0.7 + rng.normal(size=(4, length))[site] + rng.normal(size=(n, length))
    np.savez(
        path, x=x.astype(np.float32), label=np.array([f"class {k}" for k in y]), domain=np.array(list("ABCD"))[site]
    )


def main() -> None:
    """Train each method with one site held out and print how it does there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help=".npz or .parquet; default: a made-up table")
    parser.add_argument("--target", default="D", help="the site that is held out")
    parser.add_argument("--methods", default="erm,bsoftmax,ndcl")
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = given.file or Path(folder) / "table.npz"
        if given.file is None:
            make_table(file)
        task = None
        print(f"{'method':>10}  accuracy  mean over classes  (at {given.target}, not seen in training)")
        for name in given.methods.split(","):
            config = longshift.RunConfig(
                data=str(file), setting="Natural", shrink=True, target=given.target, method=name,
                steps=given.steps, eval_every=max(given.steps // 4, 1),
            )  # fmt: skip
            task = longshift.make_task(config, known=task)  # the table is read once
            result = longshift.Trainer(config, task, Path(folder) / name, longshift.Runtime(device="cpu")).run()
            found = result["selected"]["target"]
            recalls = [value for value in found["per_class"].values() if value is not None]
            print(f"{name:>10}  {found['accuracy']:8.3f}  {np.mean(recalls):17.3f}")


if __name__ == "__main__":
    main()
