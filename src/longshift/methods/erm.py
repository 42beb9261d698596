"""ERM: empirical risk minimization on all domains together (Vapnik 1998)."""

from __future__ import annotations

from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Losses, Method
from longshift.methods.registry import register


@register(
    "erm",
    title="ERM",
    family="dg",
    row=1,
    paper="Vapnik, Statistical Learning Theory, 1998",
    idea="mean cross-entropy over all samples",
    formula=r"\frac{1}{B} \sum_i \ell_i",
    use="As the baseline, and if new domains have the same long tail as all training domains.",
)
class ERM(Method):
    """Plain cross-entropy: the baseline of every table."""

    def loss(self, batch: Batch) -> Losses:
        """Compute the mean cross-entropy over the batch."""
        total = cross_entropy(self.network(batch.x), batch.y)
        return Losses(total, {"loss": total})
