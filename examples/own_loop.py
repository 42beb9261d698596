"""NDCL in a training loop of your own: one loss module, nothing else from longshift.

    python examples/own_loop.py

Two "hospitals" photograph three classes; the third class is rare, and a third hospital is never seen in training.
The loop is plain PyTorch. All that changes for NDCL is the line that computes the loss.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses import NDCLLoss

CLASSES, FEATURES, PER_DOMAIN, STEPS = 3, 16, 64, 150
COUNTS = torch.tensor([[400, 100, 8], [100, 400, 8]])  # training samples: hospitals x classes


def make_samples(counts: Tensor, hospital: int, seed: int) -> tuple[Tensor, Tensor]:
    """Classes differ in three directions; each hospital shifts all samples its own way."""
    generator = torch.Generator().manual_seed(seed)
    centres = 2.0 * torch.eye(FEATURES)[:CLASSES]
    shift = torch.randn(FEATURES, generator=torch.Generator().manual_seed(100 + hospital))
    y = torch.arange(CLASSES).repeat_interleave(counts)
    return centres[y] + shift + torch.randn(len(y), FEATURES, generator=generator), y


def train(use_ndcl: bool) -> nn.Module:
    """A plain loop: a batch has the same number of samples from each hospital, one hospital after the other."""
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
    """Share of each class that is recognised at the hospital that was never seen."""
    x, y = make_samples(torch.tensor([200, 200, 200]), hospital=7, seed=9)
    with torch.no_grad():
        right = model(x).argmax(1) == y
    return [float(right[y == k].float().mean()) for k in range(CLASSES)]


def main() -> None:
    """Train both and print the recall of each class."""
    print("class counts in training:", COUNTS.sum(0).tolist())
    for name, use_ndcl in (("cross-entropy", False), ("NDCL", True)):
        found = recalls(train(use_ndcl))
        shown = "  ".join(f"class {k}: {value:.2f}" for k, value in enumerate(found))
        print(f"{name:>14}  {shown}  mean: {sum(found) / len(found):.2f}")


if __name__ == "__main__":
    main()
