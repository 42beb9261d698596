from . import optim as optim
from .backbones import (
    SMALL_CONV as SMALL_CONV,
    VECTOR_HEADS as VECTOR_HEADS,
    check_backbone as check_backbone,
    make_backbone as make_backbone,
    make_network as make_network,
    network_of as network_of,
    require_network_of as require_network_of,
    stated_padding as stated_padding,
    timm_feature_dim as timm_feature_dim,
)
from .batch_norm_folding import fold_frozen_norms as fold_frozen_norms, use_onednn as use_onednn
from .jacobi import symmetric_eigen as symmetric_eigen
from .layers import MLP as MLP, VectorHead as VectorHead, reverse_gradient as reverse_gradient
from .network import Network as Network, Precision as Precision, without_kernel_tuning as without_kernel_tuning
from .optim import (
    assign_tensors as assign_tensors,
    copy_tensors as copy_tensors,
    first_adam_step as first_adam_step,
    flatten_tensors as flatten_tensors,
    gradients as gradients,
    set_gradients as set_gradients,
    sharpness_aware_gradients as sharpness_aware_gradients,
    shifted_weights as shifted_weights,
    trainable as trainable,
    unflatten_tensors as unflatten_tensors,
)
from .sources import (
    Backbone as Backbone,
    backbone_version as backbone_version,
    register_backbones as register_backbones,
    require_pretrained as require_pretrained,
    weights_available as weights_available,
    weights_url as weights_url,
)
