"""Compare methods on a table of embeddings from any foundation model, in seconds.

    python examples/embeddings.py                       # a synthetic table
    python examples/embeddings.py mine.npz --target C   # your own table: arrays x (N, D), label, domain

All methods work on vectors as they do on images.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import longshift


def make_table(path: Path, n: int = 3000, length: int = 64, classes: int = 8) -> None:
    """Save a synthetic table in the format of your own embeddings: long-tailed classes, four shifted domains."""
    rng = np.random.default_rng(0)
    frequency = 0.6 ** np.arange(classes)
    y = rng.choice(classes, n, p=frequency / frequency.sum())
    domain = rng.integers(0, 4, n)
    centers, shifts = 0.7 * rng.normal(size=(classes, length)), rng.normal(size=(4, length))
    x = centers[y] + shifts[domain] + rng.normal(size=(n, length))
    np.savez(
        path, x=x.astype(np.float32), label=np.array([f"class {k}" for k in y]), domain=np.array(list("ABCD"))[domain]
    )


def main() -> None:
    """Train each method with one domain held out and print its accuracy there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help=".npz or .parquet file; default: a synthetic table")
    parser.add_argument("--target", default="D", help="domain to hold out")
    parser.add_argument("--methods", default="erm,bsoftmax,ndcl", help="method names, separated by commas")
    parser.add_argument("--steps", type=int, default=100, help="training steps per method")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = given.file or Path(folder) / "table.npz"
        if given.file is None:
            make_table(file)
        print(f"{'method':>10}  accuracy  mean over classes  (on {given.target}, not seen in training)")
        for name in given.methods.split(","):
            config = longshift.RunConfig(
                data=str(file), setting="Natural", shrink=True, target=given.target, method=name,
                steps=given.steps, eval_every=max(given.steps // 4, 1),
            )  # fmt: skip
            run = longshift.train(config, out=Path(folder) / name, runtime=longshift.Runtime(device="cpu"))
            found = run.result["selected"]["target"]
            recalls = [value for value in found["per_class"].values() if value is not None]
            print(f"{name:>10}  {found['accuracy']:8.3f}  {np.mean(recalls):17.3f}")


if __name__ == "__main__":
    main()
