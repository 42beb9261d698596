"""The NDCL objective as one module for any training loop: `loss = ndcl(model, x, y, d)`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy.typing as npt
import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from longshift.errors import unknown_name
from longshift.losses import contrastive as contrast
from longshift.losses.alignment import Alignment, prototype_alignment
from longshift.losses.common import full_precision
from longshift.losses.contrastive import Contrast, Negatives, Reduction
from longshift.losses.imbalance import inverse_frequency, log_prior, shift_logits
from longshift.losses.mining import Mined, Pairs, Share, mine, mix
from longshift.losses.reweighted_ce import Divisor, Weights, reweighted_cross_entropy
from longshift.rng import Draws, HostDraws

Prior = Literal["none", "domain", "global"]
# "default" is what the paper prints: linear for infonce, exponential for supcon.
SimilarityChoice = Literal["default", "exp", "linear"]

PRIORS: tuple[Prior, ...] = ("none", "domain", "global")
SIMILARITY_CHOICES: tuple[SimilarityChoice, ...] = ("default", "exp", "linear")


@dataclass(frozen=True, config=ConfigDict(strict=True))
class NDCLRecipe:
    """total = ce + alpha * con + beta * const, and how each of the three is computed.

    Attributes:
        alpha: Weight of eq. con; 0 omits the term and the second forward pass.
        beta: Weight of eq. align; 0 omits the term.
        rho: Mixing coefficients are drawn from Beta(rho, rho).
        contrast: Form of eq. con: "infonce_nd", "supcon_nd", "infonce", "supcon" or "released".
        similarity: Similarity of "infonce" and "supcon": "default", "exp" or "linear".
        negatives: Negatives of an anchor: "augmented", "batch" or "both".
        reduction: Reduction over anchors in eq. con and eq. align: "mean", "sum" or "class".
        alignment: Form of eq. align: "paper" or "released".
        weights: Sample weights in eq. ce: "adaptive", "class" or "none".
        divisor: Classes that eq. ce divides by: "present" or "all".
        factors: Factors on the weights of eq. ce, inverse to the training counts of each "domain" or of all ("global"),
            with a sum of K; "none" by default.
        weight_gradient: Whether the gradient also flows through the adaptive weights of eq. ce.
        share: How mined samples are distributed over classes: "inverse", "uniform" or "released".
        pairs: Which samples are mixed: "paper", or "released" for the thresholds of the authors' code.
        aug_scaler: Mined samples per sample of the batch, at least 1.
        shared_lambda: Whether the whole batch has one mixing coefficient.
        lambda_max_half: Whether mixing coefficients are at most 1/2: a mined sample is never mostly its positive.
        normalized: Whether eq. con uses means over positives and negatives instead of sums.
        prior: Log training counts added to the logits in eq. ce: "none", "domain" or "global".

    Example:
        >>> NDCLRecipe(alpha=0.0).alpha, NDCLRecipe(contrast="supcon_nd").negatives
        (0.0, 'augmented')
    """

    alpha: Annotated[float, Field(ge=0)] = 0.1
    beta: Annotated[float, Field(ge=0)] = 0.1
    rho: Annotated[float, Field(gt=0)] = 0.2
    contrast: Contrast = "infonce_nd"
    similarity: SimilarityChoice = "default"
    negatives: Negatives = "augmented"
    reduction: Reduction = "mean"
    alignment: Alignment = "paper"
    weights: Weights = "adaptive"
    divisor: Divisor = "present"
    factors: Prior = "none"
    weight_gradient: bool = False
    share: Share = "inverse"
    pairs: Pairs = "paper"
    aug_scaler: Annotated[float, Field(ge=1)] = 1.0
    shared_lambda: bool = False
    lambda_max_half: bool = False
    normalized: bool = False
    prior: Prior = "none"

    def __post_init__(self) -> None:
        if self.similarity != "default" and self.contrast not in ("infonce", "supcon"):
            raise ValueError(
                f"Expected `similarity` to be default with contrast={self.contrast!r} (only infonce and supcon have "
                f"a choice), but got {self.similarity!r}."
            )

    @property
    def mines(self) -> bool:
        """Whether a mined batch, and thus a second forward pass, is needed."""
        return self.alpha > 0 and self.negatives != "batch"

    def n_mined(self, batch: int) -> int:
        """Return the number of mined samples for a batch of this size."""
        return int(batch * self.aug_scaler)

    def n_lambdas(self, batch: int) -> int:
        """Return the number of mixing coefficients for a batch of this size."""
        mined = self.n_mined(batch)
        return (1 if self.shared_lambda else mined) + (mined if self.pairs == "released" else 0)


# The options that differ from the paper in the authors' code. It multiplies the weights of eq. ce by an attribute
# `weights_per_env` that only its ReWeight defines. Its `aug_scaler` of 1.5 has no effect: it is overwritten by 1.
RELEASED: dict[str, str | bool] = {
    "contrast": "released",
    "reduction": "class",
    "alignment": "released",
    "factors": "domain",
    "share": "released",
    "pairs": "released",
    "shared_lambda": True,
}


class NDCLTerms(NamedTuple):
    """total = ce + alpha * con + beta * const; a disabled term is None.

    Attributes:
        total: What is minimized.
        ce: Reweighted cross-entropy.
        con: Contrastive term.
        const: Alignment term.

    Example:
        >>> import torch
        >>> terms = NDCLTerms(torch.tensor(1.5), torch.tensor(1.5), None, None)
        >>> terms.total.item(), terms.con
        (1.5, None)
    """

    total: Tensor
    ce: Tensor
    con: Tensor | None
    const: Tensor | None


class NDCLLoss(nn.Module):
    """Negatives-dominant contrastive learning (arXiv:2601.21999): eqs. ce, con, align and neg_aug.

    Args:
        class_counts: Training samples, (classes,) or (domains, classes). By default, mining uses those of the batch.
        recipe: All options as one `NDCLRecipe`.
        draws: Source of random numbers; NumPy with `seed` by default.
        seed: Seed of the default `draws`.
        **options: Fields of `NDCLRecipe`, instead of `recipe`: `NDCLLoss(counts, alpha=0.3, negatives="both")`.

    Raises:
        ValueError: If an option or a shape is invalid.
        TypeError: If an option is unknown.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> model = nn.Linear(4, 3)
        >>> x, y, d = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 1]), torch.tensor([0, 0, 0, 1, 1, 1])
        >>> ndcl = NDCLLoss(class_counts=torch.tensor([50, 20, 5]))
        >>> loss = ndcl(model, x, y, d)
        >>> loss.backward()
        >>> loss.shape, bool(model.weight.grad.abs().sum() > 0)
        (torch.Size([]), True)
    """

    class_counts: Tensor | None
    prior_counts: Tensor | None
    factors: Tensor | None

    def __init__(
        self,
        class_counts: Tensor | Sequence[Any] | npt.NDArray[Any] | None = None,
        *,
        recipe: NDCLRecipe | None = None,
        draws: Draws | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        if recipe is not None and options:
            raise ValueError(f"Expected a `recipe` or options, but got both (options {', '.join(options)}).")
        known = [field.name for field in dataclasses.fields(NDCLRecipe)]
        for name in options.keys() - set(known):
            raise TypeError(unknown_name("option", name, known))
        self.recipe = recipe or NDCLRecipe(**options)
        self.draws: Draws = draws or HostDraws(seed)
        class_counts = None if class_counts is None else torch.as_tensor(class_counts)
        if class_counts is not None and bool((class_counts < 0).any()):
            raise ValueError(f"Expected `class_counts` of at least 0, but got {float(class_counts.min()):g}.")
        per_class = None if class_counts is None else class_counts.reshape(-1, class_counts.shape[-1]).sum(0)
        # Not persistent, because they follow from the options.
        self.register_buffer("class_counts", per_class, persistent=False)
        self.register_buffer("prior_counts", self._rows("prior", class_counts), persistent=False)
        rows = self._rows("factors", class_counts)
        factors = None if rows is None else inverse_frequency(rows.to(torch.get_default_dtype()))
        self.register_buffer("factors", factors, persistent=False)

    def _rows(self, option: str, counts: Tensor | None) -> Tensor | None:
        """Return the counts that an option asks for, (rows, classes): one row per domain, or one for all domains."""
        chosen = getattr(self.recipe, option)
        if chosen == "none":
            return None
        needed = 2 if chosen == "domain" else 1
        if counts is None or counts.dim() < needed:
            found = "None" if counts is None else f"shape {tuple(counts.shape)}"
            shape = "(domains, classes)" if needed == 2 else "(classes,) or (domains, classes)"
            raise ValueError(f"Expected `class_counts` of shape {shape} with {option}={chosen!r}, but got {found}.")
        values = counts.reshape(-1, counts.shape[-1])
        return values.sum(0, keepdim=True) if chosen == "global" else values

    def mine(self, logits: Tensor, y: Tensor) -> Mined:
        """Choose the samples to mix from the logits of the first forward pass."""
        recipe, p = self.recipe, logits.detach().softmax(1)
        return mine(p, y, self.class_counts, share=recipe.share, pairs=recipe.pairs, total=recipe.n_mined(len(y)))

    def mined_inputs(self, x: Tensor, logits: Tensor, y: Tensor, lam: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mined batch and the class that each sample was mined for."""
        mined = self.mine(logits, y)
        return mix(x, mined, lam, lambda_max_half=self.recipe.lambda_max_half), mined.cls

    def draw_lambda(self, size: int, draws: Draws | None = None) -> Tensor:
        """Draw the mixing coefficients for a batch of this size."""
        rho = self.recipe.rho
        return (draws or self.draws).beta(rho, rho, self.recipe.n_lambdas(size))

    def objective(
        self,
        logits: Tensor,
        y: Tensor,
        d: Tensor,
        mined_logits: Tensor | None = None,
        mined_class: Tensor | None = None,
        style_d: Tensor | None = None,
    ) -> NDCLTerms:
        """Compute all terms from the logits of the batch and, if mining is on, of the mined batch.

        `style_d` (B,) are the domains that samples count to in eq. align, where they have the style of another one; the
        prior is always that of their own domain d.
        """
        align_d = d if style_d is None else style_d
        return _objective(logits, mined_logits, y, d, align_d, mined_class, self)

    def forward(
        self, model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, d: Tensor, lam: Tensor | None = None
    ) -> Tensor:
        """Compute the total; `model` maps inputs (B, ...) to logits (B, classes), y and d are int64 (B,).

        `lam` overrides the random mixing coefficients.
        """
        logits = model(x)
        if not self.recipe.mines:
            return self.objective(logits, y, d).total
        if lam is None:
            lam = self.draw_lambda(len(y)).to(x.device)
        x_hat, cls = self.mined_inputs(x, logits, y, lam)
        return self.objective(logits, y, d, model(x_hat), cls).total


@full_precision
def _objective(
    logits: Tensor,
    mined_logits: Tensor | None,
    y: Tensor,
    d: Tensor,
    align_d: Tensor,
    mined_class: Tensor | None,
    ndcl: NDCLLoss,
) -> NDCLTerms:
    recipe = ndcl.recipe
    shifted = logits
    if ndcl.prior_counts is not None:
        if ndcl.prior_counts.shape[1] != logits.shape[1]:
            classes, found = logits.shape[1], tuple(ndcl.prior_counts.shape)
            raise ValueError(
                f"Expected `class_counts` of {classes} classes, as the logits have, but got shape {found}."
            )
        # Counts are exact in any precision; their logarithms use that of the logits.
        shifted = shift_logits(logits, log_prior(ndcl.prior_counts.to(logits.dtype)), d)
    factor = None if ndcl.factors is None else ndcl.factors[d if len(ndcl.factors) > 1 else 0, y]
    ce = reweighted_cross_entropy(
        shifted, y, weights=recipe.weights, divisor=recipe.divisor, detach=not recipe.weight_gradient, factor=factor
    )
    total, con, const = ce, None, None
    predictions = logits.softmax(1) if recipe.alpha > 0 or recipe.beta > 0 else logits
    if recipe.alpha > 0:
        options: dict[str, Any] = {"negatives": recipe.negatives, "reduction": recipe.reduction}
        if recipe.similarity != "default":
            options["similarity"] = recipe.similarity
        mined = None if mined_logits is None else mined_logits.softmax(1)
        term = getattr(contrast, recipe.contrast)
        con = term(predictions, y, mined, mined_class, normalized=recipe.normalized, **options)
        total = total + recipe.alpha * con
    if recipe.beta > 0:
        released = recipe.alignment == "released"
        const = prototype_alignment(predictions, y, align_d, reduction=recipe.reduction, released=released)
        total = total + recipe.beta * const
    return NDCLTerms(total, ce, con, const)
