"""Fish and PGrad report, as published, the loss of the last inner step; beside it stands the mean of all."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from longshift.rng import HostDraws
from tests.methods.tiny import Tiny


def test_fish_reports_the_last_and_the_mean_loss() -> None:
    tiny = Tiny()
    method = tiny.make("fish")
    method.start(HostDraws(0))
    reference = tiny.network()
    optimizer = torch.optim.Adam(reference.parameters(), lr=method.config.lr)
    (terms,) = tiny.train(method, 0, 1)
    batch = tiny.batch(0)
    losses = []
    for domain in range(3):
        rows = batch.d == domain
        loss = cross_entropy(reference(batch.x[rows]), batch.y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.testing.assert_close(terms["loss"], torch.tensor(losses[-1]))
    torch.testing.assert_close(terms["mean_loss"], torch.tensor(losses).mean())


def test_pgrad_with_a_still_walk_reports_the_mean_over_all_samples() -> None:
    tiny = Tiny(per_domain=6)
    method = tiny.make("pgrad", values={"lr": 0.0})
    method.start(HostDraws(0))
    (terms,) = tiny.train(method, 0, 1)
    batch = tiny.batch(0)
    torch.testing.assert_close(terms["mean_loss"], cross_entropy(tiny.network()(batch.x), batch.y))
