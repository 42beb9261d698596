"""Train with your own PyTorch loop: with a loss of longshift, or with any of its methods.

    python examples/own_loop.py                                        # two losses and two methods
    python examples/own_loop.py --methods erm,dann,boda,ndcl_plus      # any methods: see `longshift methods`

The data are synthetic: two hospitals provide training samples of three classes, the third of which is rare. A third
hospital is only used for testing. `train_with_loss` is a plain loop in which only the line of the loss changes.
`train_method` is for methods with optimizers or phases of their own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import longshift
from longshift.losses import NDCLLoss
from longshift.methods import Batch

CLASSES, FEATURES, PER_DOMAIN = 3, 16, 64
COUNTS = torch.tensor([[400, 100, 8], [100, 400, 8]])  # training samples: hospitals x classes
Loss = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]  # of the model, inputs, classes, hospitals


def make_samples(counts: Tensor, hospital: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw samples: each class has its own direction, and each hospital shifts all of its samples."""
    generator = torch.Generator().manual_seed(seed)
    centers = 2.0 * torch.eye(FEATURES)[:CLASSES]
    shift = torch.randn(FEATURES, generator=torch.Generator().manual_seed(100 + hospital))
    y = torch.arange(CLASSES).repeat_interleave(counts)
    return centers[y] + shift + torch.randn(len(y), FEATURES, generator=generator), y


def training_samples() -> tuple[Tensor, Tensor, Tensor]:
    """All training samples: inputs, classes, hospitals."""
    parts = [make_samples(counts, hospital, seed=hospital) for hospital, counts in enumerate(COUNTS)]
    d = torch.arange(len(parts)).repeat_interleave(torch.tensor([len(y) for _, y in parts]))
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]), d


def draw(d: Tensor, generator: torch.Generator) -> Tensor:
    """The rows of a batch: the same number of samples from each hospital, sorted by hospital."""
    rows = [(d == hospital).nonzero()[:, 0] for hospital in range(len(COUNTS))]
    return torch.cat([own[torch.randint(len(own), (PER_DOMAIN,), generator=generator)] for own in rows])


def train_with_loss(loss_of: Loss, steps: int) -> nn.Module:
    """A plain loop."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    (x, y, d), generator = training_samples(), torch.Generator().manual_seed(0)
    for _ in range(steps):
        rows = draw(d, generator)
        loss = loss_of(model, x[rows], y[rows], d[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def train_method(name: str, steps: int) -> nn.Module:
    """A method of longshift on your own network."""
    torch.manual_seed(0)
    featurizer = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU())
    method = longshift.create_method(name, featurizer, COUNTS, feature_dim=64, steps=steps, small=True)
    (x, y, d), generator = training_samples(), torch.Generator().manual_seed(0)
    for index in range(steps):
        method.before_step(index)
        if method.wants_features(index):  # BoDA asks for the features of all samples now and then
            with torch.no_grad():
                features = method.eval().network.features(x)
            method.train().receive_features(features, y, d)
        rows = draw(d, generator)
        method.step(Batch.from_samples(x[rows], y[rows], d[rows], domains=len(COUNTS)))
    return method.eval().predictor()


def recalls(model: nn.Module) -> list[float]:
    """Compute the recall of each class at the hospital that is not in the training data."""
    x, y = make_samples(torch.tensor([200, 200, 200]), hospital=7, seed=9)
    with torch.no_grad():
        correct = model(x).argmax(1) == y
    return [float(correct[y == k].float().mean()) for k in range(CLASSES)]


def main() -> None:
    """Train with each loss and each method, and print the recall of each class at the new hospital."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="bsoftmax,ndcl_plus", help="method names, separated by commas")
    parser.add_argument("--steps", type=int, default=300, help="training steps")
    given = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small: threads cost more than they gain, above all on a busy machine
    losses: dict[str, Loss] = {
        "cross-entropy": lambda model, x, y, d: cross_entropy(model(x), y),
        "NDCLLoss": NDCLLoss(class_counts=COUNTS, alpha=0.1, beta=0.1),
    }
    print("class counts in training:", COUNTS.sum(0).tolist())
    print(f"recall of each class at a new hospital, after {given.steps} steps:", flush=True)
    for name in (*losses, *given.methods.split(",")):
        model = train_with_loss(losses[name], given.steps) if name in losses else train_method(name, given.steps)
        found = recalls(model)
        shown = "  ".join(f"class {k}: {value:.2f}" for k, value in enumerate(found))
        print(f"{name:>14}  {shown}  mean: {sum(found) / len(found):.2f}", flush=True)


if __name__ == "__main__":
    main()
