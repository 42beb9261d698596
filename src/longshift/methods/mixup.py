"""Mixup between domains: train on convex combinations of samples of two domains and of their labels."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, hp, power
from longshift.methods.registry import register


class MixupConfig(MethodConfig):
    """Hyper-parameters of Mixup."""

    alpha: float = hp(0.2, power(10, -1, 1), "mixing coefficients are drawn from Beta(alpha, alpha)", at_least=1e-6)


@register(
    "mixup",
    title="Mixup",
    family="dg",
    row=4,
    paper="Yan et al., Improve Unsupervised Domain Adaptation with Mixup Training, arXiv:2001.00677",
    idea="cross-entropy on mixtures of samples from two domains",
    formula=r"\lambda \, \ell(f(\tilde x), y_i) + (1 - \lambda) \, \ell(f(\tilde x), y_j) , \qquad \tilde x = "
    r"\lambda x_i + (1 - \lambda) x_j",
    use="As an inexpensive regularizer on images or vectors; it ignores class frequencies.",
)
class Mixup(Method):
    """Domains in random cyclic order, each mixed with the next by one coefficient, in one forward pass."""

    Config = MixupConfig
    config: MixupConfig

    def loss(self, batch: Batch) -> Losses:
        """Compute the mean over pairs of domains of lam CE(y_first) + (1 - lam) CE(y_second)."""
        first = self.draws.permutation(batch.domains)
        second = first.roll(-1)
        lam = self.draws.beta(self.config.alpha, self.config.alpha, batch.domains)

        def rows(values: Tensor, domains: Tensor) -> Tensor:
            return batch.by_domain(values).index_select(0, domains).flatten(0, 1)

        own = lam.to(batch.x.dtype).repeat_interleave(batch.per_domain, output_size=len(batch))
        share = own.view(-1, *[1] * (batch.x.dim() - 1))
        logits = self.network(share * rows(batch.x, first) + (1 - share) * rows(batch.x, second))
        ce_first = cross_entropy(logits, rows(batch.y, first), reduction="none")
        ce_second = cross_entropy(logits, rows(batch.y, second), reduction="none")
        total = (own * ce_first + (1 - own) * ce_second).mean()
        return Losses(total, {"loss": total})
