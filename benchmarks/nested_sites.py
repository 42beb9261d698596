"""Train on subsets of sites and keep the outputs at all sites, for nested leave-one-site-out measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.site_data import Floats, Sites
from longshift.fitting.plan import usual_batch, usual_steps
from longshift.inference import load_model
from longshift.settings import NATURAL_SHARE
from longshift.training import OpenDataset, Runtime, Trainer, make_task, read_predictions


@dataclass(frozen=True)
class Case:
    """A new site, and the sites that a fit is given."""

    new: str
    given: tuple[str, ...]


def all_cases(names: Sequence[str], fewest: int) -> list[Case]:
    """Each site as the new one, with all others and, down to `fewest`, with each smaller choice of them."""
    found = []
    for new in names:
        others = [name for name in names if name != new]
        for size in range(len(others), fewest - 1, -1):
            found += [Case(new, given) for given in combinations(others, size)]
    return found


def subsets(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """Everything that must be trained on: the given sites, and these without each of them."""
    found = {case.given for case in cases}
    for case in cases:
        found |= {tuple(s for s in case.given if s != held) for held in case.given}
    return sorted(found, key=lambda sites: (len(sites), sites))


@dataclass(frozen=True, eq=False)
class AtSite:
    """Outputs at one site."""

    logits: Floats
    features: Floats
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a model gives for its own validation samples and at every site."""

    logits: Floats
    features: Floats
    labels: npt.NDArray[np.int64]
    sites: tuple[str, ...]  # of the validation samples
    temperature: float
    at: Mapping[str, AtSite]

    def accuracy(self, site: str) -> float:
        """Share of correct predictions."""
        return float((self.at[site].logits.argmax(1) == self.at[site].labels).mean())


def train_subset(data: Sites, sites: tuple[str, ...], seed: int, out: Path, method: str) -> Outputs:
    """Train as `longshift fit` trains its final model and return the outputs at all sites."""
    name = "+".join(sites).replace(" ", "_")
    # A run needs a second domain: a single site is trained on with another one held out.
    other = () if len(sites) > 1 else next((site,) for site in data.names if site not in sites)
    dataset = OpenDataset(str(data.write(out / "data" / f"{name}.npz", (*sites, *other))))
    base = {
        "data": dataset.data, "setting": "Natural", "validation": NATURAL_SHARE, "target": "".join(other),
        "method": method, "schedules": "scaled", "split_seed": seed, "train_seed": seed,
    }  # fmt: skip
    n, k = sum(len(data.x[site]) for site in sites), len(sites)
    hparams = {"batch_size": usual_batch(n, k, dataset.resolve(base).config)}
    config = dataset.resolve({**base, "hparams": hparams}).config
    steps = usual_steps(n, k, config)
    config = dataset.resolve({**base, "hparams": hparams, "steps": steps, "eval_every": max(steps // 10, 1)}).config
    folder = out / "runs" / name
    runtime = Runtime(device="cpu", keep_model=True, save_predictions=True)
    Trainer(config, make_task(config), folder, runtime).run()
    model = load_model(folder, device="cpu")
    kept = read_predictions(folder / "predictions.npz")
    names = np.array(dataset.manifest.domain_names)[kept["validation_domains"]].tolist()
    classes = np.array(model.classes)
    found = {}
    for site in data.x:
        logits, features = model.outputs(torch.from_numpy(np.ascontiguousarray(data.x[site])))
        found[site] = AtSite(logits.numpy(), features.numpy(), np.searchsorted(classes, data.y[site]))
    return Outputs(
        kept["validation_logits"], kept["validation_features"], kept["validation_labels"], tuple(names),
        model.temperature, found,
    )  # fmt: skip
