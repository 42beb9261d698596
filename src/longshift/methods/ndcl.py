"""NDCL: negatives-dominant contrastive learning (Cao et al. 2026), eqs. con, neg_aug, align and ce."""

from __future__ import annotations

import dataclasses
from typing import Any

from pydantic import model_validator
from torch import Tensor

from longshift.losses import (
    ALIGNMENTS,
    CONTRASTS,
    DIVISORS,
    NEGATIVES,
    PAIRS,
    PRIORS,
    REDUCTIONS,
    RELEASED,
    SHARES,
    SIMILARITY_CHOICES,
    WEIGHTS,
    NDCLLoss,
    NDCLRecipe,
)
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, fixed, hp, log_uniform, uniform
from longshift.methods.registry import register

PRESETS: dict[str, dict[str, str | bool]] = {"paper": {}, "released": RELEASED}
ABLATIONS: dict[str, dict[str, str | float]] = {
    "none": {},
    "no_weight": {"weights": "none"},
    "no_con": {"alpha": 0.0},
    "no_const": {"beta": 0.0},
    "no_aug": {"negatives": "batch"},
}


class NDCLConfig(MethodConfig):
    """Two weights, the mixing parameter, and an option for everything the paper leaves open."""

    alpha: float = hp(0.1, log_uniform(1e-3, 1), "weight of the contrastive term (eq. con)", at_least=0.0)
    beta: float = hp(0.1, log_uniform(1e-3, 1), "weight of the alignment term (eq. align)", at_least=0.0)
    rho: float = hp(0.2, uniform(0.1, 0.3), "mixing coefficients are drawn from Beta(rho, rho)", at_least=1e-3)
    preset: str = hp("paper", fixed(), "start from the paper's equations or the authors' code", options=tuple(PRESETS))
    ablation: str = hp("none", fixed(), "omit one part, as in the ablation table", options=tuple(ABLATIONS))
    contrast: str = hp("infonce_nd", fixed(), "form of the contrastive term", options=CONTRASTS)
    similarity: str = hp(
        "default", fixed(), "for infonce and supcon: s or exp(s); default: as in the paper", options=SIMILARITY_CHOICES
    )
    negatives: str = hp("augmented", fixed(), "an anchor's negatives: mined, in the batch, or both", options=NEGATIVES)
    reduction: str = hp("mean", fixed(), "reduction over anchors; class: mean of class means", options=REDUCTIONS)
    alignment: str = hp("paper", fixed(), "form of the alignment term", options=ALIGNMENTS)
    weights: str = hp(
        "adaptive", fixed(), "sample weights in eq. ce: by loss, equal within a class, or equal", options=WEIGHTS
    )
    divisor: str = hp("present", fixed(), "eq. ce divides by the classes in the batch or by all", options=DIVISORS)
    factors: str = hp("none", fixed(), "factors on these weights, inverse to the training counts", options=PRIORS)
    weight_gradient: bool = hp(False, fixed(), "gradient also through the weights of eq. ce")
    share: str = hp("inverse", fixed(), "how mined samples are distributed over classes", options=SHARES)
    pairs: str = hp("paper", fixed(), "which samples are mixed; released: the thresholds of the code", options=PAIRS)
    aug_scaler: float = hp(1.0, fixed(), "mined samples per sample of the batch", at_least=1.0)
    shared_lambda: bool = hp(False, fixed(), "one mixing coefficient for the whole batch")
    lambda_max_half: bool = hp(False, fixed(), "mixing coefficients at most 1/2")
    normalized: bool = hp(False, fixed(), "means over positives and negatives in the ratio of eq. con")
    prior: str = hp("none", fixed(), "add log training counts to the logits in eq. ce", options=PRIORS)
    style_domain: str = hp(
        "own",
        fixed(),
        "domain of a styled sample in eq. align: its own, or that of the partner whose amplitude it has",
        options=("own", "partner"),
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in_preset(cls, values: Any) -> Any:
        """Values that are given override the preset's."""
        preset = values.get("preset", cls.hyper_parameters()["preset"].default) if isinstance(values, dict) else None
        return {**PRESETS[preset], **values} if isinstance(preset, str) and preset in PRESETS else values

    @model_validator(mode="after")
    def _fit_together(self) -> NDCLConfig:
        self.recipe()  # refuses values that are valid alone but not together
        return self

    def recipe(self) -> NDCLRecipe:
        """Return the options of the loss; an ablation overrides them."""
        chosen: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(NDCLRecipe)}
        return NDCLRecipe(**(chosen | ABLATIONS[self.ablation]))


@register(
    "ndcl",
    title="NDCL",
    family="idg",
    row=24,
    paper="arXiv:2601.21999",
    idea="push mined hard negatives away in prediction space and align class prototypes across domains",
    formula=r"\mathcal{L}_{ce} + \alpha \, \mathcal{L}_{con} + \beta \, \mathcal{L}_{const} , \qquad "
    r"\mathcal{L}_{con} = - \frac{1}{B} \sum_i \log \frac{\frac{1}{|N(i)|} \sum_{n \in N(i)} (1 - "
    r"s_{in})}{\sum_{a \in N(i) \cup P(i)} (1 - s_{ia})}",
    use="To compare with the paper. For your own data use `ndcl_plus`.",
)
class NDCL(Method):
    """Reweighted cross-entropy, a contrastive term dominated by mined negatives, and prototype alignment."""

    Config = NDCLConfig
    config: NDCLConfig

    def build(self) -> None:
        """Add the loss module."""
        self.ndcl = NDCLLoss(self.problem.counts_tensor(), recipe=self.config.recipe())

    def loss(self, batch: Batch) -> Losses:
        """Run the first pass, mine, run the second pass on the mined batch, and compute the objective."""
        logits: Tensor = self.network(batch.x)
        if not self.ndcl.recipe.mines:
            return self.objective(batch, logits)
        lam = self.ndcl.draw_lambda(len(batch), self.draws)
        return self.objective(batch, logits, *self.ndcl.mined_inputs(batch.x, logits, batch.y, lam))

    def objective(
        self, batch: Batch, logits: Tensor, x_hat: Tensor | None = None, cls_hat: Tensor | None = None
    ) -> Losses:
        """Compute the terms from the logits of the batch and, if mining is on, a mined batch with its classes."""
        mined_logits = None if x_hat is None else self.network(x_hat)
        style_d = batch.style_d if self.config.style_domain == "partner" else None
        terms = self.ndcl.objective(logits, batch.y, batch.d, mined_logits, cls_hat, style_d)
        named = {"loss": terms.total, "ce": terms.ce, "con": terms.con, "const": terms.const}
        return Losses(terms.total, {name: value for name, value in named.items() if value is not None})
