"""How well a fit knows a new site: coverage of its intervals and error of the label-free estimates, nested.

    python -m benchmarks.new_site PACS.npz WEIGHTS.safetensors OUT.csv [--workers 16]

PACS.npz: `longshift embed PACS.zip --backbone mobilenetv2_100 --weights WEIGHTS.safetensors --image-size 160 --out
PACS.npz`. For each dataset, seed, new site and choice of other sites, models are trained as `longshift fit` trains
them, without the new site; what the fit says about it is compared with the truth. One row per case.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import site_data
from benchmarks.common import write_rows
from benchmarks.nested_sites import Case, Outputs, all_cases, subsets, train_subset
from longshift.analysis import one_more_site
from longshift.inference import (
    HeldOutSite,
    Signals,
    SiteKnowledge,
    estimate_site,
    make_reference,
    read_signals,
)

SEEDS = {"pacs": range(100, 104), "digits": range(100, 104), "vectors": range(100, 108)}
METHOD = "ndcl_plus"


def choose_cases(names: Sequence[str], seed: int) -> list[Case]:
    """Each site as the new one, with all others and with one random choice of fewer; of few sites, every choice."""
    rng = np.random.default_rng(seed)
    found = all_cases(names, 2)
    if len(names) <= 4:
        return found
    chosen = []
    for new in names:
        for size in (len(names) - 1, int(rng.integers(2, len(names) - 1))):
            same = [case for case in found if case.new == new and len(case.given) == size]
            chosen.append(same[int(rng.integers(len(same)))])
    return chosen


def measure(case: Case, runs: dict[tuple[str, ...], Outputs]) -> dict[str, Any]:
    """What the fit on the given sites says about the new one, and the truth."""
    held = []
    for site in case.given:
        run = runs[tuple(other for other in case.given if other != site)]
        held.append(HeldOutSite(site, run.accuracy(site), _signals(run, site)))
    final = runs[case.given]
    knowledge = SiteKnowledge(tuple(held), _reference(final))
    estimate = estimate_site(knowledge, _signals(final, case.new))
    assert estimate is not None
    before = one_more_site([site.accuracy for site in held], [site.signals.n for site in held])
    signals = estimate.signals
    return {
        "new": case.new, "sites": len(held), "truth": final.accuracy(case.new),
        "held_out_mean": before.mean, "fit_low": before.low, "fit_high": before.high,
        "estimate": estimate.accuracy.mean, "low": estimate.accuracy.low, "high": estimate.accuracy.high,
        "confidence": signals.confidence, "atc": signals.thresholded, "doc": signals.difference,
        "distance": signals.nearest, "far": int(estimate.far),
    }  # fmt: skip


def _reference(run: Outputs) -> Any:
    return make_reference(run.logits, run.labels, run.features, run.sites, run.temperature)


def _signals(run: Outputs, site: str) -> Signals:
    return read_signals(_reference(run), run.at[site].logits, run.at[site].features, run.temperature)


def run_dataset(task: tuple[str, int, Path, Path]) -> list[dict[str, Any]]:
    """All cases of one dataset and seed."""
    kind, seed, pacs, weights = task
    torch.set_num_threads(1)
    data = (
        site_data.pacs(pacs, seed) if kind == "pacs"
        else site_data.digits(weights, seed) if kind == "digits" else site_data.vectors(seed)
    )  # fmt: skip
    cases = choose_cases(data.names, seed)
    with tempfile.TemporaryDirectory() as folder:
        runs = {sites: train_subset(data, sites, seed, Path(folder), METHOD) for sites in subsets(cases)}
    return [{"data": kind, "seed": seed, **measure(case, runs)} for case in cases]


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pacs", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    tasks = [(kind, seed, given.pacs, given.weights) for kind, seeds in SEEDS.items() for seed in seeds]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for part in pool.imap(run_dataset, tasks, 1):
            rows += part
            write_rows(given.out, rows)
            print(part[0]["data"], part[0]["seed"], len(part), "cases", flush=True)


if __name__ == "__main__":
    main()
