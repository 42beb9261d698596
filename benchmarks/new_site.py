"""How well a fit knows a new site: nested leave-one-site-out runs for the intervals and label-free estimates.

    python -m benchmarks.new_site PACS.npz WEIGHTS.safetensors OUT.csv [--workers 16]

PACS.npz: `longshift embed PACS.zip --backbone mobilenetv2_100 --weights WEIGHTS.safetensors --image-size 160 --out
PACS.npz`. For each dataset, seed, new site and choice of other sites, models are trained as `longshift fit` trains
them, without the new site. One row per site of each case: what predictions alone say there, and the true accuracy.
`python -m results.docs_tables` makes the tables of docs/results/new-site.md from it.
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
from longshift.inference import Signals, make_reference, read_signals

SEEDS = {"pacs": range(5), "digits": range(14), "vectors": range(29)}
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


def measure(case: Case, runs: dict[tuple[str, ...], Outputs]) -> list[dict[str, Any]]:
    """What predictions alone say at the new site and at each held-out one, and the truth: a row per site."""
    rows = [_row("new", case.new, runs[case.given])]
    for site in case.given:
        rows.append(_row("held out", site, runs[tuple(other for other in case.given if other != site)]))
    return rows


def _row(role: str, site: str, run: Outputs) -> dict[str, Any]:
    found = _signals(run, site)
    values = (run.accuracy(site), found.confidence, found.thresholded, found.difference, found.nearest)
    names = ("accuracy", "confidence", "atc", "doc", "distance")
    return {"role": role, "site": site, "n": found.n, **{k: round(v, 5) for k, v in zip(names, values, strict=True)}}


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
    return [
        {"case": f"{kind}-{seed}-{number}", "data": kind, "seed": seed, **row}
        for number, case in enumerate(cases)
        for row in measure(case, runs)
    ]


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
            print(part[0]["data"], part[0]["seed"], flush=True)


if __name__ == "__main__":
    main()
