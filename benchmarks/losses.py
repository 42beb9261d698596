"""Time of the NDCL loss (mining, mixing, all terms, backward; no backbone) against a loop over classes.

    python benchmarks/losses.py [--batch 96] [--classes 7 65 345] [--repeats 50] [--threads 1] [--device cpu]

Both versions compute the same number from the same logits, which is checked before anything is timed. They are
timed in turns, and medians are compared, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from longshift.losses import NDCLLoss
from longshift.losses.mining import mined_counts

ALPHA, BETA, DOMAINS, INPUT = 0.1, 0.1, 3, 64


@dataclass(frozen=True)
class Inputs:
    """A batch as the loss sees it: inputs to mix, logits of both forward passes, labels, domains, counts."""

    x: Tensor
    logits: Tensor
    mined_logits: Tensor
    y: Tensor
    d: Tensor
    lam: Tensor
    counts: Tensor


def make_inputs(batch: int, classes: int, device: str, dtype: torch.dtype = torch.float32) -> Inputs:
    """Random logits; long-tailed training counts, labels spread over all classes as in the worst case."""
    g = torch.Generator().manual_seed(classes)
    logits = torch.randn(batch, classes, generator=g, dtype=torch.float64)
    mined = torch.randn(batch, classes, generator=g, dtype=torch.float64)
    counts = (500 * 0.95 ** torch.arange(classes)).ceil().expand(DOMAINS, classes).clone()
    y = torch.randint(classes, (batch,), generator=g)
    return Inputs(
        x=torch.rand(batch, INPUT, generator=g, dtype=torch.float64).to(device, dtype),
        logits=logits.to(device, dtype).requires_grad_(),
        mined_logits=mined.to(device, dtype).requires_grad_(),
        y=y.to(device),
        d=torch.arange(DOMAINS).repeat_interleave(batch // DOMAINS).to(device),
        lam=torch.rand(batch, generator=g, dtype=torch.float64).to(device, dtype),
        counts=counts.to(device, dtype),
    )


def vectorized(inputs: Inputs) -> Callable[[], Tensor]:
    """The library's loss."""
    ndcl = NDCLLoss(inputs.counts, alpha=ALPHA, beta=BETA)

    def step() -> Tensor:
        x_hat, cls = ndcl.mined_inputs(inputs.x, inputs.logits, inputs.y, inputs.lam)
        assert x_hat.shape == inputs.x.shape
        total = ndcl.objective(inputs.logits, inputs.y, inputs.d, inputs.mined_logits, cls).total
        total.backward()
        return total.detach()

    return step


def loop_mining(inputs: Inputs, p: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. neg_aug, one class after the other."""
    total, n = inputs.counts.sum(0), len(inputs.y)
    in_batch = torch.stack([(inputs.y == k).sum() for k in range(p.shape[1])])
    shares = mined_counts(in_batch, n, "inverse", total).tolist()
    mixed, classes, used = [], [], 0
    for k in inputs.y.unique().tolist():
        own, rest = (inputs.y == k).nonzero()[:, 0], (inputs.y != k).nonzero()[:, 0]
        low = own[p[own, k].argsort()][: -(-len(own) // 4)]
        high = rest[p[rest, k].argsort(descending=True)][: -(-shares[k] // len(low))]
        i = torch.arange(shares[k], device=p.device)
        a, b = low[i % len(low)], high[(i // len(low)) % len(high)]
        lam = inputs.lam[used : used + shares[k], None]
        mixed.append(lam * inputs.x[a] + (1 - lam) * inputs.x[b])
        classes.append(torch.full_like(i, k))
        used += shares[k]
    return torch.cat(mixed), torch.cat(classes)


def loop_objective(inputs: Inputs, mined_class: Tensor) -> Tensor:
    """Eqs. ce, con and align, one class (and one domain) after the other."""
    y, d = inputs.y, inputs.d
    p, q = inputs.logits.softmax(1), inputs.mined_logits.softmax(1)
    losses = cross_entropy(inputs.logits, y, reduction="none")
    present = y.unique().tolist()
    ce, con, anchors = torch.zeros_like(losses[0]), torch.zeros_like(losses[0]), 0
    means, labels = [], []
    for k in present:
        own, mined = p[y == k], q[mined_class == k]
        of_class = losses[y == k]
        ce = ce + (of_class.detach().softmax(0) * of_class).sum()
        to_mined = (1 - cosine_similarity(own[:, None], mined[None], dim=2)).sum(1)
        to_own = 1 - cosine_similarity(own[:, None], own[None], dim=2)
        to_own = to_own - torch.diag(to_own.diagonal())
        con = con - (to_mined / (to_mined + to_own.sum(1)) / len(mined)).log().sum()
        anchors += len(own)
        for domain in range(DOMAINS):
            here = p[(y == k) & (d == domain)]
            if len(here):
                means.append(here.mean(0))
                labels.append(k)
    const, pairs = torch.zeros_like(ce), 0
    table, label = torch.stack(means), torch.tensor(labels, device=p.device)
    for i, k in enumerate(labels):
        away = torch.arange(len(labels), device=p.device) != i
        positive = (label == k) & away
        if positive.any():
            s = cosine_similarity(table[i][None], table, dim=1)
            const = const - (s[positive] - s[away].exp().sum().log()).mean()
            pairs += 1
    return ce / len(present) + ALPHA * con / anchors + BETA * const / max(pairs, 1)


def looped(inputs: Inputs) -> Callable[[], Tensor]:
    """The same loss as a plain loop over classes."""

    def step() -> Tensor:
        x_hat, cls = loop_mining(inputs, inputs.logits.detach().softmax(1))
        assert x_hat.shape == inputs.x.shape
        total = loop_objective(inputs, cls)
        total.backward()
        return total.detach()

    return step


def check_agreement(batch: int, classes: int, device: str = "cpu") -> float:
    """Largest difference of the two versions in float64, over the value and both gradients."""
    results = []
    for version in (vectorized, looped):
        inputs = make_inputs(batch, classes, device, torch.float64)
        value = version(inputs)()
        assert inputs.logits.grad is not None
        assert inputs.mined_logits.grad is not None
        results.append(torch.cat([value[None], inputs.logits.grad.flatten(), inputs.mined_logits.grad.flatten()]))
    return float((results[0] - results[1]).abs().max())


def timed(step: Callable[[], Tensor], inputs: Inputs) -> float:
    """Seconds of one step, with fresh gradients."""
    inputs.logits.grad = inputs.mined_logits.grad = None
    if inputs.x.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    if inputs.x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(batch: int, class_numbers: list[int], repeats: int, device: str) -> list[dict[str, float]]:
    """Median milliseconds of both versions for each number of classes, all taken in turns."""
    sets = [(k, make_inputs(batch, k, device)) for k in class_numbers]
    times: dict[tuple[int, str], list[float]] = {(k, v): [] for k, _ in sets for v in ("loss", "loop")}
    every = max(1, repeats // 10)  # the loop is slow: ten of its steps are enough, spread over the run
    for k, inputs in sets:
        difference = check_agreement(batch, k, device)
        if difference > 1e-9:
            raise SystemExit(f"the two versions differ by {difference:.1e} at {k} classes")
        for _ in range(3):
            timed(vectorized(inputs), inputs)
        timed(looped(inputs), inputs)
    for repeat in range(repeats):
        for k, inputs in sets:
            times[k, "loss"].append(timed(vectorized(inputs), inputs))
            if repeat % every == 0:
                times[k, "loop"].append(timed(looped(inputs), inputs))
    rows = []
    for k, _ in sets:
        fast, slow = (1e3 * statistics.median(times[k, v]) for v in ("loss", "loop"))
        rows.append({"classes": k, "loss_ms": fast, "loop_ms": slow, "speedup": slow / fast})
    return [row | {"growth": row["loss_ms"] / rows[0]["loss_ms"]} for row in rows]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--classes", type=int, nargs="+", default=[7, 65, 345])
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = measure(args.batch, args.classes, args.repeats, args.device)
    print(f"batch {args.batch}, {args.device}, {args.threads} thread(s), torch {torch.__version__}, medians")
    print(f"{'classes':>8} {'loss ms':>9} {'loop ms':>9} {'speedup':>8} {'growth':>7}")
    for row in rows:
        print("{classes:8.0f} {loss_ms:9.2f} {loop_ms:9.2f} {speedup:7.1f}x {growth:6.2f}x".format(**row))


if __name__ == "__main__":
    main()
