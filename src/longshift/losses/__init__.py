"""Losses as pure functions on tensors, always computed in full precision, and as modules for any training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.losses.alignment import (
        PrototypeAlignment as PrototypeAlignment,
        prototype_alignment as prototype_alignment,
    )
    from longshift.losses.boda import BoDALoss as BoDALoss, boda_loss as boda_loss
    from longshift.losses.contrastive import (
        infonce as infonce,
        infonce_nd as infonce_nd,
        supcon as supcon,
        supcon_nd as supcon_nd,
    )
    from longshift.losses.domain_penalties import (
        CORALLoss as CORALLoss,
        FishrPenalty as FishrPenalty,
        IRMPenalty as IRMPenalty,
        MMDLoss as MMDLoss,
        VRExPenalty as VRExPenalty,
    )
    from longshift.losses.hsic import class_hsic as class_hsic
    from longshift.losses.imbalance import (
        focal_loss as focal_loss,
        inverse_frequency as inverse_frequency,
        ldam_margins as ldam_margins,
        log_prior as log_prior,
        margin_loss as margin_loss,
        shift_logits as shift_logits,
    )
    from longshift.losses.imbalance_losses import (
        BalancedSoftmaxLoss as BalancedSoftmaxLoss,
        FocalLoss as FocalLoss,
        InverseFrequencyCE as InverseFrequencyCE,
        LDAMLoss as LDAMLoss,
    )
    from longshift.losses.invariance import (
        head_gradient_variance as head_gradient_variance,
        irm_penalty as irm_penalty,
        spread as spread,
    )
    from longshift.losses.kernels import mmd as mmd, pairwise_mmd as pairwise_mmd
    from longshift.losses.maximum_square import maximum_square_loss as maximum_square_loss
    from longshift.losses.mining import mine as mine, mix as mix
    from longshift.losses.moments import pairwise_coral as pairwise_coral
    from longshift.losses.ndcl_loss import NDCLLoss as NDCLLoss, NDCLRecipe as NDCLRecipe, NDCLTerms as NDCLTerms
    from longshift.losses.quantile import kde_quantile as kde_quantile
    from longshift.losses.reweighted_ce import (
        ReweightedCE as ReweightedCE,
        intra_class_weights as intra_class_weights,
        reweighted_cross_entropy as reweighted_cross_entropy,
    )
    from longshift.losses.style_mixing import (
        AmplitudeMix as AmplitudeMix,
        RandomConvolution as RandomConvolution,
        mix_amplitude as mix_amplitude,
    )

if TYPE_CHECKING:  # shared with the other packages of longshift, not public
    from longshift.losses.alignment import ALIGNMENTS as ALIGNMENTS
    from longshift.losses.contrastive import (
        CONTRASTS as CONTRASTS,
        NEGATIVES as NEGATIVES,
        REDUCTIONS as REDUCTIONS,
    )
    from longshift.losses.hsic import classes_present as classes_present
    from longshift.losses.kernels import RISK_GAMMAS as RISK_GAMMAS
    from longshift.losses.mining import SHARES as SHARES
    from longshift.losses.ndcl_loss import (
        PRIORS as PRIORS,
        RELEASED as RELEASED,
        SIMILARITY_CHOICES as SIMILARITY_CHOICES,
    )
    from longshift.losses.reweighted_ce import DIVISORS as DIVISORS, WEIGHTS as WEIGHTS
    from longshift.losses.style_mixing import (
        KERNELS_SHAPE as KERNELS_SHAPE,
        STYLE_KINDS as STYLE_KINDS,
        choose_kernels as choose_kernels,
        choose_partners as choose_partners,
        mix_statistics as mix_statistics,
        random_convolution as random_convolution,
        random_kernels as random_kernels,
    )

__all__, __getattr__, __dir__ = lazy_exports(__name__)
