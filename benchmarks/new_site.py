"""How well a fit knows a new site: nested leave-one-site-out runs for the intervals and label-free estimates.

    python -m benchmarks.new_site PACS.npz WEIGHTS.safetensors OUT.csv [--workers 16] [--keep FOLDER]

PACS.npz: `longshift embed PACS.zip --backbone mobilenetv2_100 --weights WEIGHTS.safetensors --image-size 160
--preprocessing resize --out PACS.npz`. For each dataset, seed, new site and choice of other sites, models are trained
as `longshift fit` trains them, without the new site. One row per site of each case: what predictions alone say there,
and the true accuracy. The new site also appears with other class frequencies (`mix`): samples are left out until
classes have long tails, until one of them dominates, or until few are left.
With --keep, the outputs of the models are kept, and another run with the same folder computes only the rows again.
`make tables` makes the tables of docs/results/new-site.md from it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks import site_data
from benchmarks.common import write_rows
from benchmarks.label_free_constants import FAR_SEED
from benchmarks.nested_sites import Case, Outputs, all_cases, subsets, train_subset
from longshift.inference import class_excess, make_reference, read_signals
from longshift.inference.site_adaptation import FEWEST
from longshift.io import replacing
from longshift.metrics import negative_entropy, probabilities

# Seeds from 100 on choose the constants of the estimate and of the width of its interval
# (`benchmarks.label_free_constants`); those from 200 on have far sites and choose the width only. The others judge.
SEEDS = {
    "pacs": range(5),
    "digits": (*range(3), 100, 101, *range(200, 203)),
    "vectors": (*range(8), *range(100, 104), *range(200, 204)),
}
METHOD = "ndcl_plus"


def choose_cases(names: Sequence[str], seed: int, far: Sequence[str] = ()) -> list[Case]:
    """Each site as the new one with all others; of many sites, also the rest of them with three and with two.

    Of few sites, every choice. Far sites are new to choices that are there for the others.
    """
    if len(names) <= 4:
        return all_cases(names, 2)
    order = np.random.default_rng(seed).permutation(len(names))
    few = [tuple(names[i] for i in sorted(order[:size])) for size in (3, 2)]
    many = [tuple(name for name in names if name != new) for new in names]
    cases = [Case(new, given) for new, given in zip(names, many, strict=True)]
    cases += [Case(new, given) for given in few for new in names if new not in given]
    return cases + [Case(new, given) for i, new in enumerate(far) for given in (many[i % len(many)], *few)]


def class_mixes(labels: npt.NDArray[np.int64], seed: int) -> dict[str, npt.NDArray[np.int64]]:
    """Samples of a site as it is, with long tails (ratio of the counts: 10, 50), with a dominant class, and few."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.unique(labels))
    steps = np.arange(len(classes)) / max(len(classes) - 1, 1)
    found = {"as is": np.arange(len(labels))}
    for ratio in (10, 50):
        found[f"tail {ratio}"] = _with_shares(labels, classes, float(ratio) ** -steps, rng)
    for percent in (70, 90):
        rest = (1 - percent / 100) / max(len(classes) - 1, 1)
        shares = np.array([percent / 100, *[rest] * (len(classes) - 1)])
        found[f"{percent}% one class"] = _with_shares(labels, classes, shares, rng)
    for n in (25, 50):
        found[f"{n} samples"] = rng.permutation(len(labels))[:n]
    return {name: samples for name, samples in found.items() if len(samples) >= FEWEST}


def _with_shares(
    labels: npt.NDArray[np.int64], classes: npt.NDArray[np.int64], shares: npt.NDArray[np.float64], rng: Any
) -> npt.NDArray[np.int64]:
    """As many samples as there are with these shares of the classes, at least one of each."""
    there = np.array([(labels == k).sum() for k in classes])
    wanted = np.maximum((there / shares).min() * shares, 1).astype(int)
    parts = [rng.permutation(np.flatnonzero(labels == k))[:n] for k, n in zip(classes, wanted, strict=True)]
    return np.concatenate(parts)


def measure(case: Case, runs: dict[tuple[str, ...], Outputs], seed: int) -> list[dict[str, Any]]:
    """What predictions alone say at the new site and at each held-out one, and the truth: a row per site and mix."""
    run = runs[case.given]
    mixes = class_mixes(run.at[case.new].labels, seed)
    known = _class_counts(run, case.given)
    rows = [{"mix": mix, **_row("new", case.new, run, samples, known)} for mix, samples in mixes.items()]
    for site in case.given:
        others = tuple(name for name in case.given if name != site)
        every = np.arange(len(runs[others].at[site].labels))
        row = _row("held out", site, runs[others], every, _class_counts(runs[others], others))
        rows.append({"mix": "as is", **row})
    return rows


def _class_counts(run: Outputs, sites: Sequence[str]) -> list[list[int]]:
    """Samples of each class at each of the sites."""
    return [np.bincount(run.at[site].labels, minlength=run.logits.shape[1]).tolist() for site in sites]


def _row(
    role: str, site: str, run: Outputs, samples: npt.NDArray[np.int64], known: Sequence[Sequence[int]]
) -> dict[str, Any]:
    there = run.at[site]
    reference = make_reference(run.logits.shape[1], run.labels, run.features, run.sites)
    found = read_signals(reference, there.logits[samples], there.features[samples], run.temperature)
    atc, doc = _confidence_estimates(run, there.logits[samples])
    predicted = there.logits[samples].argmax(1)
    correct = predicted == there.labels[samples]
    values = {
        "accuracy": float(correct.mean()), "agreement": found.agreement, "dispersity": found.dispersity,
        "confidence": found.confidence, "atc": atc, "doc": doc, "distance": found.nearest,
        "dominance": class_excess(known, predicted).excess,
    }  # fmt: skip
    rounded = {name: round(value, 5) for name, value in values.items()}
    return {"role": role, "site": site, "trained_on": len(found.distances), "n": found.n, **rounded}


def _confidence_estimates(run: Outputs, logits: npt.NDArray[Any]) -> tuple[float, float]:
    """The accuracy by average thresholded confidence (ATC; Garg et al. 2022) and by difference of confidences (DoC)."""
    known, here = (probabilities(rows, temperature=run.temperature) for rows in (run.logits, logits))
    correct = known.argmax(axis=1) == run.labels
    ordered, wrong = np.sort(negative_entropy(known)), int((~correct).sum())
    # As many known samples score at or below the threshold as are misclassified.
    threshold = (
        -np.inf if wrong == 0 else ordered[-1] if wrong == len(ordered) else ordered[wrong - 1 : wrong + 1].mean()
    )
    drop = known.max(axis=1).mean() - here.max(axis=1).mean()
    return float((negative_entropy(here) > threshold).mean()), float(np.clip(correct.mean() - drop, 0, 1))


@dataclass(frozen=True)
class Sources:
    """Where data come from, and where the outputs of models are kept."""

    pacs: Path
    weights: Path
    keep: Path | None

    def sites(self, kind: str, seed: int) -> site_data.Sites:
        """One dataset."""
        if kind == "pacs":
            return site_data.pacs(self.pacs, seed)
        far = seed >= FAR_SEED
        return site_data.digits(self.weights, seed, far) if kind == "digits" else site_data.vectors(seed, far)


def run_dataset(task: tuple[str, int, Sources]) -> list[dict[str, Any]]:
    """All cases of one dataset and seed."""
    kind, seed, sources = task
    torch.set_num_threads(1)
    kept = sources.keep / f"{kind}-{seed}.pkl" if sources.keep else None
    if kept and kept.exists():
        names, runs = pickle.loads(kept.read_bytes())  # written by this script
    else:
        data = sources.sites(kind, seed)
        names = data.names
        with tempfile.TemporaryDirectory() as folder:
            wanted = subsets(choose_cases(names, seed))
            runs = {sites: train_subset(data, sites, seed, Path(folder), METHOD) for sites in wanted}
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with replacing(kept) as temporary:
                temporary.write_bytes(pickle.dumps((names, runs)))
    return [
        {"case": f"{kind}-{seed}-{number}", "data": kind, "seed": seed, **row}
        for number, case in enumerate(choose_cases(names, seed, _far_sites(names, runs)))
        for row in measure(case, runs, number)
    ]


def _far_sites(names: Sequence[str], runs: dict[tuple[str, ...], Outputs]) -> list[str]:
    """Sites with outputs that no model was trained on."""
    return [site for site in next(iter(runs.values())).at if site not in names]


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pacs", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=None)
    given = parser.parse_args()
    sources = Sources(given.pacs, given.weights, given.keep)
    tasks = [(kind, seed, sources) for kind, seeds in SEEDS.items() for seed in seeds]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        for part in pool.imap(run_dataset, tasks, 1):
            rows += part
            write_rows(given.out, rows)
            print(part[0]["data"], part[0]["seed"], flush=True)


if __name__ == "__main__":
    main()
