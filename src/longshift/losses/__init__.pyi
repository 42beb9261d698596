# Used by the other packages of longshift; not public.
from .alignment import (
    ALIGNMENTS as ALIGNMENTS,
    PrototypeAlignment as PrototypeAlignment,
    prototype_alignment as prototype_alignment,
)
from .boda import BoDALoss as BoDALoss, boda_loss as boda_loss
from .contrastive import (
    CONTRASTS as CONTRASTS,
    NEGATIVES as NEGATIVES,
    REDUCTIONS as REDUCTIONS,
    infonce as infonce,
    infonce_nd as infonce_nd,
    supcon as supcon,
    supcon_nd as supcon_nd,
)
from .domain_penalties import (
    CORALLoss as CORALLoss,
    FishrPenalty as FishrPenalty,
    IRMPenalty as IRMPenalty,
    MMDLoss as MMDLoss,
    VRExPenalty as VRExPenalty,
)
from .hsic import class_hsic as class_hsic, classes_present as classes_present
from .imbalance import (
    focal_loss as focal_loss,
    inverse_frequency as inverse_frequency,
    ldam_margins as ldam_margins,
    log_prior as log_prior,
    margin_loss as margin_loss,
    shift_logits as shift_logits,
)
from .imbalance_losses import (
    BalancedSoftmaxLoss as BalancedSoftmaxLoss,
    FocalLoss as FocalLoss,
    InverseFrequencyCE as InverseFrequencyCE,
    LDAMLoss as LDAMLoss,
)
from .invariance import head_gradient_variance as head_gradient_variance, irm_penalty as irm_penalty, spread as spread
from .kernels import RISK_GAMMAS as RISK_GAMMAS, mmd as mmd, pairwise_mmd as pairwise_mmd
from .maximum_square import maximum_square_loss as maximum_square_loss
from .mining import SHARES as SHARES, mine as mine, mix as mix
from .moments import pairwise_coral as pairwise_coral
from .ndcl_loss import (
    PRIORS as PRIORS,
    RELEASED as RELEASED,
    SIMILARITY_CHOICES as SIMILARITY_CHOICES,
    NDCLLoss as NDCLLoss,
    NDCLRecipe as NDCLRecipe,
    NDCLTerms as NDCLTerms,
)
from .quantile import kde_quantile as kde_quantile
from .reweighted_ce import (
    DIVISORS as DIVISORS,
    WEIGHTS as WEIGHTS,
    ReweightedCE as ReweightedCE,
    intra_class_weights as intra_class_weights,
    reweighted_cross_entropy as reweighted_cross_entropy,
)
from .style_mixing import (
    KERNELS_SHAPE as KERNELS_SHAPE,
    STYLE_KINDS as STYLE_KINDS,
    AmplitudeMix as AmplitudeMix,
    RandomConvolution as RandomConvolution,
    choose_kernels as choose_kernels,
    choose_partners as choose_partners,
    mix_amplitude as mix_amplitude,
    mix_statistics as mix_statistics,
    random_convolution as random_convolution,
    random_kernels as random_kernels,
)

__all__ = [
    "AmplitudeMix",
    "BalancedSoftmaxLoss",
    "BoDALoss",
    "CORALLoss",
    "FishrPenalty",
    "FocalLoss",
    "IRMPenalty",
    "InverseFrequencyCE",
    "LDAMLoss",
    "MMDLoss",
    "NDCLLoss",
    "NDCLRecipe",
    "NDCLTerms",
    "PrototypeAlignment",
    "RandomConvolution",
    "ReweightedCE",
    "VRExPenalty",
    "boda_loss",
    "class_hsic",
    "focal_loss",
    "head_gradient_variance",
    "infonce",
    "infonce_nd",
    "intra_class_weights",
    "inverse_frequency",
    "irm_penalty",
    "kde_quantile",
    "ldam_margins",
    "log_prior",
    "margin_loss",
    "maximum_square_loss",
    "mine",
    "mix",
    "mix_amplitude",
    "mmd",
    "pairwise_coral",
    "pairwise_mmd",
    "prototype_alignment",
    "reweighted_cross_entropy",
    "shift_logits",
    "spread",
    "supcon",
    "supcon_nd",
]
