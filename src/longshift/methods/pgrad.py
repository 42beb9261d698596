"""PGrad: move along the principal directions of a walk through the domains, which damps noise."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Method
from longshift.methods.config import MethodConfig, fixed, hp, power, with_default
from longshift.methods.registry import register
from longshift.nn import (
    assign_tensors,
    copy_tensors,
    flatten_tensors,
    optim,
    set_gradients,
    symmetric_eigen,
    trainable,
    unflatten_tensors,
)

SPLITS = 3
DIRECTIONS = 4
OUTER_LR = 0.1


class PGradConfig(MethodConfig):
    """Narrower ranges for the common hyper-parameters; PGrad has none of its own."""

    lr: float = hp(
        5e-5,
        fixed(),
        "learning rate of the inner Adam",
        at_least=0.0,
        variants={"small": (1e-3, power(10, -4.5, -2.5))},
    )
    weight_decay: float = hp(
        0.0,
        power(10, -6, -4),
        "L2 penalty of the outer step (the inner Adam has none)",
        at_least=0.0,
        variants={"small": (0.0, fixed())},
    )
    batch_size: int = with_default(
        MethodConfig, "batch_size", 32, variants={"small": (64, power(2, 3, 7, integer=True))}
    )


def principal_direction(walk: Tensor) -> Tensor:
    """Combine the first principal directions of a walk (snapshots, P) into one gradient (P,).

    Each direction is as long as the whole walk and points from its end to its start; the weights are the
    eigenvalues of the snapshots' Gram matrix, scaled to unit norm.
    """
    # Differences first: the steps are tiny compared to the weights, so subtracting their mean would lose digits.
    offsets = walk - walk[0]
    centered = offsets - offsets.mean(0)
    gram = centered @ centered.T
    # On a GPU without host synchronization, so that the whole step can be captured.
    eigen = torch.linalg.eigh if gram.device.type == "cpu" else symmetric_eigen
    values, vectors = eigen(gram.double())
    kept = min(DIRECTIONS, walk.shape[0] - 1)
    values, vectors = values.flip(0)[:kept].clamp_min(0), vectors.flip(1)[:, :kept]
    tiny = torch.finfo(torch.float64).tiny
    back = -offsets[-1]
    # A direction is centered^T u, of length sqrt(u^T gram u) = sqrt(eigenvalue).
    along = vectors.T @ (centered @ back).double()
    sign = torch.where(along > 0, 1.0, -1.0)
    weight = values / torch.linalg.vector_norm(values).clamp_min(tiny)
    scale = sign * weight * torch.linalg.vector_norm(back) / values.sqrt().clamp_min(tiny**0.5)
    combined: Tensor = (vectors @ scale).to(walk.dtype) @ centered
    return combined


@register(
    "pgrad",
    title="PGrad",
    family="dg",
    row=15,
    paper="Wang, Grigsby and Qi, PGrad: Learning Principal Gradients for Domain Generalization, ICLR 2023",
    idea="use the principal directions of a walk through the domains as the gradient",
    formula=r"g = \sum_{m \le 4} \langle \bar g, u_m \rangle \, u_m , \qquad u_m = \text{principal directions of a"
    r" walk through the domains}",
    use="If time does not matter: a step takes about three times as long as ERM's.",
)
class PGrad(Method):
    """A walk of Adam steps, one per domain and third of the batch, with a new random order of domains in each third.

    Snapshots of the weights before, between and after the inner steps give the directions; the outer step is plain
    gradient descent from the start of the walk. The moments of the inner Adam persist between walks.
    """

    Config = PGradConfig
    config: PGradConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "as published, `loss` is that of the last inner step only; `mean_loss` is the mean over all inner steps",
        "with fewer than three samples per domain there are fewer inner steps, none of them empty",
    )

    def make_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Create Adam for the walk and gradient descent for the outer step."""
        weights = trainable(self.network)
        return {
            "inner": optim.adam(weights, self.config.lr),
            "outer": torch.optim.SGD(weights, lr=OUTER_LR, weight_decay=self.config.weight_decay),
        }

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Walk, find the principal direction, return to the start and take the outer step."""
        weights = trainable(self.network)
        start = copy_tensors(weights)
        walk, losses = [flatten_tensors(start)], []
        x, y, n = batch.by_domain(batch.x), batch.by_domain(batch.y), batch.per_domain
        for split in range(SPLITS):
            order = self.draws.permutation(batch.domains)
            x, y = x.index_select(0, order), y.index_select(0, order)
            rows = slice(split * n // SPLITS, (split + 1) * n // SPLITS)
            if rows.start == rows.stop:
                continue
            for domain in range(batch.domains):
                loss = cross_entropy(self.network(x[domain, rows]), y[domain, rows])
                self.minimize(loss, "inner")
                losses.append(loss.detach())
                walk.append(flatten_tensors(weights))
        assign_tensors(weights, start)
        set_gradients(weights, unflatten_tensors(principal_direction(torch.stack(walk)), weights))
        self.optimizers["outer"].step()
        return {"loss": losses[-1], "mean_loss": torch.stack(losses).mean()}
