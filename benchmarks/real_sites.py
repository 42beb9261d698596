"""Fits on real sites, each left out in turn: what adapting to the left-out site gains, and what was expected there.

    longshift embed WBC.zip --backbone mobilenetv2_100 --weights FILE --image-size 160 \\
        --preprocessing resize --out wbc.npz
    python -m benchmarks.real_sites 0,1,2 mobilenetv2 FITS wbc.npz ham10000.npz pacs.npz

A seed draws the sites of other sizes and class mixes and splits the samples of the fit. The folder FITS keeps the fits:
another rule is measured without training again. Adds rows to results/new-site/adaptation.csv (one per site, class mix
and size: accuracy of the plain model, of the adapted one, and of the adapted one that knows the class mix) and
real-signals.csv (the columns of signals.csv), as they come; what is there is not computed again.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import longshift
from longshift.array_types import FloatArray, IntArray
from longshift.inference import Predictions
from longshift.training import Runtime

OUT = Path("results/new-site")
SIZES = (20, 50, 200)
DRAWS = 3
DOMINANT = 0.8


def class_mixes(labels: IntArray, rng: np.random.Generator) -> Iterator[tuple[str, FloatArray]]:
    """Kinds of class mix with the probability of each sample: as it is, balanced, and one class at 80 %."""
    classes, kinds, counts = np.unique(labels, return_inverse=True, return_counts=True)
    yield "natural", np.full(len(labels), 1 / len(labels))
    yield "balanced", 1 / (len(classes) * counts)[kinds]
    shares = np.full(len(classes), (1 - DOMINANT) / (len(classes) - 1))
    shares[rng.integers(len(classes))] = DOMINANT
    yield "80 % one class", (shares / counts)[kinds]


def scores(found: Predictions, truth: IntArray) -> tuple[float, float]:
    """Accuracy over samples and over classes."""
    right = np.array([row.label for row in found.rows]) == truth
    return float(right.mean()), float(np.mean([right[truth == name].mean() for name in np.unique(truth)]))


def signal_row(found: Predictions, accuracy: float) -> dict[str, Any]:
    """What the predictions at a new site say, and the truth, as in signals.csv."""
    assert found.estimate is not None
    signals, reach = found.estimate.signals, found.estimate.accuracy
    return {
        "role": "new", "n": signals.n, "accuracy": accuracy, "agreement": signals.agreement,
        "dispersity": signals.dispersity, "confidence": signals.confidence, "distance": signals.nearest,
        "dominance": found.estimate.doubt.dominance, "said": reach.mean, "low": reach.low, "high": reach.high,
    }  # fmt: skip


def measure(
    data: str, x: Any, labels: Any, sites: Any, target: str, seed: int, fits: Path
) -> tuple[list[Any], list[Any]]:
    """Fit without a site; adapt to it in many forms. Returns the rows of both tables."""
    new = sites == target
    done = longshift.fit(
        x[~new], labels[~new], sites[~new], out=fits / f"{data}-{seed}-{target}", method="logistic", split_seed=seed,
        runtime=Runtime(device="cpu", threads=1),
    )  # fmt: skip
    model, rng, truth = done.model("cpu"), np.random.default_rng([seed, 1]), labels[new]
    knowledge, adapted, signals = model.knowledge, [], []
    assert knowledge is not None
    assert knowledge.adaptation is not None
    case = {"data": data, "seed": seed, "target": target}
    for held in knowledge.held_out:
        kept = held.signals
        signals.append({**case, "mix": "natural", "role": "held out", "site": held.site, "n": kept.n,
                        "accuracy": held.accuracy, "agreement": kept.agreement, "dispersity": kept.dispersity,
                        "confidence": kept.confidence, "distance": kept.nearest})  # fmt: skip
    for mix, weights in class_mixes(truth, rng):
        for size in (*SIZES, int(new.sum())):
            for draw in range(DRAWS if size < new.sum() else 1):
                whole = mix == "natural" and size == new.sum()
                rows = np.arange(size) if whole else rng.choice(len(truth), size, p=weights)
                inputs, own = x[new][rows], truth[rows]
                shares = {name: float((own == name).mean()) for name in model.classes}
                found = {
                    "plain": longshift.predict(model, inputs, adapt="off"),
                    "auto": longshift.predict(model, inputs),
                    "mix": longshift.predict(model, inputs, mix=shares),
                }
                measured = {name: scores(prediction, own) for name, prediction in found.items()}
                offset = found["auto"].adapted
                adapted.append(
                    {**case, "mix": mix, "n": size, "draw": draw, "helps": int(knowledge.adaptation.helps),
                     "used": offset.strength if offset else 0.0}
                    | {f"{name}_accuracy": pair[0] for name, pair in measured.items()}
                    | {f"{name}_balanced": pair[1] for name, pair in measured.items()}
                )  # fmt: skip
                row = signal_row(found["auto"], measured["auto"][0])
                signals.append({**case, "mix": mix, "site": target, "draw": draw} | row)
    return adapted, signals


def main() -> None:
    """Measure what is missing."""
    seeds, network, fits = [int(seed) for seed in sys.argv[1].split(",")], sys.argv[2], Path(sys.argv[3])
    tables = OUT / "adaptation.csv", OUT / "real-signals.csv"
    warnings.simplefilter("ignore")
    for seed in seeds:
        for file in sys.argv[4:]:
            found = np.load(file)
            x, labels, sites = found["x"], found["label"], found["domain"]
            data = f"{Path(file).stem} {network}"
            for target in np.unique(sites):
                before = pd.read_csv(tables[0]) if tables[0].exists() else pd.DataFrame(columns=["data"])
                there = before[(before["data"] == data)]
                if len(there) and ((there["seed"] == seed) & (there["target"] == target)).any():
                    continue
                for table, rows in zip(tables, measure(data, x, labels, sites, target, seed, fits), strict=True):
                    pd.DataFrame(rows).round(4).to_csv(table, mode="a", header=not table.exists(), index=False)
                print(data, seed, target, flush=True)


if __name__ == "__main__":
    main()
