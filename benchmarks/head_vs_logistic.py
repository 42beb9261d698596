"""Heads on frozen features against logistic regression, and `adapt` against it; see results/head-vs-logistic.

    python -m benchmarks.head_vs_logistic heads pacs-features WBC.npz HAM10000.npz
    python -m benchmarks.head_vs_logistic labels WBC.npz HAM10000.npz PACS.npz

Files hold vectors as `longshift fit` takes them (x, label, domain).
"""

from __future__ import annotations

import csv
import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from longshift import fit
from longshift.data import load_dataset, ordered_vectors
from longshift.fitting import choose_samples
from longshift.fitting.adaptation import adapt
from longshift.fitting.baselines import STRENGTHS, baseline_scores
from longshift.fitting.facts import site_score
from longshift.fitting.plan import usual_steps
from longshift.inference import load_model, predict
from longshift.methods import LinearHead, cell_weights, fit_logistic
from longshift.training import OpenDataset, Runtime, Trainer, make_task

SEEDS = (0, 1, 2)
LABELS = 50
CPU = Runtime(device="cpu", threads=1)
OUT = Path("results/head-vs-logistic")
Row = tuple[object, ...]


def heads(data: str) -> Iterator[Row]:
    """Accuracy at each site, held out, with the split of each seed."""
    dataset, name = OpenDataset(data), Path(data).stem
    sites, task = dataset.manifest.domain_names, None
    settings = ("Natural", "TotalHeavyTail", "Duality") if data == "pacs-features" else ("Natural",)
    for setting, seed, site in itertools.product(settings, SEEDS, sites):
        values = {"data": data, "setting": setting, "target": site, "split_seed": seed, "shrink": True}
        for method in ("logistic", "ndcl_plus"):
            values |= {"method": method, "schedules": "scaled"}
            steps = usual_steps(len(dataset.manifest), len(sites), dataset.resolve(values, name).config)
            run = dataset.resolve({**values, "steps": steps}, name)
            task = make_task(run, CPU, known=task)
            with tempfile.TemporaryDirectory() as folder:
                result = Trainer(run.config, task, folder, CPU).run()
            score = site_score(site, result["selected"])
            yield name, setting, site, seed, method, score.accuracy, score.balanced
        assert task
        for model, (score,) in baseline_scores({site: task}).items():
            yield name, setting, site, seed, model, score.accuracy, score.balanced


def labels(data: str) -> Iterator[Row]:
    """Accuracy on a half of each site of a model of the others, with 50 labels of the other half."""
    manifest, name = load_dataset(data), Path(data).stem
    x, y = ordered_vectors(manifest)[0], manifest.labels
    classes, sites = np.array(manifest.classes), np.array(manifest.domain_names)
    for place, site in enumerate(sites.tolist()):
        own, others = (np.flatnonzero(manifest.domains == place), np.flatnonzero(manifest.domains != place))
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder)
            known = sorted({str(classes[k]) for k in y[others]})
            fit(
                x[others], classes[y[others]], sites[manifest.domains[others]], out=base / "fit", runtime=CPU,
                target=str(sites[manifest.domains[others[0]]]),
            )  # fmt: skip
            for seed in SEEDS:
                order = np.random.default_rng(seed).permutation([i for i in own if classes[y[i]] in known])
                pool, rest = np.split(order, [len(order) // 2])
                chosen, truth = pool[:LABELS], classes[y[rest]]
                outputs = predict(base / "fit", x[pool], device="cpu", adapt="off", keep_outputs=True).outputs
                assert outputs is not None
                assert outputs.features is not None
                certain = outputs.probabilities(load_model(base / "fit", device="cpu").temperature).numpy()
                suggested = pool[choose_samples(certain, outputs.features.numpy(), LABELS)]
                made = {"fit": base / "fit"}
                for model, rows in (("adapt", chosen), ("adapt, suggested", suggested)):
                    made[model] = base / f"{model}-{seed}"
                    write_labels(base / f"{seed}-{len(made)}", x[rows], classes[y[rows]])
                    adapt(base / "fit", base / f"{seed}-{len(made)}.csv", made[model], device="cpu")
                for model, folder_of in made.items():
                    found = predict(folder_of, x[rest], device="cpu", adapt="off").rows
                    yield name, site, seed, model, *shares(np.array([row.label for row in found]), truth)
                for model, balanced in (("LogisticRegression", True), ("LogisticRegression, unweighted", False)):
                    head = plain_way(x, y, np.concatenate([others, chosen]), len(classes), balanced, seed)
                    predicted = classes[head.logits(torch.from_numpy(x[rest])).argmax(1).numpy()]
                    yield name, site, seed, model, *shares(predicted, truth)


def write_labels(place: Path, vectors: np.ndarray, named: np.ndarray) -> None:
    """Write PLACE.npz and PLACE.csv, as `adapt` reads them."""
    np.savez(place.with_suffix(".npz"), x=vectors, id=np.arange(len(vectors)).astype(str))
    with place.with_suffix(".csv").open("w", newline="") as file:
        pairs = [(f"{place.name}.npz#{i}", label) for i, label in enumerate(named)]
        csv.writer(file).writerows([("path", "label"), *pairs])


def plain_way(x: np.ndarray, y: np.ndarray, rows: np.ndarray, classes: int, balanced: bool, seed: int) -> LinearHead:
    """Logistic regression on all of them, with C chosen on a fifth."""
    order = np.random.default_rng(seed).permutation(rows)
    seen, train_rows = order[: len(order) // 5], order[len(order) // 5 :]
    xs, ys = torch.from_numpy(x[train_rows]), torch.from_numpy(y[train_rows])
    even = torch.full((len(ys),), 1 / len(ys))
    found = fit_logistic(xs, ys, cell_weights(ys, torch.zeros_like(ys)) if balanced else even, classes, STRENGTHS)
    scores = [shares(head.logits(torch.from_numpy(x[seen])).argmax(1).numpy(), y[seen])[balanced] for head in found]
    return found[int(np.argmax(scores))]


def shares(predicted: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Accuracy, and accuracy averaged over classes."""
    right = predicted == truth
    return float(right.mean()), float(np.mean([right[truth == k].mean() for k in np.unique(truth)]))


def main() -> None:
    """Write one file per kind; rows appear as they are made."""
    kind, *data = sys.argv[1:]
    head = ["data", *(["setting"] if kind == "heads" else []), "site", "seed", "model", "accuracy", "over_classes"]
    OUT.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    with (OUT / f"{kind}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for name in data:
            for row in heads(name) if kind == "heads" else labels(name):
                writer.writerow([f"{v:.4f}" if isinstance(v, float) else v for v in row])
                file.flush()


if __name__ == "__main__":
    main()
