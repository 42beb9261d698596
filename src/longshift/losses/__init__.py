"""Losses as pure functions on tensors, in full precision whatever comes in, and NDCL as one module."""

from longshift.losses.alignment import Prototypes, align, align_released, prototype_alignment, prototypes
from longshift.losses.contrast import infonce, infonce_nd, released, supcon, supcon_nd
from longshift.losses.mining import Mined, apportion, mine, mined_counts, mix
from longshift.losses.ndcl_loss import NDCLLoss, NDCLTerms
from longshift.losses.recipe import NDCLRecipe
from longshift.losses.reweighted_ce import class_mean, intra_class_weights, reweighted_cross_entropy

__all__ = [
    "Mined",
    "NDCLLoss",
    "NDCLRecipe",
    "NDCLTerms",
    "Prototypes",
    "align",
    "align_released",
    "apportion",
    "class_mean",
    "infonce",
    "infonce_nd",
    "intra_class_weights",
    "mine",
    "mined_counts",
    "mix",
    "prototype_alignment",
    "prototypes",
    "released",
    "reweighted_cross_entropy",
    "supcon",
    "supcon_nd",
]
