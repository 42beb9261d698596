"""Use NDCL in your own training loop: one loss module, nothing else from longshift.

    python examples/own_loop.py

The data are synthetic: two hospitals provide training samples of three classes, the third of which is rare. A third
hospital is only used for testing. The loop is plain PyTorch; only the line that computes the loss changes for NDCL.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses import NDCLLoss

CLASSES, FEATURES, PER_DOMAIN, STEPS = 3, 16, 64, 150
COUNTS = torch.tensor([[400, 100, 8], [100, 400, 8]])  # training samples: hospitals x classes


def make_samples(counts: Tensor, hospital: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw samples: each class has its own direction, and each hospital shifts all of its samples."""
    generator = torch.Generator().manual_seed(seed)
    centers = 2.0 * torch.eye(FEATURES)[:CLASSES]
    shift = torch.randn(FEATURES, generator=torch.Generator().manual_seed(100 + hospital))
    y = torch.arange(CLASSES).repeat_interleave(counts)
    return centers[y] + shift + torch.randn(len(y), FEATURES, generator=generator), y


def train(use_ndcl: bool) -> nn.Module:
    """Train with a plain loop; each batch has the same number of samples from each hospital, sorted by hospital."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    hospitals = [make_samples(counts, i, seed=i) for i, counts in enumerate(COUNTS)]
    ndcl = NDCLLoss(class_counts=COUNTS, alpha=0.1, beta=0.1)
    d = torch.arange(len(hospitals)).repeat_interleave(PER_DOMAIN)
    for _ in range(STEPS):
        picks = [torch.randint(len(y), (PER_DOMAIN,)) for _, y in hospitals]
        x = torch.cat([samples[pick] for (samples, _), pick in zip(hospitals, picks, strict=True)])
        y = torch.cat([labels[pick] for (_, labels), pick in zip(hospitals, picks, strict=True)])
        loss = ndcl(model, x, y, d) if use_ndcl else cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def recalls(model: nn.Module) -> list[float]:
    """Compute the recall of each class at the hospital that is not in the training data."""
    x, y = make_samples(torch.tensor([200, 200, 200]), hospital=7, seed=9)
    with torch.no_grad():
        correct = model(x).argmax(1) == y
    return [float(correct[y == k].float().mean()) for k in range(CLASSES)]


def main() -> None:
    """Train with cross-entropy and with NDCL, and print the recall of each class."""
    print("class counts in training:", COUNTS.sum(0).tolist())
    for name, use_ndcl in (("cross-entropy", False), ("NDCL", True)):
        found = recalls(train(use_ndcl))
        shown = "  ".join(f"class {k}: {value:.2f}" for k, value in enumerate(found))
        print(f"{name:>14}  {shown}  mean: {sum(found) / len(found):.2f}")


if __name__ == "__main__":
    main()
