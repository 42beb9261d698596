"""Ways to fine-tune a whole network, compared on three data sets; see results/finetune-candidates.

    python -m benchmarks.finetune_candidates DATA_FOLDER WBC

DATA_FOLDER holds WBC.zip and resnet50_v1_in1k.safetensors. A row is written to wbc.csv as soon as it is measured, and
runs that are in the file are skipped.
"""

from __future__ import annotations

import csv
import itertools
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.array_types import IntArray
from longshift.methods import Method, cell_weights, fit_logistic
from longshift.methods.logistic import USUAL, LinearHead, thin_cells
from longshift.training import OpenDataset, Runtime, Task, Trainer, make_task
from longshift.training.average import Averager, BestWeights
from longshift.training.checkpoint import copy_weights

SETTINGS = {"PACS": "TotalHeavyTail", "HAM10000": "Natural", "WBC": "Natural"}
SEEDS = (0,)
STARTS = ("plain", "LP-FT", "anchor")  # one training run each; the averages and cRT are read off each
STEPS, SEGMENT, SIZE = 600, 30, 160
ANCHOR = 0.1  # alpha and beta of L2-SP
CONVERGED, TOLERATED, RATIO = 3, 6, 1.3  # N_s, N_e and r of SWAD
HELD, REFITTED = 100, 60  # most samples of a cell, for choosing and comparing, and for a head
RUNTIME = Runtime(keep_model=False)
OUT = Path("results/finetune-candidates")
COLUMNS = (
    "data", "target", "seed", "start", "model", "step", "selection", "validation", "target_over_classes",
    "target_accuracy",
)  # fmt: skip
Weights = Mapping[str, Tensor]


class Samples(NamedTuple):
    """Some samples of a task, and how much each counts: each domain the same, and so each of its classes."""

    indices: IntArray
    y: Tensor
    weights: Tensor

    @classmethod
    def of(cls, task: Task, indices: IntArray, domains: IntArray) -> Samples:
        """Weigh them."""
        y = torch.as_tensor(task.labels(indices))
        return cls(indices, y, cell_weights(y, torch.as_tensor(domains)).double())

    def accuracy(self, logits: Tensor) -> float:
        """Mean over the classes of each domain."""
        return float((self.weights * (logits.argmax(1) == self.y)).sum())

    def loss(self, logits: Tensor) -> float:
        """Cross-entropy, as a mean over the classes of each domain."""
        return float((self.weights * cross_entropy(logits.double(), self.y, reduction="none")).sum())


class Parts(NamedTuple):
    """The samples that choose weights, that compare candidates, that heads are fitted to, and of the target."""

    selection: Samples
    validation: Samples
    training: Samples
    target: Samples


def make_parts(task: Task) -> Parts:
    """Held-out samples of the sources are shared 1:2 among choosing and comparing; none is in both."""
    split = task.split

    def thin(indices: IntArray, most: int) -> IntArray:
        d = torch.as_tensor(task.manifest.domains[indices])
        found: IntArray = indices[thin_cells(torch.as_tensor(task.labels(indices)), d, most).numpy()]
        return found

    held = thin(np.concatenate([split.validation, split.test]), HELD)
    first = np.arange(len(held)) % 3 == 0
    sources = [Samples.of(task, s, task.source_domains(s)) for s in (held[first], held[~first])]
    train, target = thin(split.train, REFITTED), split.target_indices
    return Parts(
        sources[0], sources[1], Samples.of(task, train, task.source_domains(train)),
        Samples.of(task, target, np.zeros_like(target)),
    )  # fmt: skip


def swad_interval(losses: Sequence[float]) -> tuple[int, int]:
    """The first and last segment that SWAD averages; the last one alone if the loss falls to the end."""
    n = len(losses)
    starts = [i for i in range(n - CONVERGED + 1) if losses[i] == min(losses[i : i + CONVERGED])]
    if not starts:
        return n - 1, n - 1
    first = starts[0]
    limit = RATIO * sum(losses[first : first + CONVERGED]) / CONVERGED
    ends = [j for j in range(first + 1, n - TOLERATED + 1) if min(losses[j : j + TOLERATED]) > limit]
    return first, (ends[0] - 1 if ends else n - 1)


def anchor(method: Method) -> None:
    """L2-SP: pull the network toward its starting weights and the new layer toward zero, in the loss."""
    new = {id(p) for p in method.network.classifier.parameters()}
    pairs = [(p, torch.zeros_like(p) if id(p) in new else p.detach().clone()) for p in method.network.parameters()]
    plain = method.minimize

    def minimize(total: Tensor, optimizer: str = "main") -> None:
        distance = torch.stack([(p - start).square().sum() for p, start in pairs if p.requires_grad]).sum()
        plain(total + ANCHOR / 2 * distance, optimizer)

    method.minimize = minimize  # type: ignore[method-assign]


def balanced_head(trainer: Trainer, part: Samples) -> LinearHead:
    """Logistic regression on the features of this moment, in which each class of each domain weighs the same."""
    features = trainer.evaluator.features(part.indices).cpu()
    (head,) = fit_logistic(features, part.y, part.weights, trainer.method.problem.classes, [USUAL])
    return head


def candidates(trainer: Trainer, parts: Parts, start: str) -> Iterator[tuple[str, int, float, Weights, bool]]:
    """Train; give names, steps, accuracies that chose them and weights, and whether the head is refitted."""
    method, classifier = trainer.method, trainer.method.network.classifier
    if start == "LP-FT":
        head = balanced_head(trainer, parts.training)
        with torch.no_grad():
            classifier.weight.copy_(head.weight)
            classifier.bias.copy_(head.bias)
    if start == "anchor":
        anchor(method)

    def logits(samples: Samples) -> Tensor:
        with torch.no_grad():
            found: Tensor = classifier(trainer.evaluator.features(samples.indices)).cpu()
        return found

    method.train()
    ema, swa = Averager(method, "ema"), Averager(method, "swa", STEPS // 2)
    best, losses, segments = BestWeights(), [], []
    for step in range(1, STEPS + 1):
        if step % SEGMENT == 1:
            segment = Averager(method, "swa")
        trainer.step(step - 1)
        for average in (ema, swa, segment):
            average.update(step - 1)
        if step % SEGMENT == 0:
            found = logits(parts.selection)
            losses.append(parts.selection.loss(found))
            segments.append(segment.average)
            best.offer(step, parts.selection.accuracy(found), {}, lambda: copy_weights(method))
            with ema.swapped():
                ema.offer(step, parts.selection.accuracy(logits(parts.selection)), {})
    yield "selected", best.step, best.accuracy, best.weights, False
    yield "cRT", best.step, best.accuracy, best.weights, True
    yield "EMA", ema.best.step, ema.best.accuracy, ema.best.weights, False
    yield "SWA", STEPS, float("nan"), swa.average, False
    first, last = swad_interval(losses)
    mean = {name: torch.stack([s[name] for s in segments[first : last + 1]]).mean(0) for name in swa.average}
    yield "SWAD", (first + 1) * SEGMENT, float("nan"), mean, False


def measure(trainer: Trainer, parts: Parts, start: str) -> Iterator[dict[str, Any]]:
    """The scores of each candidate of one training run."""
    for name, step, selection, weights, refit in candidates(trainer, parts, start):
        trainer.method.load_state_dict(dict(weights), strict=False)
        head = balanced_head(trainer, parts.training) if refit else None
        with torch.no_grad():
            found = [trainer.evaluator.features(part.indices) for part in (parts.validation, parts.target)]
            seen, unseen = (head.logits(x.cpu()) if head else trainer.method.network.classifier(x).cpu() for x in found)
        yield {
            "start": start, "model": name, "step": step, "selection": selection,
            "validation": parts.validation.accuracy(seen),
            "target_over_classes": parts.target.accuracy(unseen),
            "target_accuracy": float((unseen.argmax(1) == parts.target.y).double().mean()),
        }  # fmt: skip


def runs(folder: Path, name: str, done: set[tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """Each target in turn."""
    dataset, task = OpenDataset(str(folder / f"{name}.zip")), None
    for seed, site, start in itertools.product(SEEDS, dataset.manifest.domain_names, STARTS):
        if (name, site, str(seed), start) in done:
            continue
        values = {
            "data": dataset.data, "setting": SETTINGS[name], "target": site, "method": "ndcl_plus",
            "style": {"mix": "none"}, "schedules": "scaled",
            "weights": str(folder / "resnet50_v1_in1k.safetensors"), "backbone": "resnet50_v1",
            "image_size": SIZE, "steps": STEPS, "split_seed": seed, "train_seed": seed,
        }  # fmt: skip
        run = dataset.resolve(values, name)
        task = make_task(run, RUNTIME, known=task)
        with tempfile.TemporaryDirectory() as out:
            trainer = Trainer(run.config, task, out, RUNTIME)
            for row in measure(trainer, make_parts(task), start):
                yield {"data": name, "target": site, "seed": seed, **row}
            trainer.source.close()


def main() -> None:
    """Add the rows of runs that are not in the file; a run whose rows are not complete is measured again."""
    folder, name = Path(sys.argv[1]), sys.argv[2]
    path = OUT / f"{name.lower()}.csv"
    kept: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as file:
            kept = list(csv.DictReader(file))
    key = ("data", "target", "seed", "start")
    done = {tuple(row[k] for k in key) for row in kept if row["model"] == "SWAD"}  # its last row
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row in kept if tuple(row[k] for k in key) in done)
        for row in runs(folder, name, done):
            writer.writerow({k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()})
            file.flush()


if __name__ == "__main__":
    main()
