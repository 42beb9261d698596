"""Train any of longshift's methods in a plain PyTorch loop, with your own network and data.

    python examples/method_in_plain_loop.py
    python examples/method_in_plain_loop.py --methods erm,dann,boda,ndcl_plus

The data are synthetic: two hospitals provide training samples of three classes, the third of which is rare. A third
hospital is only used for testing.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn

import longshift
from longshift.methods import Batch, Method

CLASSES, FEATURES, PER_DOMAIN = 3, 16, 64
COUNTS = torch.tensor([[400, 100, 8], [100, 400, 8]])  # training samples: hospitals x classes
Samples = tuple[Tensor, Tensor, Tensor]  # inputs, classes, hospitals


def make_samples(counts: Tensor, hospital: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw samples: each class has its own direction, and each hospital shifts all of its samples."""
    generator = torch.Generator().manual_seed(seed)
    centers = 2.0 * torch.eye(FEATURES)[:CLASSES]
    shift = torch.randn(FEATURES, generator=torch.Generator().manual_seed(100 + hospital))
    y = torch.arange(CLASSES).repeat_interleave(counts)
    return centers[y] + shift + torch.randn(len(y), FEATURES, generator=generator), y


def training_samples() -> Samples:
    """All training samples of both hospitals."""
    parts = [make_samples(counts, hospital, seed=hospital) for hospital, counts in enumerate(COUNTS)]
    d = torch.arange(len(parts)).repeat_interleave(torch.tensor([len(y) for _, y in parts]))
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]), d


def draw_batch(samples: Samples, generator: torch.Generator) -> Batch:
    """Draw the same number of samples from each hospital."""
    x, y, d = samples
    picks = []
    for hospital in range(len(COUNTS)):
        own = (d == hospital).nonzero()[:, 0]
        picks.append(own[torch.randint(len(own), (PER_DOMAIN,), generator=generator)])
    pick = torch.cat(picks)
    return Batch.from_samples(x[pick], y[pick], d[pick], domains=len(COUNTS))


def train(name: str, steps: int) -> Method:
    """The loop: any network, any method."""
    torch.manual_seed(0)
    featurizer = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU())
    method = longshift.create_method(name, featurizer, COUNTS, feature_dim=64, steps=steps, small=True)
    samples, generator = training_samples(), torch.Generator().manual_seed(0)
    for index in range(steps):
        method.before_step(index)
        if method.wants_features(index):  # BoDA asks for the features of all samples now and then
            with torch.no_grad():
                features = method.eval().network.features(samples[0])
            method.train().receive_features(features, *samples[1:])
        method.step(draw_batch(samples, generator))
    return method.eval()


def main() -> None:
    """Train each method and print the recall of each class at the hospital that is not in the training data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="erm,bsoftmax,ndcl_plus", help="method names, separated by commas")
    parser.add_argument("--steps", type=int, default=300, help="training steps per method")
    given = parser.parse_args()
    x, y = make_samples(torch.tensor([200, 200, 200]), hospital=7, seed=9)
    print("class counts in training:", COUNTS.sum(0).tolist())
    for name in given.methods.split(","):
        method = train(name, given.steps)
        with torch.no_grad():
            correct = method.predict(x).argmax(1) == y
        recalls = [float(correct[y == k].float().mean()) for k in range(CLASSES)]
        shown = "  ".join(f"class {k}: {value:.2f}" for k, value in enumerate(recalls))
        print(f"{name:>10}  {shown}  mean: {sum(recalls) / CLASSES:.2f}")


if __name__ == "__main__":
    main()
