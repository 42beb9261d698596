"""Networks, heads, optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.nn import optim as optim
    from longshift.nn.backbone_sources import (
        Backbone as Backbone,
        backbone_version as backbone_version,
        register_backbones as register_backbones,
    )
    from longshift.nn.backbones import (
        SMALL_CONV as SMALL_CONV,
        VECTOR_HEADS as VECTOR_HEADS,
        VECTOR_LINEAR as VECTOR_LINEAR,
        check_backbone as check_backbone,
        make_backbone as make_backbone,
        make_network as make_network,
        require_network_of as require_network_of,
        timm_feature_dim as timm_feature_dim,
        weights_header as weights_header,
    )
    from longshift.nn.batch_norm_folding import fold_frozen_norms as fold_frozen_norms
    from longshift.nn.gradient_reversal import reverse_gradient as reverse_gradient
    from longshift.nn.jacobi import symmetric_eigen as symmetric_eigen
    from longshift.nn.kernel_tuning import without_kernel_tuning as without_kernel_tuning
    from longshift.nn.mlp import MLP as MLP
    from longshift.nn.network import Network as Network, Precision as Precision
    from longshift.nn.parameters import (
        assign_tensors as assign_tensors,
        copy_tensors as copy_tensors,
        first_adam_step as first_adam_step,
        flatten_tensors as flatten_tensors,
        gradients as gradients,
        set_gradients as set_gradients,
        shifted_weights as shifted_weights,
        trainable as trainable,
        unflatten_tensors as unflatten_tensors,
    )
    from longshift.nn.pretrained import weights_available as weights_available
    from longshift.nn.sam import sharpness_aware_gradients as sharpness_aware_gradients
    from longshift.nn.vector_mlp import VectorHead as VectorHead

__all__, __getattr__, __dir__ = lazy_exports(__name__)
