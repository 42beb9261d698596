"""MLDG: first-order meta-learning of steps on some domains that also improve other domains."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Method
from longshift.methods.config import MethodConfig, choice, hp, power
from longshift.methods.registry import register
from longshift.nn import first_adam_step, gradients, set_gradients, shifted_weights, trainable


class MLDGConfig(MethodConfig):
    """Hyper-parameters of MLDG."""

    beta: float = hp(1.0, power(10, -1, 1), "weight of the meta-test loss", at_least=0.0)
    n_meta_test: int = hp(2, choice(1, 2), "domains held out as meta-test per step", at_least=1)


@register(
    "mldg",
    title="MLDG",
    family="dg",
    row=5,
    paper="Li et al., Learning to Generalize: Meta-Learning for Domain Generalization, AAAI 2018",
    idea="add the gradient on some domains and the gradient on others after a step on the first",
    formula=r"R_{train}(\theta) + \beta \, R_{test}\left( \theta - \eta \nabla R_{train}(\theta) \right)",
    use="To compare with meta-learning; it needs at least three source domains to hold some of them out.",
)
class MLDG(Method):
    """For each pair (meta-train i, meta-test j): the gradient on i, plus `beta` times that on j after a trial step.

    The trial step is the first step of a new Adam on domain i; it is undone afterwards. As published, sums over pairs
    are divided by the number of domains, not of pairs, in the gradient and in `loss`.
    """

    Config = MLDGConfig
    config: MLDGConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "`n_meta_test` is at most the number of domains minus one; as published, two domains and n_meta_test=2 "
        "leave no meta-train domain, and nothing is learned",
    )

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Take one meta-step over all pairs."""
        weights, beta = trainable(self.network), self.config.beta
        # A single domain is both meta-train and meta-test.
        tests = max(1, min(self.config.n_meta_test, batch.domains - 1))
        order = self.draws.permutation(batch.domains)
        x = batch.by_domain(batch.x).index_select(0, order)
        y = batch.by_domain(batch.y).index_select(0, order)
        pairs = max(1, batch.domains - tests)
        total: list[Tensor] = [torch.zeros_like(w) for w in weights]
        loss = x.new_zeros(())
        for i in range(pairs):
            j = (pairs + i % tests) % batch.domains
            loss_i = cross_entropy(self.network(x[i]), y[i])
            grad_i = gradients(loss_i, weights)
            trial = first_adam_step(weights, grad_i, self.config.lr, self.config.weight_decay)
            with shifted_weights(weights, trial):
                loss_j = cross_entropy(self.network(x[j]), y[j])
                grad_j = gradients(loss_j, weights)
            torch._foreach_add_(total, grad_i, alpha=1 / batch.domains)
            torch._foreach_add_(total, grad_j, alpha=beta / batch.domains)
            loss = loss + (loss_i.detach() + beta * loss_j.detach()) / batch.domains
        set_gradients(weights, total)
        self.optimizers["main"].step()
        return {"loss": loss}
