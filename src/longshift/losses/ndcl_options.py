"""The options of the NDCL objective; the defaults are the paper's equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longshift.losses.choices import check
from longshift.losses.contrast import CONTRASTS, NEGATIVES, REDUCTIONS, Contrast, Negatives, Reduction
from longshift.losses.mining import SHARES, Share
from longshift.losses.reweighted_ce import DIVISORS, WEIGHTS, Divisor, Weights

Alignment = Literal["paper", "released"]
Prior = Literal["none", "domain", "global"]
# "default" is what the paper prints: linear for infonce, exponential for supcon.
SimilarityChoice = Literal["default", "exp", "linear"]

ALIGNMENTS: tuple[Alignment, ...] = ("paper", "released")
PRIORS: tuple[Prior, ...] = ("none", "domain", "global")
SIMILARITY_CHOICES: tuple[SimilarityChoice, ...] = ("default", "exp", "linear")


@dataclass(frozen=True)
class NDCLRecipe:
    """total = ce + alpha * con + beta * const, and how each of the three is computed."""

    alpha: float = 0.1  # weight of eq. con; 0 skips the term and the second forward pass
    beta: float = 0.1  # weight of eq. align; 0 skips the term
    rho: float = 0.2  # mixing coefficients are drawn from Beta(rho, rho)
    contrast: Contrast = "infonce_nd"
    similarity: SimilarityChoice = "default"  # of infonce and supcon
    negatives: Negatives = "augmented"
    reduction: Reduction = "mean"  # over anchors, in eq. con and eq. align
    alignment: Alignment = "paper"
    weights: Weights = "adaptive"  # of eq. ce
    divisor: Divisor = "present"  # of eq. ce
    share: Share = "inverse"
    shared_lambda: bool = False  # one mixing coefficient for the whole batch
    lambda_max_half: bool = False  # lambda <= 1/2: a mined sample is never mostly its positive
    normalised: bool = False  # means over positives and over negatives in the ratio of eq. con
    prior: Prior = "none"  # log of the training counts added to the logits inside eq. ce

    def __post_init__(self) -> None:
        check("contrast", self.contrast, CONTRASTS)
        check("similarity", self.similarity, SIMILARITY_CHOICES)
        check("negatives", self.negatives, NEGATIVES)
        check("reduction", self.reduction, REDUCTIONS)
        check("alignment", self.alignment, ALIGNMENTS)
        check("weights", self.weights, WEIGHTS)
        check("divisor", self.divisor, DIVISORS)
        check("share", self.share, SHARES)
        check("prior", self.prior, PRIORS)
        if self.alpha < 0 or self.beta < 0:
            raise ValueError(f"Expected `alpha` and `beta` to be at least 0, but got {self.alpha} and {self.beta}.")
        if not self.rho > 0:
            raise ValueError(f"Expected `rho` to be above 0, but got {self.rho}.")
        if self.similarity != "default" and self.contrast not in ("infonce", "supcon"):
            raise ValueError(
                f"Expected `similarity` to be default with contrast={self.contrast!r} (only infonce and supcon have "
                f"a choice), but got {self.similarity!r}."
            )

    @property
    def mines(self) -> bool:
        """Whether a mined batch, and thus a second forward pass, is needed."""
        return self.alpha > 0 and self.negatives != "batch"

    def n_lambdas(self, batch: int) -> int:
        """Return the number of mixing coefficients for a batch of this size."""
        return 1 if self.shared_lambda else batch


# The options that differ from the paper in the authors' code.
RELEASED: dict[str, str | bool] = {
    "contrast": "released",
    "reduction": "class",
    "alignment": "released",
    "share": "released",
    "shared_lambda": True,
}
