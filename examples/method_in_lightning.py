"""Train one of longshift's methods inside a Lightning module.

    pip install lightning
    python examples/method_in_lightning.py --method ndcl_plus

The data are synthetic: two hospitals provide training samples of three classes, the third of which is rare. A third
hospital is only used for testing. Methods have their own optimizers, some of them several, so the module uses
Lightning's manual optimization.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

import longshift
from longshift.methods import Batch

CLASSES, FEATURES, PER_DOMAIN = 3, 16, 64
COUNTS = torch.tensor([[400, 100, 8], [100, 400, 8]])  # training samples: hospitals x classes


class MethodModule(L.LightningModule):
    """A longshift method as a Lightning module."""

    def __init__(self, name: str, featurizer: nn.Module, feature_dim: int, steps: int) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.method = longshift.create_method(
            name, featurizer, COUNTS, feature_dim=feature_dim, steps=steps, small=True
        )
        self.steps_done = 0

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """Create the optimizers again, now that Lightning has moved the parameters to the device."""
        self.method.start()
        return list(self.method.optimizers.values())

    def on_train_start(self) -> None:
        """Give the method Lightning's wrappers of its optimizers, which count the steps."""
        wrapped: Any = self.optimizers()
        named = zip(self.method.optimizers, wrapped if isinstance(wrapped, list) else [wrapped], strict=True)
        self.method.optimizers = dict(named)

    def training_step(self, parts: list[list[Tensor]], index: int) -> None:
        """Take one step on samples of all hospitals."""
        x, y = (torch.cat(values) for values in zip(*parts, strict=True))
        d = torch.arange(len(parts), device=y.device).repeat_interleave(len(parts[0][1]))
        self.method.before_step(self.steps_done)
        self.log_dict(self.method.step(Batch(x, y, d, len(parts))))
        self.steps_done += 1

    def test_step(self, batch: list[Tensor], index: int) -> None:
        """Log the recall of each class."""
        x, y = batch
        correct = (self.method.predict(x).argmax(1) == y).float()
        self.log_dict({f"recall of class {k}": correct[y == k].mean() for k in range(CLASSES)})


def make_samples(counts: Tensor, hospital: int, seed: int) -> TensorDataset:
    """Draw samples: each class has its own direction, and each hospital shifts all of its samples."""
    generator = torch.Generator().manual_seed(seed)
    centers = 2.0 * torch.eye(FEATURES)[:CLASSES]
    shift = torch.randn(FEATURES, generator=torch.Generator().manual_seed(100 + hospital))
    y = torch.arange(CLASSES).repeat_interleave(counts)
    return TensorDataset(centers[y] + shift + torch.randn(len(y), FEATURES, generator=generator), y)


def training_loaders(steps: int) -> list[DataLoader[Any]]:
    """One loader per hospital, so that each step has the same number of samples from each."""
    loaders = []
    for hospital, counts in enumerate(COUNTS):
        data = make_samples(counts, hospital, seed=hospital)
        sampler = WeightedRandomSampler(torch.ones(len(data)).tolist(), steps * PER_DOMAIN)
        loaders.append(DataLoader(data, PER_DOMAIN, sampler=sampler))
    return loaders


def main() -> None:
    """Train, and print the recall of each class at the hospital that is not in the training data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="ndcl_plus", help="name of a method")
    parser.add_argument("--steps", type=int, default=300, help="training steps")
    given = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    L.seed_everything(0, verbose=False)
    module = MethodModule(given.method, nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU()), 64, given.steps)
    trainer = L.Trainer(
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.fit(module, training_loaders(given.steps))
    unseen = make_samples(torch.tensor([200, 200, 200]), hospital=7, seed=9)
    (found,) = trainer.test(module, DataLoader(unseen, len(unseen)), verbose=False)
    print(f"{given.method} after {trainer.global_step} steps of its optimizers")
    for name, value in found.items():
        print(f"{name}: {value:.2f}")


if __name__ == "__main__":
    main()
